"""The process that talks to the robot: python -m hardware.unitree.bus FD.

Its setting `transport` says how: `dds`, Unitree's own topics and nothing of ROS, or `ros2`, the
same topics by a ROS 2 that knows unitree_hg.

FD is its end of a `link`; the settings are the first message. It tells the robot where its joints
are to be, at `rate_hz`, by `rt/arm_sdk` or `rt/lowcmd`, and its Dex3 hands; and reports what the
robot says. Nothing is sent before the robot has been heard. When commands stop, or the other side
ends (also by kill -9), the joints are held, and then let go of gently (`motion`).

It takes {"do": "move", "seq", "q", "tau", "due_ns"}, "hold" with the same but q, which brakes, and
{"do": "hand", "hand", "q"}; {"do": "start", "at_ns"}, to take the joints over now or not at all.
With the setting `let_go`, the torque that was fed forward, it takes over
what another bus, which has died, left in control, lets go of that, and ends.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import g1
from bench_tasks.robots.unitree_hg import (
    ARM_SDK,
    HAND_STATE,
    JOINTS,
    LOW_STATE,
    WEIGHT,
    decode,
    encode,
    hand_cmd,
    is_signed,
    motor_commands,
    signed,
)
from bench_tasks.vocabulary import ARMS
from hardware.link import Gone, Link, last_words
from hardware.unitree.guard import unsafe
from hardware.unitree.motion import SLACK_RAD, Follower, Limits

__all__ = ["Bus", "main"]

FIRST = {"arm_sdk": g1.LEGS, "low": 0}
"""The first joint that is commanded; the others up to the last are as well."""
DAMP_S = 2.0
"""How long a bus whose commander has gone goes on damping before it ends."""
LAST_WORD_S = 0.2
"""How long the weight 0 is still sent."""
GAP_S = 0.04
"""A longer time without the robot's state, or without a turn of this loop, is reported; so all of
50 ms are, however they look from the robot's end."""
LOST_S = 0.1
SAY_AGAIN_S = 1.0
"""So often it is said at most that messages of the robot are not used."""
START_AGE_S = 1.0
"""A start that was asked for longer ago is none."""
UNSAID = 50
"""So many reports wait for the other side to read; of more, their number."""
HAND_KP, HAND_KD = 1.5, 0.2
"""As in Unitree's teleoperation (xr_teleoperate, robot_hand_unitree.py)."""


class Bus:
    """One robot and its link to the world node."""

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Open the topics. BenchError when this robot must not be talked to, or cannot be."""
        self._link, self._set = link, settings
        self._low = settings["control"] == "low"
        self._joints = slice(FIRST[settings["control"]], JOINTS)
        self._topic = "rt/lowcmd" if self._low else ARM_SDK
        self._hands = ARMS if settings["hands"] == "dex3" else ()
        self._dds = _topics(
            settings, (self._topic, *(f"rt/dex3/{hand}/cmd" for hand in self._hands)),
            ("rt/lowstate", *(f"rt/dex3/{hand}/state" for hand in self._hands)),
        )  # fmt: skip
        self._kp = np.concatenate([g1.KP[: g1.LEGS], g1.UPPER_KP])[self._joints]
        self._kd = np.concatenate([g1.KD[: g1.LEGS], g1.UPPER_KD])[self._joints]
        self._follower = Follower(Limits(
            g1.JOINT_NAMES[self._joints], g1.LIMITS_RAD[self._joints],
            settings["speed"] * g1.MAX_VELOCITY[self._joints], settings["max_jump_rad"],
            settings["stale_s"], settings["release_s"], settings["ramp_s"], self._low,
        ))  # fmt: skip
        self._state: np.ndarray | None = None
        self._state_s = self._turn_s = self._damp_until_s = self._silent_from_s = 0.0
        self._hand_q: dict[str, np.ndarray] = {}
        self._hand_state: dict[str, np.ndarray] = {}
        self._told: tuple[Any, ...] = ()
        self._unsaid: deque[dict[str, Any]] = deque()
        self._unsaid_more = 0
        self._bad = self._bad_said = self._turns = self._heard = 0
        self._bad_s = float("-inf")
        self._rate_hz, self._heard_hz, self._rate_s = 0.0, 0.0, time.monotonic()
        self._start = self._gone = self._end = False
        self._let_go: list[float] | None = settings.get("let_go")
        self._lost, self._repeats = True, False

    @property
    def still_held(self) -> bool:
        """Whether what another one left in control has not been let go of."""
        return self._let_go is not None or self._follower.mode not in ("idle", "damping")

    def end(self) -> None:
        """Let go, then end the process."""
        self._end = True

    def run(self) -> None:
        """Serve until told to end, or until the other side is gone."""
        period = 1.0 / self._set["rate_hz"]
        due = self._turn_s = time.monotonic()
        while not self._turn(period):
            due = max(due + period, time.monotonic() - period)
            time.sleep(max(0.0, due - time.monotonic()))
        self._dds.close()

    def _turn(self, period: float) -> bool:
        """One turn; whether it was the last."""
        now = time.monotonic()
        stalled, self._turn_s = now - self._turn_s, now
        if stalled > GAP_S:
            self._say({"gap": f"this process did not run for {stalled * 1e3:.0f} ms"})
        self._listen(now)
        self._hear(now)
        if self._state is None:
            self._start = False
        else:
            self._control(now, min(stalled, 5 * period))
        self._report(now)
        if not (self._gone or self._end):
            return False
        mode = self._follower.mode
        if mode == "damping":
            self._damp_until_s = self._damp_until_s or now + DAMP_S
            return now > self._damp_until_s
        if mode != "idle":
            self._follower.release()
        return mode == "idle" and now > self._silent_from_s

    # -- the robot -------------------------------------------------------------------------------

    def _hear(self, now: float) -> None:
        """What the robot says; what cannot be used is as if it had not been said."""
        silent, known, heard = now - self._state_s, self._state is not None, self._heard
        for data in self._dds.take("rt/lowstate"):
            try:
                self._take_state(data)
            except ValueError as error:
                self._unusable(now, str(error))
        for hand in self._hands:
            for data in self._dds.take(f"rt/dex3/{hand}/state"):
                try:
                    self._hand_state[hand] = decode(data, HAND_STATE)["motor"]
                except ValueError as error:
                    self._unusable(now, str(error))
        if self._heard > heard:
            if known and silent > GAP_S:
                self._say({"gap": f"no rt/lowstate for {silent * 1e3:.0f} ms"})
            self._state_s, self._lost = now, False
        elif known and silent > LOST_S and not self._lost:
            self._lost = True
            why = ": its tick stands still" if self._repeats else ""
            self._say({"gap": f"no rt/lowstate for {silent * 1e3:.0f} ms, and still none{why}"})

    def _take_state(self, data: bytes) -> None:
        """A state of the robot, if it is a new one; ValueError when it cannot be one."""
        state = decode(data, LOW_STATE)
        if not is_signed(state):
            raise ValueError("its checksum is wrong")
        motors = state["motor"][:JOINTS]
        numbers = {name: motors[name] for name in ("q", "dq", "tau_est")}
        for name, values in (numbers | {"quaternion": state["quaternion"]}).items():
            if not np.isfinite(values).all():
                raise ValueError(f"its {name} holds a number that is not finite")
        # Somebody may repeat it; a robot that was switched on again counts from 0.
        self._repeats = self._state is not None and bool(state["tick"] == self._state["tick"])
        if not self._repeats:
            self._state = state
            self._heard += 1

    def _unusable(self, now: float, why: str) -> None:
        self._bad += 1
        if now - self._bad_s > SAY_AGAIN_S:
            count, self._bad_said, self._bad_s = self._bad - self._bad_said, self._bad, now
            said = "a message" if count == 1 else f"{count} messages"
            self._say({"gap": f"{said} of the robot not used: {why}"})

    def _measured(self, name: str) -> np.ndarray:
        assert self._state is not None
        return self._state["motor"][name][:JOINTS].astype(np.float64)

    def _control(self, now: float, dt: float) -> None:
        follower, q = self._follower, self._measured("q")
        if self._let_go is not None:
            follower.take_over(q[self._joints], self._let_go, now)
            self._let_go, self._end = None, True
        # Not later, when nobody expects it any more.
        start, self._start = self._start, False
        if start and not self._lost and follower.mode in ("idle", "damping"):
            self._hand_q.clear()
            follower.engage(q[self._joints], now)
        follower.step(now, dt)
        if follower.mode != "idle":
            self._silent_from_s = now + LAST_WORD_S
        elif now > self._silent_from_s:
            return
        assert self._state is not None
        machine = int(self._state["mode_machine"])
        if follower.mode == "damping":
            zero = np.zeros(len(self._kp))
            message = motor_commands(
                self._joints, q[self._joints], zero, zero, zero, g1.DAMPING[self._joints], machine
            )
        else:
            message = motor_commands(
                self._joints, follower.q, follower.v, follower.tau, self._kp, self._kd, machine
            )
        if not self._low:
            message["motor"][WEIGHT]["q"] = follower.weight
        self._dds.write(self._topic, encode(signed(message)))
        for hand, wanted in self._hand_q.items():
            kp = HAND_KP if follower.mode in ("engaging", "following") else 0.0
            self._dds.write(f"rt/dex3/{hand}/cmd", encode(hand_cmd(wanted, kp, HAND_KD)))

    # -- the link --------------------------------------------------------------------------------

    def _listen(self, now: float) -> None:
        """Take what has come; of commands the newest is the one that counts."""
        if self._gone:
            return
        try:
            messages = self._link.receive()
        except Gone:
            self._gone = True
            return
        newest = None
        for message in messages:
            if not isinstance(message, dict):
                continue
            if message.get("do") in ("move", "hold"):
                newest = message
            else:
                self._obey(message, now)
        if newest is None or self._end:
            return
        refused = self._move(newest, now)
        if refused:
            self._say({"refused": refused, "seq": newest["seq"]})

    def _move(self, message: dict[str, Any], now: float) -> str:
        seq, tau, due_s = message["seq"], message["tau"], message["due_ns"] / 1e9
        if message["do"] == "hold":
            return self._follower.hold(seq, tau, due_s, now)
        if self._lost:
            return "no rt/lowstate"
        return self._follower.command(seq, message["q"], tau, due_s, now)

    def _obey(self, message: dict[str, Any], now: float) -> None:
        what = message.get("do")
        if what == "start":
            self._start = now - message["at_ns"] / 1e9 < START_AGE_S
        elif what == "hand":
            self._take_hand(message["hand"], message["q"])

    def _take_hand(self, hand: str, q: list[float]) -> None:
        wrong = ""
        if hand not in self._hands:
            wrong = f"there is no {hand} Dex3 hand"
        elif len(q) != 7 or not np.isfinite(q).all():
            wrong = f"the {hand} hand cannot be told {q}"
        else:
            low, high = g1.DEX3_RAD[hand].T
            over = np.maximum(low - q, q - high)
            if over.max() > SLACK_RAD:
                k = int(over.argmax())
                wrong = (f"{q[k]:g} rad of joint {k} of the {hand} hand, whose range is "
                         f"{low[k]:g} to {high[k]:g}")  # fmt: skip
        if wrong:
            self._say({"refused": wrong, "seq": -1})
        else:
            self._hand_q[hand] = np.array(q, dtype=np.float64)

    def _say(self, message: dict[str, Any]) -> None:
        """Report something, in order, as soon as the other side reads."""
        if len(self._unsaid) < UNSAID:
            self._unsaid.append(message)
        else:
            self._unsaid_more += 1
        self._catch_up()

    def _catch_up(self) -> None:
        while self._unsaid and self._sent(self._unsaid[0]):
            self._unsaid.popleft()
        if self._unsaid_more and not self._unsaid:
            self._unsaid.append({"gap": f"{self._unsaid_more} more reports are lost"})
            self._unsaid_more = 0

    def _sent(self, message: dict[str, Any]) -> bool:
        try:
            return self._link.send(message)
        except Gone:
            self._gone = True
            return False

    def _report(self, now: float) -> None:
        follower = self._follower
        self._catch_up()
        told = follower.mode, self._lost
        # Without a state it is this that says that there is still somebody.
        alive = self._state is None and self._turns % self._set["report_every"] == 0
        if (told != self._told or alive) and self._sent({"mode": told[0], "lost": told[1]}):
            self._told = told
        self._turns += 1
        if now - self._rate_s > 1.0:
            self._rate_hz, self._heard_hz = self._turns / (now - self._rate_s), self._heard / (
                now - self._rate_s)  # fmt: skip
            self._turns, self._heard, self._rate_s = 0, 0, now
        if self._state is None or self._turns % self._set["report_every"]:
            return
        state = self._state
        # Whoever takes over goes on from `told`, which is nowhere but here before.
        free = follower.mode in ("idle", "damping")
        reference = self._measured("q")[self._joints] if free else follower.q
        self._sent({
            "mode": follower.mode, "lost": self._lost,
            "state": {
                "time_ns": int(self._state_s * 1e9), "quaternion": _short(state["quaternion"]),
                **{name: _short(self._measured(key)) for name, key in
                   (("q", "q"), ("dq", "dq"), ("tau", "tau_est"))},
                "told": _short(reference), "weight": round(follower.weight, 4),
                "seq": follower.seq, "rests": follower.at_rest, "bad": self._bad,
                "rate_hz": round(self._rate_hz, 1), "heard_hz": round(self._heard_hz, 1),
                "hands": {hand: _short(m["q"]) for hand, m in self._hand_state.items()},
            }
        })  # fmt: skip


def _topics(settings: dict[str, Any], out: tuple[str, ...], into: tuple[str, ...]) -> Any:
    """The robot's topics by DDS, or by ROS 2; each in an environment that has no need of the other.

    BenchError when this robot must not be talked to, or cannot be.
    """
    if settings["transport"] == "ros2":
        from hardware.unitree.topics_ros import VERSION, RosTopics

        _guard(settings, VERSION)
        return RosTopics(settings["domain"], out, into)
    from bench_tasks.robots.unitree_dds import VERSION, Dds

    _guard(settings, VERSION)
    return Dds(settings["domain"], settings["interface"], out, into)


def _guard(settings: dict[str, Any], version: str) -> None:
    reason = unsafe(settings["interface"], version, settings["accept_cyclonedds"])
    if reason:
        raise BenchError(reason)


def _short(values: np.ndarray) -> list[float]:
    return np.asarray(values, dtype=np.float64).round(6).tolist()


def main() -> None:
    """Run one robot's bus until the other side of the link ends."""
    # Ctrl-C reaches the whole group; the arms must be let go of first, which `Gone` brings about.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link.of(int(sys.argv[1]))
    try:
        settings = link.settings()
        bus = Bus(link, settings)
    except Gone:
        return
    except BenchError as error:
        link.send({"mode": "refused", "lost": True, "fault": str(error)})
        sys.exit(2)
    signal.signal(signal.SIGTERM, lambda *_: bus.end())
    with last_words(link):
        bus.run()
    if settings.get("let_go") is not None and bus.still_held:
        sys.exit(3)


if __name__ == "__main__":
    main()
