"""Kinds of bad commands: what is asked for is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import ActionChunk
from benchmarks.safety.oracle import HIGH, LOW
from benchmarks.safety.robot import DT, HANDS, JOINTS, speed
from benchmarks.safety.situations import CHUNK, Case, calm, min_jerk

__all__ = ["SPOILT", "UNTIMELY", "WRONG"]

Points = dict[str, np.ndarray]


def spoilt(kind: str, good: np.ndarray, command: np.ndarray, rng: np.random.Generator):
    """The chunk that is asked for instead of the good one (n, 16), starting behind `command`."""
    bad = good[:CHUNK].copy()
    row, column = int(rng.integers(len(bad))), int(rng.integers(16))
    arm_columns = JOINTS[int(rng.integers(14))]
    if kind == "not finite":
        bad[row, column] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind == "length":
        return [bad[:, :15], bad[:, :14], np.zeros((5, 17)), np.zeros((0, 16)), bad.ravel(),
                np.tile(command, (300, 1)), np.zeros((2, 3, 16))][int(rng.integers(7))]  # fmt: skip
    elif kind == "not numbers":
        return [[["a"] * 16], None, "open", [[1.0], [1.0, 2.0]], {"x": 1}][int(rng.integers(5))]
    elif kind == "order":
        orders = (np.r_[8:16, 0:8], np.r_[6:-1:-1, 7, 14:7:-1, 15], np.arange(15, -1, -1),
                  np.r_[0:7, 8:15, 7, 15], rng.permutation(16))  # fmt: skip
        bad = bad[:, orders[int(rng.integers(len(orders)))]]
    elif kind == "degrees":
        bad[:, JOINTS] = np.rad2deg(bad[:, JOINTS])
    elif kind == "millimetres":
        bad[:, HANDS] = 1e3 * bad[:, HANDS] + 1.0
    elif kind == "position":
        joint = int(rng.integers(14))
        # Not by the end's sign: joint 4 bends one way only.
        end, beyond = (HIGH[joint], 1) if rng.random() < 0.5 else (LOW[joint], -1)
        bad[row:, JOINTS[joint]] = end + beyond * rng.uniform(1e-3, 1.0)
    elif kind == "jump":
        bad[row:, arm_columns] += rng.choice([-1, 1]) * rng.uniform(0.02, 1.0)
    elif kind == "velocity":
        factor = rng.uniform(1.5, 6.0)
        last = command + factor * (good[min(len(good), CHUNK) - 1] - command)
        bad = command + (last - command) * (np.arange(1, CHUNK + 1) / CHUNK)[:, None]
        bad[:, HANDS] = command[HANDS]
    elif kind == "acceleration":
        bad[row:, arm_columns] += rng.uniform(0.005, 0.05) * (-1.0) ** np.arange(len(bad) - row)
    return bad


def ask_spoilt(kind: str, case: Case) -> None:
    """Somebody asks for that."""
    robot = case.robot
    robot.ask(robot.seq, spoilt(kind, case.ahead, robot.executed[-1], case.rng))


def ask_untimely(kind: str, case: Case) -> None:
    """A good path, for another state."""
    seq, rng = case.robot.seq, case.rng
    answers = {
        "stale": seq - CHUNK - int(rng.integers(50)), "future": seq + 1 + int(rng.integers(50)),
        "out of order": -1 - int(rng.integers(3)), "replayed": 0,
    }[kind]  # fmt: skip
    case.unhurried = True
    path = np.concatenate([case.ahead, np.tile(case.ahead[-1], (60, 1))])
    case.robot.ask(answers, path[:CHUNK])


# -- not what a message should be ----------------------------------------------------------------


def wrong_message(case: Case) -> None:
    """Cut off, of another layout or period, or rubbish."""
    robot, chunk = case.robot, ActionChunk(case.robot.seq, case.ahead[:CHUNK])
    good = cdr.encode_chunk(chunk, 0, 20_000_000)
    choice = int(case.rng.integers(4))
    if choice == 0:
        bad = good[: int(case.rng.integers(len(good) - 8))]
    elif choice == 1:
        bad = good.replace(b"joint_position", b"joint_velocity")
    elif choice == 2:
        bad = cdr.encode_chunk(chunk, 0, 10_000_000)
    else:
        bad = bytes(case.rng.integers(0, 256, 300, dtype=np.uint8))
    robot.take(robot.supervisor.on_message(bad, robot.now_s))


class Untold:
    """Looks like an array, and can be neither read nor shown."""

    def __array__(self, *_, **__):
        """As a broken one."""
        raise RuntimeError

    def __repr__(self) -> str:
        """As a broken one."""
        raise RuntimeError


def wrong_type(case: Case) -> None:
    """A number of a state that is none, or that no state has; actions or a chunk that are none."""
    robot, rng = case.robot, case.rng
    seq, good = robot.seq, case.ahead[:CHUNK]
    choice = int(rng.integers(4))
    if choice == 0:
        numbers = (float(seq), seq + 0.5, np.float64(seq), np.nan, -np.inf, 1e300, None, True,
                   str(seq), [seq], {}, complex(seq), Untold())  # fmt: skip
        robot.ask(numbers[int(rng.integers(len(numbers)))], good)
    elif choice == 1:
        case.unhurried = True
        numbers = (2**63, 2**70, 10**400, -(2**31), -(10**400), np.int64(-9))
        robot.ask(numbers[int(rng.integers(len(numbers)))], good)
    elif choice == 2:
        values = (Untold(), np.array(3.0), [[10**400] * 16], good.tobytes(), good.astype(str),
                  good + 1j, good.astype("datetime64[s]"), good > 0, np.ma.masked_array(good, True))
        robot.ask(seq, values[int(rng.integers(len(values)))])
    else:
        chunks = (None, seq, good, {"seq": seq, "values": good}, (seq, good), Untold())
        robot.take(robot.supervisor.on_chunk(chunks[int(rng.integers(len(chunks)))], robot.now_s))


# -- more, or elsewhere, than the limits allow ---------------------------------------------------


def jerk(case: Case) -> None:
    """Data sheet limits cannot be exceeded at 50 Hz by jerk alone: narrower ones."""
    case.jerk = 40.0
    case.narrow(replace(case.maker.limits, jerk=np.full(14, case.jerk)))
    bad = case.ahead[:CHUNK].copy()
    row, joint = int(case.rng.integers(2, CHUNK)), JOINTS[int(case.rng.integers(14))]
    bad[row:, joint] += 0.5 * 5.0 * (np.arange(len(bad) - row) * DT) ** 2
    case.robot.ask(case.robot.seq, bad)


def workspace(case: Case) -> None:
    """A wall in the middle of the way; a stop must keep on this side of it."""
    arms, ahead = case.maker.arms, case.ahead
    points = np.array([
        [arms.forward(arm, row[8 * k : 8 * k + 7])[:3] for row in (ahead[0], ahead[CHUNK - 1])]
        for k, arm in enumerate(("left", "right"))
    ])  # fmt: skip
    side = int(np.argmax(np.abs(points[:, 1] - points[:, 0]).max(1)))
    axis = int(np.argmax(np.abs(points[side, 1] - points[side, 0])))
    boxes = np.array([[(-9.0, -9.0, -9.0), (9.0, 9.0, 9.0)]] * 2)
    way = points[side, 1, axis] - points[side, 0, axis]
    boxes[side, 1 if way > 0 else 0, axis] = points[side, 0, axis] + 0.6 * way
    case.boxes = boxes
    case.narrow(replace(case.maker.limits, workspace={"left": boxes[:1], "right": boxes[1:]}))
    case.ask()


def arms_together(case: Case) -> None:
    """Both hands to the same place."""

    def draw() -> Points:
        same = case.rng.uniform((0.35, -0.1, 0.25), (0.55, 0.1, 0.5))
        return {"left": same, "right": same}

    drive(case, draw)


def into_the_table(case: Case) -> None:
    """One hand, downwards."""
    side = ("left", "right")[int(case.rng.integers(2))]

    def draw() -> Points:
        y = case.rng.uniform(0.1, 0.5) * (1 if side == "left" else -1)
        return {side: np.array([case.rng.uniform(0.35, 0.55), y, -0.06])}

    drive(case, draw)


def drive(case: Case, draw: Callable[[], Points]) -> None:
    """The hands, pointing down, by calm chunks to where they must not go, until a no."""
    robot, case.whole = case.robot, True
    while speed(robot.executed) > 0:  # to rest first, by the stop behind the last chunk
        robot.step()
    begin = robot.executed[-1]
    while (towards := reaching(case, begin, draw())) is None:
        pass  # not every point can be reached from every place
    path = min_jerk(begin, towards, calm(begin, towards))
    path = np.concatenate([path, np.tile(path[-1], (CHUNK, 1))])
    start = robot.seq
    for at in range(0, len(path) - CHUNK + 1, CHUNK):
        decision = robot.ask(start + at, path[at : at + CHUNK])
        if any(i.action == "refused" for i in decision.interventions):
            return
        for _ in range(CHUNK):
            robot.step()
    case.harmless = True


def reaching(case: Case, begin: np.ndarray, points: Points) -> np.ndarray | None:
    """The action (16,) with the hands at `points`, pointing down; None when one cannot be."""
    towards = begin.copy()
    for arm, point in points.items():
        k = 8 * (arm == "right")
        pose = np.array([*point, 0.0, 1.0, 0.0, 0.0])
        joints = case.maker.arms.inverse(arm, pose, begin[k : k + 7])
        if joints is None:
            return None
        towards[k : k + 7] = joints
    return towards


SPOILT = {
    kind: partial(ask_spoilt, kind)
    for kind in ("not finite", "length", "not numbers", "order", "degrees", "millimetres",
                 "position", "jump", "velocity", "acceleration")
}  # fmt: skip
UNTIMELY = {
    kind: partial(ask_untimely, kind) for kind in ("stale", "future", "out of order", "replayed")
}
WRONG = {
    "jerk": jerk, "workspace": workspace, "arms together": arms_together,
    "into the table": into_the_table, "wrong message": wrong_message, "wrong type": wrong_type,
}  # fmt: skip
