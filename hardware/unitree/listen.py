"""Listens to a G1 for some seconds: python -m hardware.unitree.listen SETTINGS.

Runs in the driver's environment and tells the robot nothing; it asks which program controls it.
SETTINGS is JSON: `interface`, `domain`, `accept_cyclonedds` and `seconds`. What was heard is one
line of JSON on stdout, what it means is found out by `checkup`.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from cyclonedds.builtin import (
    BuiltinDataReader,
    BuiltinTopicDcpsParticipant,
    BuiltinTopicDcpsPublication,
    DcpsEndpoint,
    DcpsParticipant,
)

from bench_tasks.errors import BenchError
from bench_tasks.robots.unitree_dds import VERSION, Dds
from bench_tasks.robots.unitree_hg import HAND_STATE, JOINTS, LOW_STATE, decode, is_signed
from bench_tasks.robots.unitree_rpc import CHECK_MODE, MOTION_SWITCHER, Client
from bench_tasks.vocabulary import ARMS
from hardware.unitree.guard import unsafe

__all__ = ["listen", "main"]

TURN_S = 0.001
FIND_S = 1.0
"""Programs that have not been found by then are not there."""
ASKED, ANSWER_S = 8, 0.5
_MANY = 1000
_OTHERS = (
    (BuiltinTopicDcpsParticipant, DcpsParticipant), (BuiltinTopicDcpsPublication, DcpsEndpoint),
)  # fmt: skip
"""What DDS itself says of others, and of what kind that is."""


class _Heard:
    """What the robot says, counted."""

    def __init__(self) -> None:
        self.unusable: Counter[str] = Counter()
        self.machines: Counter[int] = Counter()
        self.ticks: list[int] = []
        self.gap_s = self.stalled_s = 0.0
        self.hands: Counter[str] = Counter()
        self.newest: np.ndarray | None = None
        self._last_s = 0.0

    def take(self, data: bytes, now_s: float) -> None:
        """A LowState."""
        try:
            state = decode(data, LOW_STATE)
        except ValueError as error:
            self.unusable[str(error)] += 1
            return
        motors = state["motor"][:JOINTS]
        if not is_signed(state):
            self.unusable["a wrong checksum"] += 1
        elif not all(np.isfinite(motors[name]).all() for name in ("q", "dq", "tau_est")):
            self.unusable["a number that is not finite"] += 1
        else:
            if self.newest is not None:
                self.gap_s = max(self.gap_s, now_s - self._last_s)
            self.newest, self._last_s = state, now_s
            self.machines[int(state["mode_machine"])] += 1
            self.ticks.append(int(state["tick"]))

    def take_hand(self, hand: str, data: bytes) -> None:
        """A Dex3 hand's state."""
        try:
            decode(data, HAND_STATE)
            self.hands[hand] += 1
        except ValueError:
            self.unusable[f"a state of the {hand} hand that is none"] += 1

    def told(self, seconds: float, now_s: float) -> dict[str, Any]:
        """All of it."""
        state = self.newest
        if state is not None:
            self.gap_s = max(self.gap_s, now_s - self._last_s)
        return {
            "states": len(self.ticks), "rate_hz": len(self.ticks) / seconds, "gap_s": self.gap_s,
            "stalled_s": self.stalled_s, "unusable": dict(self.unusable),
            "machines": sorted(self.machines), "ticks": self.ticks, "hands": dict(self.hands),
            "q": [] if state is None else state["motor"]["q"][:JOINTS].tolist(),
            "quaternion": [] if state is None else state["quaternion"].tolist(),
        }  # fmt: skip


def listen(settings: dict[str, Any]) -> dict[str, Any]:
    """What is heard; BenchError when this robot must not be talked to, or cannot be."""
    dds = Dds(
        settings["domain"], settings["interface"], (),
        ("rt/lowstate", *(f"rt/dex3/{hand}/state" for hand in ARMS)),
    )  # fmt: skip
    heard, client = _Heard(), Client(dds, MOTION_SWITCHER)
    others = [(BuiltinDataReader(dds.participant, topic), kind) for topic, kind in _OTHERS]
    time.sleep(FIND_S)
    for topic in ("rt/lowstate", *(f"rt/dex3/{hand}/state" for hand in ARMS)):
        dds.take(topic)  # what has waited since says nothing of how it comes
    begun = last = time.monotonic()
    while last - begun < settings["seconds"]:
        now = time.monotonic()
        heard.stalled_s, last = max(heard.stalled_s, now - last), now
        for data in dds.take("rt/lowstate"):
            heard.take(data, now)
        for hand in ARMS:
            for data in dds.take(f"rt/dex3/{hand}/state"):
                heard.take_hand(hand, data)
        time.sleep(TURN_S)
    own = dds.participant.guid
    participants, writers = (
        [one for one in reader.take(_MANY) if isinstance(one, kind)] for reader, kind in others
    )
    topics = Counter(w.topic_name for w in writers if w.participant_key != own)
    mode, round_trips = None, []
    for _ in range(ASKED):
        asked = time.monotonic()
        answer = client.ask(CHECK_MODE, ANSWER_S)
        if answer is None and mode is None:
            break
        if answer is not None:
            mode = str(answer.get("name", ""))
            round_trips.append(time.monotonic() - asked)
    return {
        **heard.told(last - begun, last), "mode": mode, "round_trips_s": round_trips,
        "programs": sum(p.key != own for p in participants), "writers": dict(topics),
    }  # fmt: skip


def main() -> None:
    """Listen, and print what was heard, or why nothing could be."""
    settings = json.loads(sys.argv[1])
    found: dict[str, Any] = {"cyclonedds": VERSION}
    reason = unsafe(settings["interface"], VERSION, settings["accept_cyclonedds"])
    if reason:
        found |= {"unsafe": reason}
    else:
        try:
            found |= listen(settings)
        except BenchError as error:
            found |= {"cannot": str(error)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
