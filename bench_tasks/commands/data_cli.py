"""The commands about demonstrations: `bench_tasks collect` and `export`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench_tasks.vocabulary import AXES

__all__ = ["COMMANDS", "add"]

Command = Callable[[str, str], argparse.ArgumentParser]


def add(command: Command, number: Callable, names: Callable) -> None:
    """Add the commands; `number(minimum)` reads whole numbers, `names` lists of names."""
    sub = command("collect", "record demonstrations by the expert, for training")
    sub.add_argument("--tasks", type=names, metavar="A,B", required=True, help="tasks, or all")
    sub.add_argument(
        "--episodes", type=number(1), metavar="N", default=1, help="of each task (default: 1)"
    )
    sub.add_argument(
        "--seed", type=number(0), metavar="S",
        help="seed of each task's first, counting up from there (default: 1000000)",
    )  # fmt: skip
    sub.add_argument("--out", metavar="DIR", help="where to record (default: results/<time>)")
    sub.add_argument(
        "--cameras", type=names, metavar="A,B",
        help="cameras to picture (default: head,left_wrist,right_wrist; '' for none)",
    )  # fmt: skip
    sub.add_argument(
        "--picture-hz", type=float, metavar="HZ",
        help="pictures per simulated second (default: 10)",
    )  # fmt: skip
    sub.add_argument(
        "--disturb", type=float, metavar="RAD",
        help="disturb what the arms execute, by this standard deviation in each joint, and keep "
        "what the expert asks for (default: 0)",
    )  # fmt: skip
    sub.add_argument(
        "--pace", type=float, metavar="R",
        help="each arm gets a pace of its own in each demonstration, drawn from R to 1 times the "
        "usual one (default: 1)",
    )  # fmt: skip
    sub.add_argument(
        "--vary", type=names, metavar="A,B",
        help="what to randomise beyond the layout, or all: " + ", ".join(AXES),
    )  # fmt: skip
    sub.add_argument(
        "--image-size", metavar="WxH",
        help="size of every picture in pixels (default: 320x240)",
    )  # fmt: skip
    sub.add_argument("--objects", metavar="SET", help="use these evolved objects")
    sub.add_argument(
        "--jobs", type=number(1), metavar="N",
        help="processes that share the episodes, with the same results (default: 1)",
    )  # fmt: skip

    sub = command("export", "write demonstrations as a LeRobot dataset (format v3)")
    sub.add_argument("dir", type=Path, metavar="DIR", help="a folder of recordings")
    sub.add_argument(
        "--out", type=Path, metavar="DATASET", required=True, help="the dataset, a new folder"
    )
    sub.add_argument("--failed", action="store_true", help="also those that failed")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _collect(args: argparse.Namespace) -> int:
    from bench_tasks import runner, tasks
    from bench_tasks.commands.collect import CollectConfig
    from bench_tasks.reports.outcome import results_table

    keys = ("tasks", "episodes", "seed", "out", "cameras", "picture_hz", "disturb", "vary",
            "objects", "jobs", "image_size")  # fmt: skip
    options = {key: getattr(args, key) for key in keys if getattr(args, key) is not None}
    if args.pace is not None:
        options["policy"] = f"skills:pace={args.pace:g}"
    if options["tasks"] == ("all",):
        options["tasks"] = tuple(tasks.names())
    if options.get("vary") == ("all",):
        options["vary"] = AXES
    result = runner.run(CollectConfig(**options))
    good = sum(episode.success for episode in result.episodes)
    if args.json:
        episodes = [episode.to_dict() for episode in result.episodes]
        _say(json.dumps({"episodes": episodes, "out": str(result.out)}, indent=1, allow_nan=False))
    else:
        _say(results_table(result.episodes).rstrip("\n"))
        _say(f"{good} of {len(result.episodes)} demonstrations succeeded; all are in {result.out}")
    return 0 if result.evaluated else 1


def _export(args: argparse.Namespace) -> int:
    from bench_tasks.bags.demonstrations import read_demonstrations
    from bench_tasks.bags.lerobot_writer import write_dataset

    left: list[str] = []

    def note(text: str) -> None:
        left.append(text)
        sys.stderr.write(f"{text}\n")

    found = read_demonstrations(args.dir, note, failed=args.failed)
    done = write_dataset(found, args.out)
    if args.json:
        _say(json.dumps({"dataset": str(args.out), **done, "left_out": left}, indent=1))
    else:
        _say(
            f"{done['episodes']} demonstrations, {done['rows']} rows, written to {args.out}; "
            f"{len(left)} left out"
        )
    return 0


COMMANDS = {"collect": _collect, "export": _export}
