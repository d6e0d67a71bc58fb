"""The world-action model as a policy: remembers observations, samples a chunk, sends commands."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots import embodiments
from bench_tasks.verdicts.dreams import DREAM
from bench_tasks.vocabulary import (
    FR3_PAIR,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
    WorldState,
)
from policies.pictures import rgb
from policies.sentences import embed
from policies.wam.checkpoint import Checkpoint, load_checkpoint
from policies.wam.flow import sample, usual_steps
from policies.wam.model import Cache, joined
from policies.wam.shape import Shape, mosaic
from policies.wam.watch import Watch

__all__ = ["WamOptions", "WamPolicy"]

MAX_THREADS = 1024
SHIPPED = Path(__file__).parent / "checkpoints/fr3_pair.safetensors"


@dataclass(frozen=True)
class WamOptions:
    """`checkpoint`: a file; without one, the model that comes with the package.

    `steps`: of denoising (0: as many as the checkpoint was made for, 1 or 4).
    `execute`: rows of a chunk that are executed before the next look (0: as many as lay between the
    looks that it learnt from, the checkpoint's `stride`).
    `reuse`: cosine similarity of velocities above which one is used again (1: never).
    `threads`: of the processor. `dream`: compare predicted pictures with those that are seen when
    their time has come, for the record (`bench_tasks.verdicts.dreams`); the actions are the same.
    """

    checkpoint: str = ""
    steps: int = 0
    execute: int = 0
    reuse: float = 1.0
    threads: int = 1
    dream: bool = False


class WamPolicy:
    """Needs no plans: the instruction and the pictures are enough."""

    Options = WamOptions

    def __init__(self, options: WamOptions | None = None) -> None:
        """Read the checkpoint; UsageError when it or an option is wrong."""
        self.options = options or WamOptions()
        path = Path(self.options.checkpoint) if self.options.checkpoint else SHIPPED
        self._made: Checkpoint = load_checkpoint(path)
        self.shape: Shape = self._made.model.shape
        recipe = self._made.made.get("recipe", {})
        self._steps = _steps(path, recipe, self.options.steps)
        if self._steps <= 1:
            # The rows that a chunk is to continue can only bear on a next step. Without one they
            # are not inpainted: who asks blends the chunks (`policies.execution`).
            self.infer_with_prefix = None
        if not 1 <= self.options.threads <= MAX_THREADS:
            raise UsageError(
                f"threads must be from 1 to {MAX_THREADS}, got {self.options.threads}"
            )
        if not 0 <= self.options.reuse <= 1:
            raise UsageError(f"reuse must be from 0 to 1, got {self.options.reuse}")
        if not 0 <= self.options.execute <= self.shape.chunk:
            raise UsageError(
                f"execute must be from 0 to {self.shape.chunk}, got {self.options.execute}"
            )
        if self.options.dream and not self.shape.video:
            raise UsageError(f"dream must be false: {path} predicts no video")
        kind = "wam" if self.shape.video else "bc"
        name = " ".join([kind, *particulars(path, self.options, recipe)])
        version = f"{path.stem}, {self._made.made.get('steps', '?')} steps"
        self.metadata = Metadata(name, version, cameras=self.shape.cameras)

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; noise is drawn from `seed`."""
        torch.set_num_threads(self.options.threads)
        self._text = torch.from_numpy(embed(scene.instruction).copy())[None]
        self._generator = torch.Generator().manual_seed(
            zlib.crc32(f"{scene.task} {seed}".encode())
        )
        self._periods = round(1e9 / self.shape.rows_hz / scene.control_period_ns)
        self._robot = embodiments.get(FR3_PAIR)
        self._window: list[Cache] = []
        self._watch: Watch | None = None
        if self.options.dream:
            self._watch = Watch(
                self._made.autoencoder, scene.control_period_ns / 1e9,
                self.shape.stride * self._periods,
            )  # fmt: skip

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Look, remember, and return the next commands."""
        return self._infer(observation, None)

    def infer_with_prefix(
        self, observation: Observation, prefix: np.ndarray, weights: np.ndarray
    ) -> ActionChunk:
        """As `infer`, the chunk continuing what the arms do from this state on.

        None where the model has a single step: there the two chunks must be blended.

        prefix (k, 16) are their commands, weights (k,) in [0, 1] how binding each is.
        """
        at = self._periods * np.arange(1, self.shape.chunk + 1) - 1  # the periods that end a row
        known = at < len(prefix)
        at = np.minimum(at, len(prefix) - 1)
        measured = observation.state.measured
        rows = torch.from_numpy(self._made.scaler.actions(prefix[at], measured))
        weight = torch.from_numpy((weights[at] * known).astype(np.float32))
        return self._infer(observation, (rows[None], weight[None, :, None]))

    @torch.no_grad()
    def _infer(
        self, observation: Observation, prefix: tuple[Tensor, Tensor] | None
    ) -> ActionChunk:
        state = observation.state
        measured = state.measured
        at = round(state.seq / self._periods)
        picture = _pixels(observation)
        latents = self._made.autoencoder.encode(picture)
        scaled = torch.from_numpy(self._made.scaler.states(measured))[None]
        got = sample(
            self._made.model, joined(self._window), at, self._text, self._steps, self._generator,
            self.options.reuse, prefix, (latents, scaled),
        )  # fmt: skip
        self._window.append(got.seen)
        # Room for the next one. From the front: a slice's negative end would count from the back.
        while len(self._window) >= self.shape.history:
            del self._window[0]
        rows = self._made.scaler.commands(got.actions[0].numpy(), measured)
        detail = {}
        times = {f.seq for f in observation.frames if f.camera in Shape.cameras}
        # In realtime pictures may be later than the state; of two times they are no one picture.
        if self._watch is not None and got.video is not None and len(times) == 1:
            (seen,) = times
            detail[DREAM] = self._watch.compare(seen, picture, latents)
            self._watch.keep(seen, got.video, picture, latents)
        return ActionChunk(state.seq, self._path(state, rows), detail=detail)

    def _path(self, state: WorldState, rows: np.ndarray) -> np.ndarray:
        """Commands of every control period, in straight lines from the last one on."""
        count = self.options.execute or self.shape.stride
        points = np.concatenate([state.command[None], rows[:count]])
        share = np.arange(1, self._periods + 1)[:, None] / self._periods
        lines = points[:-1, None] + share * np.diff(points, axis=0)[:, None]
        # A network's numbers end a little beyond what an arm can do; what checks commands would
        # stop it there, and the simulated arms stop at their range by themselves.
        return np.clip(lines.reshape(-1, points.shape[1]), self._robot.low, self._robot.high)


def _steps(path: Path, recipe: dict[str, Any], asked: int) -> int:
    """Steps as `flow.sample` counts them; UsageError when the checkpoint cannot do with `asked`."""
    if asked < 0:
        raise UsageError(f"steps must be at least 1, or 0 for the usual, got {asked}")
    if recipe.get("schedule") == "direct":
        if asked > 1:
            raise UsageError(
                f"steps must be 1, got {asked}: {path} was trained with the schedule direct"
            )
        return 0
    return asked or _usual(recipe)


def _usual(recipe: dict[str, Any]) -> int:
    return usual_steps(recipe.get("schedule", ""), bool(recipe.get("teacher")))


def particulars(path: Path, options: Any, recipe: dict[str, Any]) -> list[str]:
    """What tells a policy from another of its kind: results are grouped by its name.

    Its checkpoint, by its content, and those of `options` by which its actions differ: asked for
    as many steps as the `recipe` has it take anyway, it is the same policy.
    """
    digest, usual = hashlib.sha256(path.read_bytes()).hexdigest()[:8], WamOptions()
    given = {key: getattr(options, key) for key in ("steps", "execute", "reuse")}
    if given["steps"] == max(1, _usual(recipe)):
        del given["steps"]
    return [digest, *(f"{k}={v}" for k, v in given.items() if v != getattr(usual, k))]


def _pixels(observation: Observation) -> Tensor:
    pictures = {frame.camera: rgb(frame) for frame in observation.frames}
    missing = [camera for camera in Shape.cameras if camera not in pictures]
    if missing:
        raise BenchError(f"there is no picture of {', '.join(missing)}")
    return torch.from_numpy(mosaic(pictures)).permute(2, 0, 1)[None]
