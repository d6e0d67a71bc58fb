"""A thousand episodes against servers that fail in every way: none hangs, nothing bad moves an arm.

A few of them in the default suite; all with `-m slow`.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import drill_world
import numpy as np
import peers
import pytest

import policies

HANG_S = 10.0
"""Beyond the deadline: no episode of at most 0.6 s of a light world may last as long."""
CHUNKS = 3


class Site:
    """One server of a wire, whose next fault can be set; it answers well until then."""

    def __init__(self, wire: str) -> None:
        self.wire, self.answered, self.bad = wire, 0, None
        self.at = 0
        self.served: list[np.ndarray] = []

    def begin(self, at: int, bad: Callable | None) -> None:
        self.at, self.bad, self.answered, self.served = at, bad, 0, []

    def answer(self, observation, connection):
        values = peers.good_values(self._command(observation))
        self.answered += 1
        if self.bad is not None and self.answered > self.at:
            return self.bad(values, connection, self)
        self.served.append(values)
        return self.wrap(values)

    def _command(self, observation) -> np.ndarray:
        return np.asarray(observation["command"], np.float64)

    def wrap(self, values):
        return {"actions": values}


class Gr00tSite(Site):
    def _command(self, observation):
        s = {k: np.asarray(v[0, 0], np.float64) for k, v in observation["state"].items()}
        return np.concatenate([s["left"], s["right"]])

    def wrap(self, values):
        if not isinstance(values, np.ndarray):
            return [{"actions": values}, {}]
        return [{"actions": values[None]}, {}]


def _spoilt(spoil: Callable) -> Callable:
    return lambda values, connection, site: site.wrap(spoil(values))


def faults(wire: str, deadline_s: float) -> dict[str, tuple[Callable, str]]:
    """What -> (what the server does, words of the reason), for a wire."""
    found = {what: (_spoilt(spoil), why) for what, (spoil, why) in peers.BAD_VALUES.items()}
    if wire == "gr00t":  # its answers have one dimension more, of which a single one is taken off
        found = {w: f for w, f in found.items() if w not in (
            "one row without its dimension", "a dimension too many")}  # fmt: skip
    for what, (message, why) in peers.BAD_BYTES.items():
        found[what] = (lambda v, c, s, message=message: message(), why)
    if wire != "gr00t":
        for what, (act, why) in peers.BAD_WIRE.items():
            found[what] = (lambda v, c, s, act=act: act(c), why)
        found["an error as text"] = (lambda v, c, s: "Trace\nValueError: no", "ValueError: no$")
    else:
        found["an error"] = (lambda v, c, s: {"error": "no luck"}, "no luck$")
        found["it starts anew"] = (lambda v, c, s: None, "no complete answer")
        found["silence"] = (
            lambda v, c, s: time.sleep(2 * deadline_s) or b"", "no complete answer",
        )
        found["17 MB"] = (lambda v, c, s: bytes(17 * 2**20), "no complete answer")
    return found


GR00T = """
format_version: 1
name: drill
arms: {left: [1, 2, 3, 4, 5, 6, 7], right: [1, 2, 3, 4, 5, 6, 7]}
state:
  - {key: [state, left], parts: [left.command, left.gripper_command], dtype: float64}
  - {key: [state, right], parts: [right.command, right.gripper_command], dtype: float64}
action: {rate_hz: 50, parts: [left.joints, left.gripper, right.joints, right.gripper]}
"""


@contextlib.contextmanager
def sites(folder: Path, deadline_s: float) -> Iterator[dict[str, tuple[Site, policies.Policy]]]:
    """A server and a client of each wire."""
    (folder / "drill.yaml").write_text(GR00T)
    deadline = f"deadline_s={deadline_s}"
    made = {wire: (Gr00tSite if wire == "gr00t" else Site)(wire) for wire in
            ("openpi", "dreamzero", "gr00t")}  # fmt: skip
    with (
        peers.OpenPIPeer(made["openpi"].answer) as openpi,
        peers.OpenPIPeer(made["dreamzero"].answer, endpoints=True) as dreamzero,
        peers.Gr00tPeer(made["gr00t"].answer) as gr00t,
    ):
        found = {}
        for wire, peer in (("openpi", openpi), ("dreamzero", dreamzero), ("gr00t", gr00t)):
            shape = folder / "drill.yaml" if wire == "gr00t" else "fr3_pair"
            found[wire] = (made[wire], policies.make_policy(
                f"{wire}:port={peer.port},embodiment={shape},{deadline},"
                f"first_{deadline},connect_s=2"
            ))  # fmt: skip
        yield found


def drill(episodes: int, folder: Path, deadline_s: float) -> Counter:
    """Run them; how many episodes ended in which way. Everything is asserted for each."""
    endings: Counter = Counter()
    rng = np.random.default_rng(0)
    with sites(folder, deadline_s) as found:
        plans = {}
        for wire in found:
            all_ways = [("good", (None, "")), *faults(wire, deadline_s).items()]
            plans[wire] = [all_ways[k] for k in rng.permutation(len(all_ways))]
        for episode in range(episodes):
            wire = list(found)[episode % 3]
            # Each wire goes through its faults in turn, so that every one has its share.
            what, (bad, why) = plans[wire][(episode // 3) % len(plans[wire])]
            site, policy = found[wire]
            # All answers are as quick as the first, so when the bad one comes is drawn.
            site.begin(int(rng.integers(0, CHUNKS)), bad)
            begun = time.monotonic()
            verdict, world = drill_world.run(policy, seed=episode)
            took = time.monotonic() - begun
            label = f"{wire}, {what}, episode {episode}: {verdict.cause} after {took:.2f} s"
            assert took < deadline_s + HANG_S, label
            executed = np.array(world.commands).reshape(-1, 16)
            allowed = np.array(site.served).reshape(-1, 16)
            if bad is None:
                assert verdict.cause.startswith("time limit"), label
            else:
                assert verdict.cause.startswith("policy error: policy server 127.0.0.1:"), label
                assert re.search(why, verdict.cause), label
                assert len(site.served) == site.at, label
            assert np.array_equal(executed, allowed), f"{label}: only what was good is executed"
            endings["good" if bad is None else "policy error"] += 1
    return endings


def test_some_of_the_thousand(tmp_path):
    assert drill(42, tmp_path, 1.0).total() == 42


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand(tmp_path):
    drill(60, tmp_path, 1.0)  # what is loaded once has been
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    endings = drill(1000, tmp_path, 1.0)
    assert endings["policy error"] + endings["good"] == 1000 and endings["good"] < 50
    time.sleep(1.0)
    assert threading.active_count() <= threads + 2, "no thread is left behind"
    assert len(os.listdir("/proc/self/fd")) <= files + 8, "no connection is left behind"
