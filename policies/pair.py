"""Two agents, one for each arm, that share nothing but the world, and a partner that may be odd.

Each agent is a world-action model that was trained `--apart`. It is shown what its own wrist camera
and the head camera see, its own joints, and the partner's as they were one look before
(`wam.apart`; at the first look nothing has moved yet). It predicts what both arms will do and
executes its own half. The other half is what it expects of its partner; how wrong that was is told
at the next look (`teamwork.PARTNER`).

The odd arm is `slow` or `fast`, its path followed at another pace, or a `stranger`: driven by any
other policy, which is shown everything, as it is used to, and of which one arm is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.robots.fr3 import MAX_GRIPPER_SPEED_M_S, MAX_VELOCITY
from bench_tasks.verdicts.teamwork import PARTNER, PARTNERS
from bench_tasks.vocabulary import (
    ARMS,
    FR3_PAIR,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
    WorldState,
)
from policies.wam.apart import columns, seen_by
from policies.wam.checkpoint import load_checkpoint
from policies.wam.policy import WamOptions, WamPolicy, particulars

__all__ = ["PairOptions", "PairPolicy", "paced"]

FACTORS = {"slow": 0.5, "fast": 2.0}


@dataclass(frozen=True)
class PairOptions:
    """`checkpoint`: of both agents, trained `--apart`. `partner`: one of `teamwork.PARTNERS`.

    `odd`: which arm the slow, fast or strange one is. `factor`: its pace, 0 for half or twice.
    `stranger`: the policy that drives it, as `--policy` takes it but with "+" between its options,
    such as `wam:checkpoint=FILE+steps=1`. `execute`: rows from look to look, 0: the
    checkpoint's stride. `steps`, `reuse`, `threads`: as of `wam`.
    """

    checkpoint: str = ""
    partner: str = "normal"
    odd: str = "right"
    factor: float = 0.0
    stranger: str = ""
    steps: int = 0
    execute: int = 0
    reuse: float = 1.0
    threads: int = 1


def paced(start: np.ndarray, path: np.ndarray, factor: float, period_s: float) -> np.ndarray:
    """One arm's commands (n, 8) followed at `factor` times their pace, from `start` (8,) on.

    Faster only as far as the joints and fingers can: a step that would be beyond their greatest
    speed takes as long as it must, but never longer than in `path`.
    """
    limit = np.append(MAX_VELOCITY, MAX_GRIPPER_SPEED_M_S) * period_s
    points = np.concatenate([start[None], path])
    least = (np.abs(np.diff(points, axis=0)) / limit).max(axis=1)
    took = np.maximum(1.0 / factor, np.minimum(least, 1.0))
    at = np.concatenate([[0.0], np.cumsum(took)])
    # The sum of many thirds is not whole: a last step of nothing is none.
    times = np.arange(1, int(np.ceil(at[-1] - 1e-9)) + 1)
    return np.stack([np.interp(times, at, column) for column in points.T], axis=1)


class PairPolicy:
    """Needs no plans."""

    Options = PairOptions

    def __init__(self, options: PairOptions | None = None) -> None:
        """Read the checkpoint; UsageError when it or an option is wrong."""
        self.options = asked = (options or PairOptions())
        if asked.partner not in PARTNERS:
            raise unknown("partner", asked.partner, PARTNERS)
        if asked.odd not in ARMS:
            raise unknown("odd", asked.odd, ARMS)
        self._factor = _factor(asked)
        if not asked.checkpoint:
            raise UsageError("pair needs a checkpoint trained --apart: pair:checkpoint=FILE")
        path = Path(asked.checkpoint)
        made = load_checkpoint(path)
        if not made.made.get("recipe", {}).get("apart", 0):
            raise UsageError(f"{path} was not trained with --apart: it has never been one of two")
        shape = made.model.shape
        if not 0 <= asked.execute <= shape.chunk:
            raise UsageError(f"execute must be from 0 to {shape.chunk}, got {asked.execute}")
        self._look_s = (asked.execute or shape.stride) / shape.rows_hz
        # An agent tells its whole chunk: a fast arm gets further along it before the next look.
        each = WamOptions(str(path), asked.steps, shape.chunk, asked.reuse, asked.threads)
        self._agents = [WamPolicy(each), WamPolicy(each)]
        self._stranger = None
        kind = " ".join(["pair", *particulars(path, asked, made.made["recipe"])])
        version = self._agents[0].metadata.version
        cameras, privileged, depth = shape.cameras, False, False
        if asked.partner == "stranger":
            from policies import make_policy

            self._stranger = make_policy(asked.stranger.replace("+", ","))
            if FR3_PAIR not in getattr(self._stranger, "robots", (FR3_PAIR,)):
                raise UsageError(f"stranger {asked.stranger} cannot move one arm of an {FR3_PAIR}")
            theirs = self._stranger.metadata
            cameras += tuple(c for c in theirs.cameras if c not in cameras)
            privileged, depth = theirs.privileged, theirs.depth
            kind += f", {asked.odd} a stranger, {theirs.name}"
            version += f"; {theirs.name} {theirs.version}"
        elif asked.partner != "normal":
            kind += f", {asked.odd} {asked.partner}, x{self._factor:g}"
        self.metadata = Metadata(kind, version, cameras, privileged, depth)

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; each agent draws its own noise."""
        self._period_s = scene.control_period_ns / 1e9
        self._periods = round(self._look_s / self._period_s)
        self._before: WorldState | None = None
        self._expected: dict[str, np.ndarray] = {}
        for k, agent in enumerate(self._agents):
            agent.reset(scene, 2 * seed + k)
        if self._stranger is not None:
            self._stranger.reset(scene, 2 * seed + ARMS.index(self.options.odd))

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Let each agent look and answer, and return each one's own arm."""
        state, odd = observation.state, ARMS.index(self.options.odd)
        before = self._before or state
        told = self._surprises(state)
        self._before, self._expected = state, {}
        paths = []
        for k, arm in enumerate(ARMS):
            if k == odd and self._stranger is not None:
                chunk = self._stranger.infer(observation).checked(state.seq)
                if chunk.needs_plan:
                    raise BenchError(f"the stranger {self.options.stranger} needs a plan")
            else:
                chunk = self._agents[k].infer(seen_by(k, observation, before))
                self._expected[arm] = chunk.values[:, columns(1 - k)]
            path = chunk.values[:, columns(k)]
            if k == odd and self._factor != 1.0:
                path = paced(state.command[columns(k)], path, self._factor, self._period_s)
            paths.append(path)
        count = min(self._periods, *map(len, paths))
        values = np.concatenate([path[:count] for path in paths], axis=1)
        return ActionChunk(state.seq, values, detail={PARTNER: told})

    def _surprises(self, state: WorldState) -> dict:
        """What a `teamwork.PARTNER` event holds: how far the partner was from where expected."""
        asked = self.options
        told: dict = {"partner": asked.partner, "odd": asked.odd, "factor": self._factor}
        told |= {"stranger": asked.stranger, "surprise": {}}
        if self._before is None:
            return told
        at = state.seq - self._before.seq - 1
        for arm, path in self._expected.items():
            other = columns(1 - ARMS.index(arm))
            if not 0 <= at < len(path):
                continue
            did, was = state.command[other][:7], self._before.command[other][:7]
            told["surprise"][arm] = {
                "rad": float(np.abs(path[at, :7] - did).mean()),
                "still_rad": float(np.abs(was - did).mean()),
            }  # fmt: skip
        return told


def _factor(asked: PairOptions) -> float:
    """The pace of the odd arm; UsageError when what is asked of the partner does not fit."""
    if (asked.partner == "stranger") != bool(asked.stranger):
        raise UsageError("stranger names the policy of partner=stranger, "
                         f"got {asked.stranger!r} with partner={asked.partner}")  # fmt: skip
    if asked.partner in FACTORS:
        factor = asked.factor or FACTORS[asked.partner]
        low, high = (0.05, 1.0) if asked.partner == "slow" else (1.0, 10.0)
        if not low <= factor <= high:
            raise UsageError(f"factor of a {asked.partner} partner must be from {low:g} to "
                             f"{high:g}, got {asked.factor:g}")  # fmt: skip
        return factor
    if asked.factor:
        raise UsageError(f"factor {asked.factor:g} is of no use with a {asked.partner} partner")
    return 1.0
