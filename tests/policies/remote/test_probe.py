"""The probe finds servers that remember; it does not accuse those that throw dice."""

from __future__ import annotations

import threading

import numpy as np
import peers
import pytest

from bench_tasks.cli import main
from bench_tasks.errors import UsageError
from policies.remote import probe, serve


def command(observation) -> np.ndarray:
    return peers.good_values(observation["command"])


class Forgets:
    """Answers by what it is shown and has been shown on this connection."""

    def __init__(self) -> None:
        self.sums: dict[int, float] = {}

    def __call__(self, observation, connection):
        key = id(connection)
        self.sums[key] = self.sums.get(key, 0.0) + 1e-4 * float(observation["state"][1])
        return {"actions": command(observation) + self.sums[key] * 0.1}


class KeepsLast:
    """Its answer is drawn to the last observation, of whatever episode."""

    last = None

    def __call__(self, observation, connection):
        last = observation["state"] if self.last is None else self.last
        self.last = observation["state"]
        return {"actions": command(observation) + 0.01 * (last - observation["state"])}


class KeepsWindow:
    """Its answer depends on the last three observations and how many there were."""

    def __init__(self) -> None:
        self.window: list[float] = []

    def __call__(self, observation, connection):
        self.window = [*self.window, 1.0][-3:]
        return {"actions": command(observation) + sum(self.window) * 0.001}


class Counts:
    """Never answers the same: a step further each time."""

    count = 0

    def __call__(self, observation, connection):
        self.count += 1
        return {"actions": command(observation) + 1e-3 * self.count}


def dice(observation, connection):
    noise = np.random.default_rng().normal(0, 1e-3, (10, 16))
    return {"actions": command(observation) + noise}


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        (Forgets, probe.FORGETS), (KeepsLast, probe.KEEPS), (KeepsWindow, probe.KEEPS),
        (Counts, probe.CANNOT_TELL), (lambda: dice, probe.CANNOT_TELL),
    ],
    ids=["forgets", "keeps the last", "keeps a window", "counts", "dice"],
)  # fmt: skip
def test_memory_is_found_out(server, verdict):
    with peers.OpenPIPeer(server()) as peer:
        found = {name: (ok, text, needed) for name, ok, text, _, needed in probe.examine(
            f"openpi:port={peer.port}"
        )}  # fmt: skip
    assert found["server"][0] and found["answer"][0]
    assert found["memory"][:2] == (verdict == probe.FORGETS, verdict)
    assert found["memory"][2] == (verdict == probe.KEEPS), "only a fault that is known fails"


def test_pictures_are_shown_too():
    with peers.OpenPIPeer(KeepsLast()) as peer:
        found = probe.examine(f"openpi:port={peer.port},embodiment=fr3_pair_images")
    assert found[-1][2] == probe.KEEPS
    assert all(said["images"]["head"].shape == (240, 320, 3) for said in peer.seen)
    first = [said["images"]["head"] for said in peer.seen if said["prompt"] == "Lift the block."]
    assert len(first) == 7 and all(np.array_equal(first[0], other) for other in first)


def test_a_server_of_roboarena_and_of_gr00t():
    config = {"image_resolution": None, "n_external_cameras": 2, "needs_wrist_camera": True}
    rows = np.zeros((15, 8))
    with peers.OpenPIPeer(lambda *_: rows, metadata=config, endpoints=True) as peer:
        found = probe.examine(f"dreamzero:port={peer.port}")
    assert found[-1][2] == probe.FORGETS
    assert not found[1][1] and "left joint 4" in found[1][2], "zeros are far from home"
    values = peers.good_values(np.tile([0.0] * 7 + [0.08], 2))
    with peers.Gr00tPeer(lambda *_: peers.gr00t_answer(values)) as peer:
        found = probe.examine(f"gr00t:port={peer.port}")
        assert found[-1][2] == probe.FORGETS and peer.resets == 8


def test_the_command_on_our_own_server(capsys):
    server = serve.PolicyServer("random", port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    assert main(["doctor", "--policy", f"openpi:port={server.port}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    server: server: bench_tasks")
    assert lines[1].startswith("ok    answer: 10 control periods in ")
    assert lines[2] == f"ok    memory: {probe.FORGETS}"
    server.shutdown()
    thread.join(5)
    assert main(["doctor", "--policy", f"openpi:port={server.port},connect_s=0.1"]) == 1
    assert "connection refused" in capsys.readouterr().out


def test_the_command_on_what_is_no_server(capsys):
    assert main(["doctor", "--policy", "hold"]) == 2
    assert "policy hold runs in this process" in capsys.readouterr().err
    with pytest.raises(UsageError, match="unknown policy"):
        probe.examine("nonesuch")
