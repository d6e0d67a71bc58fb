"""Who has died: by the kernel's word, so without any middleware."""

from __future__ import annotations

import pytest

from bench_tasks.errors import GoneNode
from bench_tasks.ros.presence import Presence, Watch


@pytest.fixture
def watch(monkeypatch, tmp_path):
    monkeypatch.setenv("ROS_DOMAIN_ID", f"{tmp_path.name}{id(tmp_path)}")  # names of its own
    return Watch()


def dies(node: Presence) -> None:
    """As the kernel does it for a process that is killed."""
    node._socket.close()


def test_a_node_that_dies_is_told_from_one_that_ends(watch):
    first, second = Presence("policy"), Presence("task")
    for name in ("policy", "task", "nobody"):
        watch.add(name)
    assert watch.died() == ""
    second.farewell()
    dies(second)
    assert watch.died() == ""
    dies(first)
    assert watch.died() == "node /policy is gone"
    with pytest.raises(GoneNode, match="node /policy is gone"):
        watch.check("policy")


def test_a_node_that_was_started_again_may_die_again(watch):
    for _ in range(3):
        node = Presence("policy")
        watch.add("policy")
        assert watch.died() == ""
        watch.check("policy")
        dies(node)
        assert watch.died() == "node /policy is gone"
        watch.add("policy")
        assert watch.died() == "node /policy is gone", "it is not there again"


def test_a_watcher_that_has_died_keeps_the_farewell_from_no_other(watch):
    node, gone = Presence("policy"), Watch()
    gone.add("policy")
    watch.add("policy")
    for peer in gone._peers.values():
        peer.close()
    node.farewell()
    dies(node)
    assert watch.died() == ""
