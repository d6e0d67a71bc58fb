"""One run per ROS domain: a second one is refused, and the claim ends with its process."""

import os
import subprocess
import sys

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.ros import domain
from bench_tasks.ros.domain import claim_domain, robot_domain

CLAIM = (
    "import bench_tasks.ros.domain as d, sys; print(d.claim_domain(), flush=True); "
    "sys.stdin.read()"
)


@pytest.fixture
def other():
    """A process that holds domain 231 until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM], env={**os.environ, "ROS_DOMAIN_ID": "231"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "231\n"
    yield process
    process.kill()
    process.wait(10)


def test_a_second_run_on_the_domain_is_refused_until_the_first_is_gone(other, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "231")
    with pytest.raises(UsageError, match="another run is using ROS domain 231"):
        claim_domain()
    other.kill()
    other.wait(10)
    assert claim_domain() == 231
    domain._claimed.pop().close()


def test_another_domain_is_free(other, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "230")
    assert claim_domain() == 230
    domain._claimed.pop().close()


@pytest.mark.parametrize("text", ["x", "-1", "233", "1.5"])
def test_a_wrong_domain_is_named(monkeypatch, text):
    monkeypatch.setenv("ROS_DOMAIN_ID", text)
    with pytest.raises(UsageError, match="ROS_DOMAIN_ID must be a number from 0 to 232"):
        claim_domain()


@pytest.mark.parametrize(("ros", "robot"), [("", 101), ("1", 102), ("101", 202), ("232", 100)])
def test_a_robot_beside_the_nodes_has_a_domain_of_its_own(monkeypatch, ros, robot):
    monkeypatch.setenv("ROS_DOMAIN_ID", ros)
    assert robot_domain() == robot


def test_no_two_ros_domains_have_the_same_robot_s(monkeypatch):
    found = set()
    for ros in range(233):
        monkeypatch.setenv("ROS_DOMAIN_ID", str(ros))
        found.add(robot_domain())
    assert len(found) == 233
