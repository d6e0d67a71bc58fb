"""The command `bench_tasks train`: a policy from demonstrations."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict

from bench_tasks.errors import UsageError

__all__ = ["COMMANDS", "add"]

Command = Callable[[str, str], argparse.ArgumentParser]


def add(command: Command, number: Callable, names: Callable) -> None:
    """Add the command; `number(minimum)` reads whole numbers, `names` lists of names."""
    sub = command("train", "train a policy on demonstrations, or go on after a stop")
    sub.add_argument(
        "--data", type=names, metavar="DIR[,DIR..]", required=True,
        help="folders of bags (see collect) or LeRobot datasets (see export)",
    )  # fmt: skip
    sub.add_argument(
        "--out", metavar="DIR", required=True,
        help="checkpoint, log and report; the same command on the same folder goes on",
    )  # fmt: skip
    sub.add_argument(
        "--kind", default="wam",
        help="wam: a world-action model (default); bc: the same without the video, for comparison",
    )  # fmt: skip
    sub.add_argument("--steps", type=number(1), metavar="N", help="of training (default: 3300)")
    sub.add_argument(
        "--batch", type=number(1), metavar="N", help="stretches in each step (default: 16)"
    )
    sub.add_argument(
        "--rate", type=_rate, metavar="R", help="the largest learning rate (default: 0.002)"
    )
    sub.add_argument(
        "--seed", type=number(0), metavar="S", help="of weights, noise and order (default: 0)"
    )
    sub.add_argument(
        "--schedule",
        help="how noise times are drawn: uniform (default), or flash or direct for one step",
    )  # fmt: skip
    sub.add_argument(
        "--apart", type=_share, metavar="R",
        help="share of stretches in which the model is one of two agents, see the policy pair "
        "(default: 0)",
    )  # fmt: skip
    sub.add_argument(
        "--task-weights", metavar="TASK=W,..",
        help="how often each task is drawn beside the others (default: all alike)",
    )  # fmt: skip
    sub.add_argument(
        "--init", metavar="CKPT",
        help="begin with this checkpoint's autoencoder, scaling, shape, and weights if of a kind",
    )  # fmt: skip
    sub.add_argument(
        "--teacher", metavar="CKPT", help="distil this checkpoint into one that needs one step"
    )
    sub.add_argument(
        "--advantage", type=float, metavar="A",
        help="with --teacher: how much its answers count by how good they are (default: 0)",
    )  # fmt: skip
    for part in ("video", "action"):
        sub.add_argument(
            f"--{part}-weight", type=float, metavar="W",
            help=f"weight of the loss of {part} (default: 1)",
        )  # fmt: skip
    sub.add_argument(
        "--autoencoder-steps", type=number(1), metavar="N",
        help="of training the picture autoencoder first, without --init (default: 900)",
    )  # fmt: skip
    sub.add_argument(
        "--shape", default="", metavar="KEY=VALUE,...",
        help="sizes of the model and what it is like: dim, layers, heads, history, stride, frames, "
        "rows_hz, latent, attention, predicts",
    )  # fmt: skip
    sub.add_argument(
        "--cache", default="", metavar="DIR",
        help="where decoded demonstrations are kept (default: rows.cache in each folder of data)",
    )  # fmt: skip


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, got {text!r}")
    return value


def _train(args: argparse.Namespace) -> int:
    from bench_tasks.runner import training

    if not args.data:
        raise UsageError("--data names no folder")
    keys = ("steps", "batch", "rate", "seed", "schedule", "apart", "init", "autoencoder_steps",
            "teacher", "advantage", "video_weight", "action_weight", "task_weights")  # fmt: skip
    recipe = {key: getattr(args, key) for key in keys if getattr(args, key) is not None}

    for key in ("init", "teacher"):
        if recipe.get(key) == "":  # as a script's empty variable leaves it
            raise UsageError(f"--{key} names no file")

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    done = training(args.data, args.out, args.kind, args.shape, recipe, args.cache, say)
    if args.json:
        found = {key: str(v) if key in ("checkpoint", "report") else v
                 for key, v in asdict(done).items()}  # fmt: skip
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return 0
    errors = ", ".join(f"{key.removeprefix('held_out_')} {v:.4f}"
                       for key, v in done.held_out.items())  # fmt: skip
    sys.stdout.write(
        f"{done.steps} steps in {done.wall_s:.0f} s; held out: {errors}\n"
        f"{done.checkpoint}, {done.report}\n"
        f"to run it: bench_tasks run --tasks {','.join(done.tasks)} "
        f"--policy wam:checkpoint={done.checkpoint}\n"
    )
    return 0


COMMANDS = {"train": _train}
