"""The benchmark that kills processes while arms move: what it measures, and two of its rows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("bench_interfaces")

ROOT = Path(__file__).resolve().parents[2]
SERVERS, DRIVERS = (Path(sys.prefix) / name / "bin/python" for name in ("franka_sim", "franka"))
pytestmark = pytest.mark.ros


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import kill_in_motion

    return kill_in_motion


def rows(duration_s=2.0, pace=1.0):
    """Two parts, the second one at rest; the first has a joint that goes as sin(2 t), and stops."""
    t = np.arange(0.0, duration_s, 0.004)
    q = np.sin(2 * np.minimum(t, np.pi / 4))
    moves = np.stack([100 + t / pace, 0 * t, t, q, 0 * q], axis=1)
    rests = np.stack([100 + t / pace, 0 * t + 1, t, 0 * q, 0 * q], axis=1)
    return np.concatenate([moves, rests])[np.argsort(np.concatenate([t, t]), kind="stable")]


@pytest.mark.parametrize("pace", [1.0, 0.5])
def test_speeds_are_the_robots_own_however_slowly_it_is_simulated(bench, pace):
    at, fast, harsh = bench.motion(rows(pace=pace))
    assert fast.max() == pytest.approx(2.0, abs=0.01)
    assert harsh.max() == pytest.approx(4.0, abs=0.1)
    stopped = 100 + np.pi / 4 / pace
    assert fast[at > stopped + 0.03 / pace].max() == 0.0
    assert at[fast > bench.REST].max() == pytest.approx(stopped, abs=0.03 / pace)
    assert bench.motion(rows()[:0])[1].max(initial=0.0) == 0.0


@pytest.mark.slow
@pytest.mark.skipif(not (SERVERS.exists() and DRIVERS.exists()), reason="make franka-sim")
def test_arms_stop_and_go_on_when_the_policy_and_when_a_driver_is_killed(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks/kill_in_motion.py"), "--victims",
               "policy,driver", "--repeat", "1", "--out", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["victim"] for row in found] == ["policy", "driver"]
    for row in found:
        assert row["speed_at"] > 0.2 and row["rest_s"] < 1.5 and row["speed"] < 2.6
        assert row["aborts"] == row["left"] == 0 and row["named"] and row["states"] > 10
    assert found[0]["cause"] == "lost node: node /policy is gone" and found[0]["gone_s"] < 6.0
