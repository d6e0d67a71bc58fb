"""Trains a world-action model, or the cloning baseline, on two processor cores or a GPU."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench_tasks.config import MAX_SEED
from bench_tasks.errors import UsageError, unknown
from bench_tasks.manifest import replacing
from bench_tasks.vocabulary import ARM_COLUMNS, GRIPPER_COLUMNS
from policies.wam.apart import blanked, columns
from policies.wam.autoencoder import Autoencoder
from policies.wam.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from policies.wam.data import Rows, Scaler
from policies.wam.distill import AVERAGE as TARGET_AVERAGE
from policies.wam.distill import consistency_loss, load_teacher
from policies.wam.flow import Sampled, draw_times, sample, usual_steps, velocity_loss
from policies.wam.kept import keep, kept
from policies.wam.model import Transformer
from policies.wam.shape import Shape

__all__ = ["Recipe", "Trainer"]

AVERAGE = 0.999
"""Share of the moving average of the weights that stays at each step."""
WARM_UP = 200
LOG_EVERY, CHECK_EVERY, SAVE_EVERY = 50, 500, 250
CHECKED = 64
"""Chunks of held-out demonstrations that are sampled at each check."""


@dataclass(frozen=True)
class Recipe:
    """How to train: a stretch is `history` observations with the chunk after each.

    `init` is a checkpoint whose autoencoder and scaling are taken over, and, unless it is of the
    other kind, its weights where their shapes are the same.

    `teacher` is a checkpoint to distil into one step, which is then `init` as well; `advantage`
    from 0 to 1 weighs its answers by how good they are (see `distill.consistency_loss`).
    `video_weight` and `action_weight` are of the losses.

    `apart` is the share of stretches in which the model is one of two agents and knows only what
    that one does (see `policies.wam.apart`), the left and the right one in turn.

    `task_weights`, TASK=WEIGHT,.., says how often stretches of a task are drawn beside those of the
    others; what is not named weighs 1.
    """

    steps: int = 3300
    batch: int = 16
    rate: float = 2e-3
    seed: int = 0
    schedule: str = "uniform"
    autoencoder_steps: int = 900
    autoencoder_batch: int = 16
    init: str = ""
    teacher: str = ""
    advantage: float = 0.0
    video_weight: float = 1.0
    action_weight: float = 1.0
    apart: float = 0.0
    task_weights: str = ""

    def __post_init__(self) -> None:
        """Let a student begin as its teacher."""
        if self.teacher and not self.init:
            object.__setattr__(self, "init", self.teacher)

    def checked(self) -> Recipe:
        """Return self; UsageError names a wrong number."""
        for name in ("steps", "batch", "autoencoder_batch", "autoencoder_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed must be from 0 to {MAX_SEED}, got {self.seed}")
        if not 0 < self.rate < 1:
            raise UsageError(f"rate must be between 0 and 1, got {self.rate}")
        if not 0 <= self.advantage <= 1:
            raise UsageError(f"advantage must be from 0 to 1, got {self.advantage}")
        if not 0 <= self.apart <= 1:
            raise UsageError(f"apart must be from 0 to 1, got {self.apart}")
        if self.advantage and not self.teacher:
            raise UsageError(f"advantage {self.advantage} is of no use without a teacher")
        if self.teacher and self.schedule == "direct":
            raise UsageError("the schedule direct learns from demonstrations, not from a teacher")
        if self.teacher and self.init != self.teacher:
            raise UsageError(f"init must be the teacher {self.teacher}, got {self.init}")
        for name in ("video_weight", "action_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageError(f"{name} must be from 0 on, got {getattr(self, name)}")
        if not self.video_weight and not self.action_weight:
            raise UsageError("video_weight and action_weight are both 0: nothing would be learnt")
        self.weights(())
        return self

    @property
    def sampling(self) -> int:
        """Steps that what is trained is sampled with, as `flow.sample` counts them."""
        return usual_steps(self.schedule, bool(self.teacher))

    def weights(self, tasks: Sequence[str]) -> list[float]:
        """Those of tasks; UsageError names what is wrong in `task_weights`, or is no task."""
        given: dict[str, float] = {}
        for item in self.task_weights.split(",") if self.task_weights else []:
            name, _, value = item.partition("=")
            try:
                given[name] = float(value)
            except ValueError:
                given[name] = math.nan
            if not 0 < given[name] < math.inf:
                raise UsageError(f"task_weights takes TASK=WEIGHT,.. above 0, got {item!r}")
            if tasks and name not in tasks:
                raise unknown("task", name, tasks)
        return [given.get(task, 1.0) for task in tasks]


class Trainer:
    """Everything of one training, so that it can be stopped and go on."""

    def __init__(
        self, rows: Rows, shape: Shape, recipe: Recipe, out: Path, say: Callable[[str], None],
        made: dict[str, Any] | None = None, seeds: Sequence[int] = (),
    ) -> None:
        """Bind rows to a folder `out`; nothing is computed yet.

        `seeds` are those of the demonstrations, () if each is of one of its own.
        """
        self.rows, self.shape, self.recipe, self.out, self.say = rows, shape, recipe, out, say
        self.made = {**(made or {}), "recipe": asdict(recipe), "tasks": sorted(set(rows.tasks))}
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        asked = os.environ.get("OMP_NUM_THREADS", "")  # may be empty, or a list by level
        threads = int(asked) if asked.isdecimal() else 0
        torch.set_num_threads(threads or os.cpu_count() or 1)
        self.history: list[dict[str, float]] = []
        self.teacher: Transformer | None = None
        self.held_demos = _held_out(rows.tasks, seeds or range(len(rows.tasks)), recipe.seed)
        out_of = np.isin(rows.first, np.unique(rows.first)[self.held_demos])
        self.learnt, self.held = np.flatnonzero(~out_of), np.flatnonzero(out_of)
        # A task whose demonstrations are long must not crowd out the others.
        names = np.repeat(rows.tasks, rows.lengths)[self.learnt]
        known, kind, count = np.unique(names, return_inverse=True, return_counts=True)
        weights = np.array(recipe.weights(known.tolist()))
        self.chance = (weights / (count * weights.sum()))[kind]

    # -- the autoencoder -------------------------------------------------------------------------

    def autoencoder(self) -> tuple[Autoencoder, Scaler]:
        """The autoencoder and scaling: taken over, read from `out`, or made now."""
        if self.recipe.init:
            found = load_checkpoint(Path(self.recipe.init))
            return found.autoencoder.to(self.device), found.scaler
        file = self.out / "autoencoder.pt"
        if file.exists():
            model = Autoencoder(self.shape.latent)
            with kept(file) as found:
                model.load_state_dict(found["weights"])
                scaler = Scaler(*(found[k].numpy() for k in ("state", "action")))
            return model.to(self.device), scaler
        if (self.out / "training.pt").exists():
            raise UsageError(f"cannot go on in {self.out}: {file.name} is missing")
        scaler = self.rows.scaler(self.shape, self.learnt)
        model = self._fit_autoencoder()
        keep(file, {
            "weights": model.state_dict(), "state": torch.from_numpy(scaler.state),
            "action": torch.from_numpy(scaler.action),
        })  # fmt: skip
        return model, scaler

    def _pixels(self, rows: np.ndarray, who: int = -1) -> Tensor:
        pixels = self.rows.pixels[np.sort(rows)]
        pixels = blanked(pixels, who) if who >= 0 else pixels
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self.device)

    def _fit_autoencoder(self) -> Autoencoder:
        recipe = self.recipe
        torch.manual_seed(recipe.seed)
        rng = np.random.default_rng([recipe.seed, 1])
        model = Autoencoder(self.shape.latent).to(self.device)
        optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1e-4)
        begun = time.monotonic()
        for step in range(recipe.autoencoder_steps):
            for group in optimizer.param_groups:
                group["lr"] = 2e-3 * _rate(step, recipe.autoencoder_steps, 50)
            some = rng.choice(self.learnt, recipe.autoencoder_batch)
            # It must learn what grey is, if there will be any.
            pixels = self._pixels(some, (-1, 0, -1, 1)[step % 4] if recipe.apart else -1)
            latents = model.encode(pixels)
            # Noise in training, and a price on large numbers, keep the latents smooth and bounded.
            blurred = latents + 0.05 * torch.randn_like(latents)
            difference = model.decode(blurred) - model.scaled(pixels)
            loss = difference.abs().mean() + difference.square().mean()
            loss = loss + 1e-3 * latents.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % LOG_EVERY == 0:
                psnr = -10 * math.log10(difference.square().mean().item() / 4)
                spent = time.monotonic() - begun
                self.say(f"autoencoder {step} of {self.recipe.autoencoder_steps}: "
                         f"PSNR {psnr:.1f} dB, {spent:.0f} s")  # fmt: skip
        model.measure(self._pixels(rng.choice(self.learnt, 256)))
        return model.eval()

    def _encode(self, model: Autoencoder, who: int = -1) -> Tensor:
        """Latents (n, c, ..) float16 of all rows, as seen by both or by one agent."""
        found = []
        with torch.no_grad():
            for begin in range(0, len(self.rows), 128):
                rows = np.arange(begin, min(begin + 128, len(self.rows)))
                found.append(model.encode(self._pixels(rows, who)).half().cpu())
        return torch.cat(found)

    # -- the transformer -------------------------------------------------------------------------

    def run(self) -> Checkpoint:
        """Train to the last step, from where an earlier run in the same folder was stopped."""
        autoencoder, scaler = self.autoencoder()
        begun = time.monotonic()
        self.rows.latents = self._encode(autoencoder)
        if self.recipe.apart:
            self.rows.apart = (self._encode(autoencoder, 0), self._encode(autoencoder, 1))
        self.say(f"{len(self.rows)} pictures encoded in {time.monotonic() - begun:.0f} s")
        recipe, state = self.recipe, self.out / "training.pt"
        torch.manual_seed(recipe.seed)
        model = Transformer(self.shape).to(self.device)
        if recipe.init:
            self._take_over(model, load_checkpoint(Path(recipe.init)).model)
        average = deepcopy(model).requires_grad_(False)
        if recipe.teacher:
            self.teacher, self.made["teacher"] = load_teacher(Path(recipe.teacher), self.shape)
            self.teacher.to(self.device)
        optimizer = torch.optim.AdamW(
            model.parameters(), recipe.rate, betas=(0.9, 0.95), weight_decay=1e-2
        )
        step, spent = 0, 0.0
        if state.exists():
            with kept(state) as found:
                model.load_state_dict(found["model"])
                average.load_state_dict(found["average"])
                optimizer.load_state_dict(found["optimizer"])
                step, spent, self.history = found["step"], found["spent"], found["history"]
            self.say(f"goes on at step {step}")
        result = Checkpoint(average, autoencoder, scaler, self.made)
        file = self.out / "checkpoint.safetensors"
        if step == recipe.steps and not file.exists():  # somebody has moved it away
            self.made.update(steps=step, wall_s=round(spent, 1))
            save_checkpoint(file, result)
        begun = time.monotonic()
        while step < recipe.steps:
            # Drawn anew from (seed, step): a training that is stopped goes on as if it were not.
            rng = np.random.default_rng([recipe.seed, 2, step])
            generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * _rate(step, recipe.steps, WARM_UP)
            losses = self._step(model, average, optimizer, scaler, rng, generator)
            with torch.no_grad():
                share = TARGET_AVERAGE if self.teacher else min(AVERAGE, (1 + step) / (10 + step))
                for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 1 - share)
            step += 1
            now = spent + time.monotonic() - begun
            if step % LOG_EVERY == 0:
                self.history.append({"step": step, "wall_s": now, **losses})
                left = now / step * (recipe.steps - step)
                self.say(f"step {step} of {recipe.steps}, {now:.0f} s, {left:.0f} s left: "
                         f"{_told(losses)}")  # fmt: skip
            if step % CHECK_EVERY == 0 or step == recipe.steps:
                found = self.check(average, scaler, recipe.sampling)
                self.history.append({"step": step, "wall_s": now, **found})
                self.say(f"step {step}, held out: {_told(found)}")
            if step % SAVE_EVERY == 0 or step == recipe.steps:
                self.made.update(steps=step, wall_s=round(now, 1))
                # The state comes last: after a kill in between, these steps are made again.
                save_checkpoint(file, result)
                text = "".join(json.dumps(entry) + "\n" for entry in self.history)
                with replacing(self.out / "log.jsonl") as part:
                    part.write_text(text)
                keep(state, {
                    "model": model.state_dict(), "average": average.state_dict(),
                    "optimizer": optimizer.state_dict(), "step": step, "spent": now,
                    "history": self.history,
                })  # fmt: skip
        return result

    def _take_over(self, model: Transformer, given: Transformer) -> None:
        """Weights of the same shape. None for another kind: a baseline must learn by itself."""
        if given.shape.video != self.shape.video:
            return
        own, other = model.state_dict(), given.state_dict()
        same = {k for k, v in own.items() if k in other and other[k].shape == v.shape}
        model.load_state_dict({k: other[k] if k in same else v for k, v in own.items()})
        self.say(f"{len(same)} of {len(own)} weights taken over from {self.recipe.init}")
        if len(same) < len(own) and self.recipe.schedule == "direct":
            raise UsageError(
                f"the schedule direct goes on from a trained model, and {len(own) - len(same)} of "
                f"{len(own)} weights of {self.recipe.init} are of another shape: give it the same "
                "--shape, and a new folder for --out"
            )

    def _step(
        self, model: Transformer, average: Transformer, optimizer: torch.optim.Optimizer,
        scaler: Scaler, rng: np.random.Generator, generator: torch.Generator,
    ) -> dict[str, float]:
        shape, recipe = self.shape, self.recipe
        starts = rng.choice(self.learnt, recipe.batch, p=self.chance)
        who = None
        if recipe.apart:
            who = rng.integers(2, size=recipe.batch)
            who = np.where(rng.random(recipe.batch) < recipe.apart, who, -1)
        batch = self.rows.batch(starts, shape.history, shape, scaler, who)
        batch = {key: value.to(self.device) for key, value in batch.items()}
        if self.teacher:
            video, action = consistency_loss(
                model, average, self.teacher, batch, generator, recipe.advantage
            )
        else:
            times = draw_times(recipe.schedule, (recipe.batch, shape.history), generator)
            video, action = velocity_loss(
                model, batch, times.to(self.device), generator, recipe.schedule == "direct"
            )
        loss = recipe.action_weight * action
        if video is not None:
            loss = loss + recipe.video_weight * video
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not math.isfinite(norm.item()):  # nor is it ever saved
            raise UsageError(
                f"the training went astray: its gradient is {norm.item()}; choose a smaller --rate "
                f"than {recipe.rate:g}, and a new folder for --out"
            )
        optimizer.step()
        found = {"action_loss": action.item(), "gradient": norm.item()}
        return found if video is None else {"video_loss": video.item(), **found}

    def _checked(self) -> np.ndarray:
        """The held-out rows that are checked, always the same ones."""
        count = min(CHECKED, len(self.held))
        return np.random.default_rng(0).choice(self.held, count, replace=False)

    def mean_action_errors(self) -> dict[str, float]:
        """The errors of `check` of a policy that always answers the mean of what is learnt."""
        _, scaler = self.autoencoder()

        def answers(starts: np.ndarray) -> Tensor:
            return self.rows.batch(starts, 1, self.shape, scaler)["actions"][:, 0]

        few = np.random.default_rng(0).choice(self.learnt, min(4096, len(self.learnt)), False)
        mean = answers(few).mean(0)
        return _errors(answers(self._checked()) - mean, scaler)

    @torch.no_grad()
    def check(self, model: Transformer, scaler: Scaler, steps: int = 4) -> dict[str, float]:
        """Errors of chunks sampled for held-out demonstrations: rad, m, and of latents.

        Of agents also: mean joint errors of the own arm and of what is foretold of the partner's.
        """
        at = self._checked()

        def sampled(who: int) -> tuple[Tensor, Sampled, dict[str, Tensor]]:
            batch = self.rows.batch(at, 1, self.shape, scaler, np.full(len(at), who))
            batch = {key: value.to(self.device) for key, value in batch.items()}
            cache = model.observe(batch["latents"][:, 0], batch["states"][:, 0], batch["text"], 0)
            generator = torch.Generator().manual_seed(0)
            got = sample(model, cache, 0, batch["text"], steps, generator)
            return got.actions - batch["actions"][:, 0], got, batch

        difference, got, batch = sampled(-1)
        found = _errors(difference, scaler)
        if got.video is not None:
            found["held_out_latent"] = functional.mse_loss(got.video, batch["video"][:, 0]).item()
        if self.recipe.apart:
            low, high = scaler.action
            wrong = [sampled(k)[0].abs().cpu().numpy() * (high - low) / 2 for k in (0, 1)]
            for name, other in (("own", 0), ("partner", 1)):
                arms = [wrong[k][..., columns(k ^ other)][..., :7].mean() for k in (0, 1)]
                found[f"held_out_{name}_rad"] = float(np.mean(arms))
        return found


def _errors(difference: Tensor, scaler: Scaler) -> dict[str, float]:
    """Mean and 95 % of joint errors in rad, mean of openings in m, of scaled actions (.., 16)."""
    low, high = scaler.action
    error = difference.abs().cpu().numpy() * (high - low) / 2
    return {
        "held_out_rad": float(error[..., ARM_COLUMNS].mean()),
        "held_out_p95_rad": float(np.quantile(error[..., ARM_COLUMNS], 0.95)),
        "held_out_opening_m": float(error[..., GRIPPER_COLUMNS].mean()),
    }


def _held_out(tasks: list[str], seeds: Sequence[int], seed: int) -> list[int]:
    """Demonstrations kept from training: of each task that has two or more, one in thirty.

    Those of the same seed, recorded twice or disturbed differently, show the same layout: they are
    kept together, so that none is learnt from.
    """
    rng, found = np.random.default_rng(seed), []
    for task in sorted(set(tasks)):
        layouts: dict[int, list[int]] = {}
        for k in np.flatnonzero(np.array(tasks) == task):
            layouts.setdefault(seeds[k], []).append(k)
        if len(layouts) > 1:
            first = [same[0] for same in layouts.values()]
            for k in rng.permutation(first)[: max(1, len(layouts) // 30)]:
                found += layouts[seeds[k]]
    if not found:
        raise UsageError(
            "no task has two demonstrations of different seeds: one must be held out to check with"
        )
    return sorted(int(k) for k in found)


def _told(numbers: dict[str, float]) -> str:
    return ", ".join(f"{key.removeprefix('held_out_')} {v:.4f}" for key, v in numbers.items())


def _rate(step: int, steps: int, warm_up: int) -> float:
    """Share of the learning rate: linear warm-up, then half a cosine to a hundredth."""
    if step < warm_up:
        return (step + 1) / warm_up
    part = (step - warm_up) / max(1, steps - warm_up)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(part, 1.0)))
