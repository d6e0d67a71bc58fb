"""The command `bench_tasks remember`: play memory probes with memories, and score what came."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from bench_tasks.errors import UsageError

if TYPE_CHECKING:
    from bench_tasks.probes.judging import Judged
    from bench_tasks.probes.runs import Run
    from bench_tasks.probes.tables import Row
    from policies.judge import Judge

__all__ = ["add", "run"]

def add(parser: argparse.ArgumentParser, number: Callable, names: Callable) -> None:
    """Add what the command takes; `number(minimum)` reads whole numbers, `names` lists."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        sub = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS,
            help="print JSON on standard output",
        )  # fmt: skip
        return sub

    action("list", "list the probes and the memories there are, with their options")
    sub = action("run", "play probes with memories, keep every step, and score them")
    sub.add_argument(
        "--probe", action="append", metavar="P", dest="probes",
        help="name or name:key=value,...; may be given again (default: conversations)",
    )  # fmt: skip
    sub.add_argument(
        "--memory", action="append", metavar="M", dest="memories",
        help="name or name:key=value,...; may be given again (default: none and full)",
    )  # fmt: skip
    sub.add_argument(
        "--seeds", type=number(1), default=1, metavar="N", help="seeds of each (default: 1)"
    )
    sub.add_argument(
        "--seed", type=number(0), default=0, metavar="S", help="the first one (default: 0)"
    )
    sub.add_argument(
        "--reader", metavar="M",
        help="a planner's model (openai:..., transformers:..., smollm2) that answers from what is "
        "recalled (default: rules)",
    )  # fmt: skip
    sub.add_argument(
        "--user", metavar="M",
        help="a planner's model that plays the user of amemgym (default: rules)",
    )  # fmt: skip
    sub.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to keep all")
    _pictures(sub)
    _by(sub, names)
    sub = action("write", "write a probe's conversations, or users, in the published layout: of "
                 "H2HMem, or of AMemGym")  # fmt: skip
    sub.add_argument("--probe", default="conversations", metavar="P", help="as for run")
    sub.add_argument(
        "--seeds", type=number(1), default=1, metavar="N", help="how many of them (default: 1)"
    )
    sub.add_argument(
        "--seed", type=number(0), default=0, metavar="S", help="the first one (default: 0)"
    )
    sub.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new data set")
    _pictures(sub)
    sub = action("score", "score what was played again, and write a new result file beside the old")
    sub.add_argument("dir", type=Path, metavar="DIR", help="a folder of runs, or one run")
    sub.add_argument(
        "--judge", metavar="M",
        help="a planner's model (as for --reader) that judges each reply, once: what it says is "
        "kept in the folder, and how far it agrees with the rules is shown",
    )  # fmt: skip
    _by(sub, names)
    sub = action("report", "write a self-contained HTML page about what was played")
    sub.add_argument("dir", type=Path, metavar="DIR", help="as for score")
    sub.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: DIR/memory.html)"
    )


def _pictures(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--pictures", type=Path, default=Path("results/stills"), metavar="DIR",
        help="where rendered pictures are kept for the next time (default: results/stills)",
    )  # fmt: skip


def _by(sub: argparse.ArgumentParser, names: Callable) -> None:
    sub.add_argument(
        "--by", type=names, default=("kind",), metavar="A,B",
        help="what to show results by: kind (default), modality, people, distractors, paraphrase, "
        "difficulty, turns, days; '' for none",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Do what the command line says; 1 when a run was broken off or a memory raised something.

    With a judge also when there is a reply that it gave no verdict on.
    """
    actions = {"list": _list, "run": _run, "score": _score, "report": _report, "write": _write}
    return actions[args.action](args)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _list(args: argparse.Namespace) -> int:
    from bench_tasks.probes import PROBES
    from bench_tasks.registry import load
    from policies.memory import MEMORIES, check_memory

    found: dict[str, dict[str, dict[str, object]]] = {}
    for role, registry in (("probe", PROBES), ("memory", MEMORIES)):
        found[role] = {}
        for name in registry:
            try:
                kind = load(role, name, registry)
                if role == "memory":
                    check_memory(name)
            except UsageError as error:
                found[role][name] = {"missing": str(error)}
                continue
            options = fields(kind.Options) if hasattr(kind, "Options") else ()
            found[role][name] = {option.name: option.default for option in options}
    if args.json:
        _say(json.dumps(found, indent=1))
        return 0
    for role, kinds in found.items():
        for name, options in kinds.items():
            if "missing" in options:
                _say(f"{role} {name} (not here: {options['missing']})")
                continue
            shown = ",".join(f"{key}={_text(value)}" for key, value in options.items())
            _say(f"{role} {name}" + (f":{shown}" if shown else ""))
    return 0


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(value) if isinstance(value, tuple) else str(value)


def _run(args: argparse.Namespace) -> int:
    from bench_tasks.commands.progress import Progress
    from bench_tasks.manifest import writable_folder
    from bench_tasks.memory_runs import played
    from bench_tasks.probes.scores import check_splits

    check_splits(args.by)
    probes = args.probes or ["conversations"]
    memories = args.memories or ["none", "full"]
    seeds = range(args.seed, args.seed + args.seeds)
    writable_folder(args.out)
    progress = Progress(len(probes) * len(memories) * len(seeds))

    def done(run: Run) -> None:
        from bench_tasks.probes.scores import score

        found = score(run.records)
        progress.done(f"{run.probe} seed {run.seed} {run.memory}: {found.right}/{found.count}")

    def note(text: str) -> None:
        sys.stderr.write(f"bench_tasks: {text}\n")

    runs = played(probes, memories, seeds, args.out, args.pictures, done, note, args.reader,
                  args.user)  # fmt: skip
    progress.close()
    return _told(args, runs, args.out)


def _score(args: argparse.Namespace) -> int:
    from bench_tasks.probes.scores import check_splits
    from bench_tasks.probes.tables import read_runs

    check_splits(args.by)
    if args.judge is None:
        return _told(args, read_runs(args.dir), args.dir)
    from policies.judge import make_judge

    judge = make_judge(args.judge)
    runs = read_runs(args.dir)
    return _told(args, runs, args.dir, _judged(judge, runs, args.dir))


def _report(args: argparse.Namespace) -> int:
    from bench_tasks.reports.memory_page import write_memory_page

    page = write_memory_page(args.dir, args.out)
    _say(json.dumps({"report": str(page)}) if args.json else f"written to {page}")
    return 0


def _judged(judge: Judge, runs: list[Run], folder: Path) -> Judged:
    from bench_tasks.commands.progress import Progress
    from bench_tasks.probes.judging import judge_runs

    def begun(count: int) -> Callable[[str], None]:
        return Progress(count).done

    return judge_runs(runs, judge, folder, begun)


def _told(
    args: argparse.Namespace, runs: list[Run], folder: Path, judged: Judged | None = None
) -> int:
    from bench_tasks.probes.agreement import judged_tables, judged_to_dict
    from bench_tasks.probes.tables import rows_of, save_rows, tables

    rows: list[Row] = rows_of(runs)
    table = tables(rows, args.by)
    more = {}
    if judged is not None:
        table, more = f"{table}\n{judged_tables(judged)}", {"judged": judged_to_dict(judged)}
    saved = save_rows(folder, rows, more)
    if args.json:
        shown = {"rows": [row.to_dict() for row in rows], **more, "scores": str(saved)}
        _say(json.dumps(shown, indent=1))
    else:
        _say(f"{table}written to {saved}; for a page: bench_tasks remember report {folder}")
    missing = judged is not None and any(case.reason for case in judged.cases)
    return 1 if missing or any(row.unfinished or row.errors for row in rows) else 0


def _write(args: argparse.Namespace) -> int:
    from bench_tasks.manifest import writable_folder
    from bench_tasks.memory_runs import check_new, renderer
    from bench_tasks.probes import check_seeds, make_probe
    from bench_tasks.probes.amemgym import AMemGym
    from bench_tasks.probes.h2hmem_writer import write_dialogue
    from bench_tasks.probes.users import write_users

    kind = make_probe(args.probe)
    seeds = range(args.seed, args.seed + args.seeds)
    check_seeds(args.probe, kind, seeds)
    writable_folder(args.out)
    kinds = [getattr(kind, "of", lambda seed: kind)(seed) for seed in seeds]
    if isinstance(kinds[0], AMemGym):
        path = args.out / "data.json"
        check_new([path])
        write_users([k.user(seed) for k, seed in zip(kinds, seeds, strict=True)], path)
        _say(json.dumps({"users": str(path)}) if args.json else f"users written to {path}")
        return 0
    folders = [args.out / f"dialogue{k + 1}" for k in range(args.seeds)]
    check_new(folders)
    render = renderer(args.pictures, [kind])
    for k, folder in enumerate(folders):
        write_dialogue(kind.steps(args.seed + k, render), folder)
    if args.json:
        _say(json.dumps({"dialogues": [str(folder) for folder in folders]}, indent=1))
    else:
        _say(f"{len(folders)} conversations written to {args.out}")
    return 0
