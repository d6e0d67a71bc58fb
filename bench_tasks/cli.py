"""The command `bench_tasks`: everything that is not a ROS node, from running to training."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_tasks
from bench_tasks.commands import data_cli, objects_cli, reality_cli, remember, train_cli
from bench_tasks.errors import BenchError, UsageError

__all__ = ["main"]

_EPILOG = """\
examples:
  bench_tasks list                                   what there is to evaluate
  bench_tasks gallery --tasks lift_pot               pictures of it, before and after
  bench_tasks objects list                           kinds of objects, and sets of evolved ones
  bench_tasks run --tasks lift_pot                   one episode, recorded and scored
  bench_tasks run --tasks all --episodes 20 --out results/night
  bench_tasks score results/night                    judge the recordings again
  bench_tasks report results/night                   one HTML page with everything
  bench_tasks remember run --out results/memory      what memories keep of conversations
  bench_tasks collect --tasks lift_pot               demonstrations by the expert, to train on
  bench_tasks train --data DIR --out results/wam     a policy, from demonstrations
  bench_tasks export results/demos --out results/dataset   as a LeRobot dataset
  bench_tasks sysid BAG --out robot.yaml             what a robot's joints are like
  bench_tasks paired results/sim results/robot       does simulation foretell reality?
  bench_tasks doctor                                 is this machine ready?

exit status:
  0  done; a failed task is a result, not an error
  1  done, but some episode is missing, is not of the run, has no verdict (its recording is cut
     off or lacks messages, say), or has no live verdict that is the same as the offline one
     (doctor: something that is needed does not work; sysid: some numbers are the ends of their
     ranges, and no estimates)
  2  could not be done: wrong argument, unreadable or unwritable path, full disk (results that
     cannot be saved are printed first)
  130  interrupted; finished episodes are kept
"""


class _Parser(argparse.ArgumentParser):
    """Prints a mistake as one line."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.register("type", Path, _path)

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message} (see {self.prog} --help)")


def _path(text: str) -> Path:
    """What a script's empty variable leaves would be the folder in which it runs."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, got ''")
    return Path(text)


def _number(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"not a whole number: {text!r}") from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return parse


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text!r}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _parser() -> argparse.ArgumentParser:
    from bench_tasks.vocabulary import AXES

    parser = _Parser(
        prog="bench_tasks",
        description="Evaluate planners and action policies on bimanual robot tasks, "
        "record every episode, and score the recordings.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=bench_tasks.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("--json", action="store_true", help="print JSON on standard output")
        return sub

    command("list", "list the tasks and probes")

    sub = command("gallery", "write a page with pictures of the tasks, before and after")
    sub.add_argument("--tasks", type=_names, metavar="A,B", help="tasks to show (default: all)")
    sub.add_argument(
        "--seed", type=_number(0), metavar="S", default=0,
        help="show the first layout from this seed on that the expert solves (default: 0)",
    )  # fmt: skip
    sub.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("results/gallery"),
        help="where to write gallery.md and pictures/ (default: results/gallery)",
    )  # fmt: skip

    objects_cli.add(command("objects", "list, grow and show sets of evolved objects"), _number)

    sub = command("run", "run episodes (no ROS needed), record and score them")
    sub.add_argument("--tasks", type=_names, metavar="A,B", help="tasks to run, or all")
    sub.add_argument("--planner", help="who decides what to do (default: expert)")
    sub.add_argument("--policy", help="who moves the arms (default: skills)")
    sub.add_argument(
        "--episodes", type=_number(1), metavar="N", help="episodes of each task (default: 1)"
    )
    sub.add_argument(
        "--seed", type=_number(0), metavar="S",
        help="seed of each task's first episode, counting up from there (default: 0)",
    )  # fmt: skip
    sub.add_argument(
        "--out", metavar="DIR", help="where to record (default: results/<time>, a new folder)"
    )
    sub.add_argument(
        "--cameras", type=_names, metavar="A,B",
        help="cameras pictured at key moments (default: head; '' for none)",
    )  # fmt: skip
    sub.add_argument(
        "--latency", metavar="L",
        help="what thinking costs in simulated time: free (default), measured, or seconds a plan",
    )  # fmt: skip
    sub.add_argument(
        "--execution", metavar="MODE",
        help="how the policy's chunks are executed: sync (default), async, rtc",
    )
    sub.add_argument(
        "--policy-latency", metavar="L",
        help="what a policy's call costs in simulated time: free (default), measured, or seconds",
    )
    sub.add_argument(
        "--execute", type=_number(0), metavar="N",
        help="control periods (20 ms) from one call of the policy to the next, in sync the actions "
        "executed of each chunk; 0: as many as the mode allows (default)",
    )
    sub.add_argument(
        "--policy-deadline-s", type=_seconds, metavar="S",
        help="after so long a policy's answer is not used any more (default: 10)",
    )
    sub.add_argument(
        "--vary", type=_names, metavar="A,B",
        help="what to randomise beyond the layout, or all: " + ", ".join(AXES),
    )  # fmt: skip
    sub.add_argument(
        "--jobs", type=_number(1), metavar="N",
        help="processes that share the episodes, with the same results (default: 1)",
    )  # fmt: skip
    sub.add_argument(
        "--objects", metavar="SET",
        help="use these evolved objects, a file or a name (see bench_tasks objects list)",
    )  # fmt: skip
    sub.add_argument(
        "--dynamics", metavar="FILE.yaml",
        help="how the simulated joints answer to commands (see bench_tasks sysid)",
    )  # fmt: skip
    sub.add_argument(
        "--image-size", metavar="WxH",
        help="size of every picture in pixels (default: 320x240); a square one sees less at the "
        "sides",
    )  # fmt: skip
    sub.add_argument(
        "--no-record", dest="record", action="store_false", default=None,
        help="keep no recording, only print the results",
    )  # fmt: skip
    sub.add_argument(
        "--config", type=Path, metavar="FILE.yaml",
        help="read the options from a file (format_version: 1); the command line overrides it",
    )  # fmt: skip

    sub = command("score", "judge recordings again and write a new result file beside the old")
    sub.add_argument("dir", type=Path, metavar="DIR", help="a run's folder, or one recording")
    sub.add_argument(
        "--no-save", action="store_true", help="print the results without writing a file"
    )

    sub = command("report", "write one self-contained HTML page about a run")
    sub.add_argument("dir", type=Path, metavar="DIR", help="a run's folder")
    sub.add_argument(
        "--out", type=Path, metavar="FILE", help="the page (default: DIR/report.html)"
    )

    sub = command("remember", "play memory probes with memories, and score what came")
    remember.add(sub, _number, _names)
    data_cli.add(command, _number, _names)
    train_cli.add(command, _number, _names)
    reality_cli.add(command)

    sub = command("serve", "serve a policy to others' evaluators, on OpenPI's websocket wire")
    sub.add_argument("--policy", required=True, help="a policy that needs joints and pictures only")
    sub.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    sub.add_argument("--port", type=_number(0), default=8000, help="0: a free one (default: 8000)")

    sub = command(
        "doctor", "check what works on this machine, and say what to do about the rest"
    )
    sub.add_argument(
        "--policy", metavar="P",
        help="check a policy server instead: what it says, what it answers, what it remembers",
    )  # fmt: skip
    sub.add_argument(
        "--robot", choices=("franka", "unitree"),
        help="check a robot's cell instead: its files, and what is heard and was seen of it",
    )  # fmt: skip
    sub.add_argument("--cell", default="cell", help="name or file of it (default: cell)")
    sub.add_argument(
        "--seen", metavar="FILE", nargs="*", default=[],
        help="what franka_check_node or unitree_check_node has written",
    )  # fmt: skip
    return parser


def _list(args: argparse.Namespace) -> int:
    from bench_tasks import tasks

    found = [
        {"name": t.name, "tier": t.tier, "mode": t.mode, "kind": t.kind, "robot": t.embodiment,
         "summary": t.summary}
        for t in map(tasks.get, (*tasks.names(None), *tasks.names(None, apart=True)))
    ]
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    rows = [("name", "tier", "mode", "kind", "robot", "summary")]
    rows += [tuple(str(v if v is not None else "-") for v in item.values()) for item in found]
    _table(rows)
    return 0


def _gallery(args: argparse.Namespace) -> int:
    from bench_tasks import tasks
    from bench_tasks.commands.gallery import gallery

    names = tuple(tasks.names()) if args.tasks in (None, ("all",)) else args.tasks
    page = gallery(args.out, names, args.seed)
    print(json.dumps({"gallery": str(page)}) if args.json else f"written to {page}")
    return 0


def _table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _run(args: argparse.Namespace) -> int:
    from bench_tasks import runner, tasks
    from bench_tasks.config import RunConfig, read_config
    from bench_tasks.vocabulary import AXES

    options: dict[str, Any] = read_config(args.config) if args.config else {}
    for key in ("tasks", "planner", "policy", "episodes", "seed", "out", "cameras", "latency",
                "record", "vary", "jobs", "objects", "execution", "policy_latency", "execute",
                "policy_deadline_s", "image_size", "dynamics"):  # fmt: skip
        value = getattr(args, key)
        if value is not None:
            options[key] = value
    if "tasks" not in options:
        names = ", ".join(tasks.names(None))
        raise UsageError(f"--tasks is missing: choose from all (the FR3 pair's), {names}")
    if options["tasks"] == ("all",):
        options["tasks"] = tuple(tasks.names())
    if options.get("vary") == ("all",):
        options["vary"] = AXES
    result = runner.run(RunConfig(**options))
    summary = {"out": str(result.out or ""), "scores": str(result.scores or "")}
    _results(args, result.episodes, summary)
    if not args.json and result.out is not None:
        print(f"recorded in {result.out}; for a page: bench_tasks report {result.out}")
    return 0 if result.evaluated else 1


def _results(args: argparse.Namespace, episodes: list[Any], more: dict[str, str]) -> None:
    if args.json:
        found = [e.to_dict() for e in episodes]
        print(json.dumps({"episodes": found, **more}, indent=1, allow_nan=False))
        return
    from bench_tasks.reports.outcome import results_table

    print(results_table(episodes), end="")


def _score(args: argparse.Namespace) -> int:
    from bench_tasks.commands.progress import Progress
    from bench_tasks.verdicts import score_files, scoring
    from bench_tasks.verdicts.scored_runs import wrong_runs

    meter: list[Progress] = []

    def progress(done: int, total: int, score: scoring.EpisodeScore) -> None:
        if not meter:
            meter.append(Progress(total))
        verdict = "success" if score.success else f"failure ({score.cause})"
        meter[0].done(f"{score.task} seed {score.seed}: {verdict}")

    scores = scoring.score_folder(args.dir, progress)
    wrong = wrong_runs(args.dir, scores)
    saved, unsaved = None, None
    try:
        saved = None if args.no_save else score_files.save_scores(args.dir, scores)
    except BenchError as error:
        unsaved = error
    _results(args, scores, {"scores": str(saved or "")})
    if saved and not args.json:
        print(f"written to {saved}")
    for line in wrong:
        print(f"bench_tasks: {line}", file=sys.stderr)
    if unsaved is not None:
        raise unsaved
    return 0 if not wrong and all(s.evaluated for s in scores) else 1


def _report(args: argparse.Namespace) -> int:
    from bench_tasks.reports.report import write_report

    page = write_report(args.dir, args.out)
    print(json.dumps({"report": str(page)}) if args.json else f"written to {page}")
    return 0


def _serve(args: argparse.Namespace) -> int:
    from bench_tasks.runner import policy_server

    if args.port > 65535:
        raise UsageError(f"port must be at most 65535, got {args.port}")
    server = policy_server(args.policy, args.host, args.port)
    where = f"ws://{args.host}:{server.port}"
    if args.json:
        print(json.dumps({"url": where, **server.metadata}), flush=True)
    else:
        print(f"serving {args.policy} at {where}; Ctrl-C ends it\n"
              f"to evaluate it: bench_tasks run --policy {server.client_spec} ...", flush=True
              )  # fmt: skip
    server.serve_forever()
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from bench_tasks.commands.doctor import (
        examine,
        examine_franka,
        examine_server,
        examine_unitree,
    )

    if args.policy and args.robot:
        raise UsageError("give --policy or --robot, not both")
    if args.robot:
        look = {"franka": examine_franka, "unitree": examine_unitree}[args.robot]
        findings = look(args.cell, args.seen)
    else:
        findings = examine_server(args.policy) if args.policy else examine()
    if args.json:
        print(json.dumps({"checks": [f.to_dict() for f in findings]}, indent=1))
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FAIL" if finding.needed else "note"
            print(f"{mark}  {finding.name}: {finding.found}")
            if not finding.ok:
                print(f"      {finding.remedy}")
    return 0 if all(f.ok for f in findings if f.needed) else 1


_COMMANDS = {
    "list": _list, "gallery": _gallery, "objects": objects_cli.run, "run": _run,
    "remember": remember.run,
    "score": _score, "report": _report, "serve": _serve, "doctor": _doctor,
    **data_cli.COMMANDS, **train_cli.COMMANDS, **reality_cli.COMMANDS,
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        args = _parser().parse_args(argv)
        status = _COMMANDS[args.command](args)
        sys.stdout.flush()
        return status
    except BenchError as error:
        print(f"bench_tasks: {' '.join(str(error).split())}", file=sys.stderr)
        return getattr(error, "exit_status", 2)
    except KeyboardInterrupt:
        print("bench_tasks: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output went away; nothing may be flushed to it when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
