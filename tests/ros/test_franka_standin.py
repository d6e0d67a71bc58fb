"""Two simulated Franka arms on a busy machine: slow, and nothing else."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("bench_interfaces")

from bench_tasks.bags.bag import read_bag  # noqa: E402
from bench_tasks.verdicts import score_files  # noqa: E402
from bench_tasks.vocabulary import ARM_COLUMNS  # noqa: E402

SERVERS, DRIVERS = (Path(sys.prefix) / name / "bin/python" for name in ("franka_sim", "franka"))

pytestmark = [
    pytest.mark.ros, pytest.mark.slow,
    pytest.mark.skipif(not (SERVERS.exists() and DRIVERS.exists()), reason="make franka-sim"),
]  # fmt: skip


@pytest.fixture
def busy():
    """Two processes that want all there is of the processors."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for process in running:
        process.kill()
        process.wait()


def test_an_episode_beside_two_busy_processes_is_not_stopped(busy, nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_franka("standin_franka", "standin", out)
    assert nodes.wait("task", 400.0) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.agrees and score.success, (score, nodes.logs())
    bag = read_bag(out / score.task / f"{score.seed:06d}")
    assert "safety_stopped" not in [event.kind for event in bag.events]
    away = np.array([s.joint_position - s.command[ARM_COLUMNS] for s in bag.states])
    assert np.sqrt(np.mean(away**2)) <= 0.01
