"""Agents that fail in many ways, for the same failure over ROS and in one process."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ActionChunk, Answer, Metadata, Plan, SkillCall
from policies.floors import HoldPolicy

__all__ = ["PLANNERS", "POLICIES", "register"]


class Malformed:
    """Its model's reply cannot be read."""

    metadata = Metadata("malformed", "1")

    def reset(self, scene, seed):
        """Begin."""

    def observe(self, observation):
        """See."""

    def plan(self, request):
        """Give a plan that could not be read."""
        return Plan((), "gibberish", 5, {"prompt": "lift"}, "no JSON in it")

    def ask(self, question, observation):
        """Give an answer that could not be read."""
        return Answer({}, "gibberish", 5, {"prompt": "which"}, "no JSON in it")


class Silent(Malformed):
    """Its numbers are numpy's; after its first plan its server is not there."""

    def plan(self, request):
        """Move up a little, then fail, with a transcript."""
        if request.turn == 0:
            up = SkillCall("move_by", "left", {"offset": np.array([0.0, 0.0, 0.02], np.float32)})
            return Plan(((up,),), latency_ns=np.int64(5), transcript={"mean": np.float64(0.5)})
        error = BenchError("server: refused")
        error.transcript = {"attempts": 3}
        raise error


class Crashes(Malformed):
    """It has a bug."""

    def plan(self, *_):
        """Crash."""
        raise ValueError("a\nb")

    ask = plan


class NotFinite(HoldPolicy):
    """Its sixth action holds NaN, from state 20 on."""

    def infer(self, observation):
        """Give a chunk of ten."""
        chunk = super().infer(observation)
        if observation.state.seq < 20 or chunk.needs_plan:
            return chunk
        values = np.array(chunk.values)
        values[5, 0] = np.nan
        return replace(chunk, values=values)


class WrongSeq(HoldPolicy):
    """It answers another state."""

    def infer(self, observation):
        """Give a chunk for the state before."""
        return replace(super().infer(observation), seq=observation.state.seq - 1)


class PolicyCrashes(HoldPolicy):
    """It has a bug."""

    def infer(self, observation):
        """Crash."""
        raise ZeroDivisionError("1/0")


class Waves(HoldPolicy):
    """It swings the arms about where they are: what it answers depends on what was executed."""

    metadata = Metadata("waves", "1")
    slow_at: tuple[int, float] = (0, 0.0)

    def infer(self, observation):
        """Give 24 actions, the first of which is one period ahead; from state 150 on no more."""
        state = observation.state
        if state.seq >= 150:
            raise BenchError("that was all")
        if self.slow_at[0] and state.seq >= self.slow_at[0]:
            type(self).slow_at, wait_s = (0, 0.0), self.slow_at[1]
            time.sleep(wait_s)
        ahead = state.seq + 1 + np.arange(24)
        joints = [k for k in range(16) if k not in (7, 15)]
        values = np.tile(state.command, (24, 1))
        swing = 0.3 * (np.sin(0.05 * ahead) - np.sin(0.05 * state.seq))
        values[:, joints] = state.joint_position + swing[:, None] * np.cos(np.arange(14))
        return ActionChunk(state.seq, values)


class Jumps(HoldPolicy):
    """Its left arm is to be somewhere else at once; from state 30 on no more."""

    def infer(self, observation):
        """Give ten actions a radian away."""
        state = observation.state
        if state.seq >= 30:
            raise BenchError("that was all")
        values = np.tile(state.command, (10, 1))
        values[:, 0] += 1.0
        return ActionChunk(state.seq, values)


class SlowOnce(Waves):
    """Its first answer from state 60 on takes a second."""

    metadata = Metadata("slow_once", "1")

    def reset(self, scene, seed):
        """Be slow once in this episode."""
        type(self).slow_at = (60, 1.0)


class SeesDepth(HoldPolicy):
    """It says what it saw at state 30: pictures with depth of the very state it answers."""

    metadata = Metadata("sees_depth", "1", ("head", "third"), depth=True)

    def infer(self, observation):
        """Hold, then tell a hash of all that was measured."""
        state, seen = observation.state, hashlib.sha256()
        for frame in observation.frames:
            if frame.seq != state.seq or frame.depth is None:
                raise BenchError(f"state {state.seq}: no depth of {frame.camera}")
            seen.update(repr(frame).encode())
        if state.seq >= 30:
            raise BenchError(f"saw {seen.hexdigest()[:16]}")
        return super().infer(observation)


PLANNERS = {"malformed": Malformed, "silent": Silent, "crashes": Crashes}
POLICIES = {"not_finite": NotFinite, "wrong_seq": WrongSeq, "crashes": PolicyCrashes,
            "sees_depth": SeesDepth, "waves": Waves, "slow_once": SlowOnce,
            "jumps": Jumps}  # fmt: skip


def register() -> None:
    """Make them known by name in this process."""
    import policies

    for known, new in ((policies.PLANNERS, PLANNERS), (policies.POLICIES, POLICIES)):
        known.update({name: f"tests.ros.agents:{kind.__name__}" for name, kind in new.items()})
