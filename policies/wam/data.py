"""Demonstrations as a world-action model learns from them: rows of a picture, a state, an action.

A row is one picture's time. Its action is the command that is asked for at the next row's time, so
a chunk is a path through points 1 / rows_hz apart, followed in straight lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bench_tasks.bags.demonstration import Demonstration
from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import ARM_COLUMNS, FR3_PAIR
from policies.sentences import embed
from policies.wam.apart import told
from policies.wam.shape import Shape, mosaic

__all__ = ["Rows", "Scaler", "check_numbers", "rows_of"]


@dataclass(frozen=True)
class Scaler:
    """Quantiles 1 % and 99 % that become -1 and 1: of states (2, 16) and of actions (2, 16).

    Joint positions of actions are taken relative to the state that they answer; gripper openings
    are not, since one that holds something is measured wider than it is commanded.
    """

    state: np.ndarray
    action: np.ndarray

    def states(self, states: np.ndarray) -> np.ndarray:
        """Scaled states (..., 16) float32."""
        return _scaled(states, self.state)

    def actions(self, actions: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Scaled actions (..., k, 16) float32 that answer states (..., 16)."""
        return _scaled(relative(actions, state), self.action)

    def commands(self, scaled: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Commands (k, 16), the inverse of `actions`, for one state (16,)."""
        low, high = self.action
        values = low + (scaled.astype(np.float64) + 1.0) * (high - low) / 2
        values[..., ARM_COLUMNS] += state[ARM_COLUMNS]
        return values


def _scaled(values: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    low, high = quantiles
    return (2.0 * (values - low) / (high - low) - 1.0).astype(np.float32)


def relative(actions: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Actions (..., k, 16) with joint positions relative to those of states (..., 16)."""
    values = np.array(actions, dtype=np.float64)
    values[..., ARM_COLUMNS] -= state[..., None, ARM_COLUMNS]
    return values


def _quantiles(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [0.01, 0.99], axis=0)
    wide = np.maximum(high - low, 1e-3)  # what never moves must not be blown up
    middle = (low + high) / 2
    return np.stack([middle - wide / 2, middle + wide / 2])


class Rows:
    """All rows of a set of demonstrations, those of one demonstration after the other.

    state, action (n, 16); pixels (n, 144, 128, 3) uint8; latents (n, c, rows, columns) float16 when
    they are made; first and last (n,) rows of each row's demonstration, text (n,) its instruction.
    """

    def __init__(
        self, state: np.ndarray, action: np.ndarray, pixels: np.ndarray, lengths: list[int],
        texts: list[str], tasks: list[str],
    ) -> None:
        """Bind arrays; `lengths`, `texts`, `tasks` are of the demonstrations."""
        self.state, self.action, self.pixels = state, action, pixels
        self.lengths, self.tasks = lengths, tasks
        ends = np.cumsum(lengths)
        self.first = np.repeat(ends - lengths, lengths)
        self.last = np.repeat(ends - 1, lengths)
        known = sorted(set(texts))
        self._texts = torch.from_numpy(np.stack([embed(text) for text in known]))
        self._text = np.repeat([known.index(text) for text in texts], lengths)
        self.latents: Tensor | None = None
        self.apart: tuple[Tensor, Tensor] | None = None
        """As `latents`, of what either agent sees (see `policies.wam.apart`)."""

    def __len__(self) -> int:
        """Rows in all."""
        return len(self.state)

    def scaler(self, shape: Shape, rows: np.ndarray | None = None) -> Scaler:
        """Quantiles over rows (default: all) and the chunks that begin there."""
        rows = np.arange(len(self)) if rows is None else rows
        steps = np.arange(shape.chunk)
        few = rows[np.linspace(0, len(rows) - 1, min(len(rows), 20000)).astype(int)]
        at = np.minimum(few[:, None] + steps, self.last[few, None])
        moves = relative(self.action[at], self.state[few])
        return Scaler(_quantiles(self.state[rows]), _quantiles(moves.reshape(-1, moves.shape[-1])))

    def batch(
        self, starts: np.ndarray, count: int, shape: Shape, scaler: Scaler,
        who: np.ndarray | None = None,
    ) -> dict[str, Tensor]:
        """Stretches of `count` observations from rows `starts` (b,) on, as `velocity_loss` wants.

        Past a demonstration's end its last row goes on: the arms stay where they are. `who` (b,)
        is -1 for the joint view, 0 and 1 for what the left and the right agent know.
        """
        assert self.latents is not None
        who = np.full(len(starts), -1) if who is None else who
        end = self.last[starts, None]
        seen = np.minimum(starts[:, None] + shape.stride * np.arange(count), end)
        steps = seen[..., None] + np.arange(shape.chunk)
        actions = self.action[np.minimum(steps, end[..., None])]
        state = self.state[seen]
        before = self.state[np.maximum(seen - shape.stride, self.first[starts, None])]
        for k in (0, 1):
            state[who == k] = told(state[who == k], before[who == k], k)
        found = {
            "latents": self._pictures(seen, who),
            "states": torch.from_numpy(scaler.states(state)),
            "actions": torch.from_numpy(scaler.actions(actions, state)),
            "text": self.texts(starts),
        }
        if shape.video:
            later = seen[..., None] + shape.stride * np.arange(1, shape.frames + 1)
            found["video"] = self._pictures(np.minimum(later, end[..., None]), who)
        return found

    def texts(self, rows: np.ndarray) -> Tensor:
        """Embedded instructions (n, 384) of rows (n,)."""
        return self._texts[self._text[rows]]

    def _pictures(self, rows: np.ndarray, who: np.ndarray) -> Tensor:
        assert self.latents is not None
        found = self.latents[torch.from_numpy(rows)].float()
        for k in np.unique(who[who >= 0]):
            assert self.apart is not None
            found[torch.from_numpy(who == k)] = self.apart[k][rows[who == k]].float()
        return found


def check_numbers(demo: Demonstration) -> None:
    """UsageError when its numbers cannot be an FR3 pair's: another robot's, or of other units."""
    robot = embodiments.get(FR3_PAIR)
    for what in ("state", "action"):
        wrong = robot.beyond(getattr(demo, what))
        if wrong:
            raise UsageError(f"{demo.task} seed {demo.seed}: {what} {wrong}")


def rows_of(demo: Demonstration, shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (n, 16), actions (n, 16) and pictures of one demonstration; UsageError if unfit."""
    name = f"{demo.task} seed {demo.seed}"
    missing = [camera for camera in shape.cameras if camera not in demo.pictures]
    if missing:
        raise UsageError(f"{name} has no pictures of {', '.join(missing)}")
    at = demo.pictures[shape.cameras[0]][0]
    hz = 1e9 / demo.period_ns / np.diff(at).min() if len(at) > 1 else 0.0
    if any(not np.array_equal(demo.pictures[c][0], at) for c in shape.cameras):
        raise UsageError(f"{name}: the cameras' pictures are not of the same times")
    step = round(1e9 / demo.period_ns / shape.rows_hz)
    keep = at % step == 0
    at = at[keep]
    if len(at) < 2 or np.any(np.diff(at) != step):
        raise UsageError(f"{name} has pictures at {hz:g} Hz, not every {step} control periods")
    pixels = np.stack([
        mosaic({c: demo.picture(c, k) for c in shape.cameras}) for k in np.flatnonzero(keep)
    ])  # fmt: skip
    led = np.minimum(at + step, len(demo.action)) - 1
    return demo.state[at], demo.action[led], pixels
