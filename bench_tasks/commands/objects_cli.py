"""The command `bench_tasks objects`: list the kinds, grow a set, show one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench_tasks.errors import UsageError
from bench_tasks.object_sets import read_set, shipped

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser, number: Callable) -> None:
    """Add what the command takes; `number(minimum)` reads whole numbers."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        sub = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS,
            help="print JSON on standard output",
        )
        return sub

    action("list", "list the kinds that can be evolved with their lengths, and the sets there are")
    sub = action("evolve", "grow a set: propose an edit, build, simulate, keep what passes")
    sub.add_argument("--kinds", required=True, metavar="A,B", help="kinds to evolve, in turn")
    sub.add_argument("--count", type=number(1), default=12, metavar="N", help="objects to keep")
    sub.add_argument("--seed", type=number(0), default=0, metavar="S", help="what to draw from")
    sub.add_argument("--out", type=Path, required=True, metavar="FILE.yaml", help="the set")
    sub = action("show", "picture the objects of a set, each after its kind as it is")
    sub.add_argument("set", metavar="SET", help="a file, or the name of a set")
    sub.add_argument("--out", type=Path, required=True, metavar="FILE.png", help="the picture")


def run(args: argparse.Namespace) -> int:
    """Do what the command line says; 1 when fewer objects were found than asked for."""
    return {"list": _list, "evolve": _evolve, "show": _show}[args.action](args)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _list(args: argparse.Namespace) -> int:
    from bench_tasks.evolve import evolvable

    kinds = evolvable()
    sets = {name: read_set(name) for name in shipped()}
    if args.json:
        found = {name: [item.name for item in found.objects] for name, found in sets.items()}
        _say(json.dumps({"kinds": kinds, "sets": found}, indent=1))
        return 0
    for kind, lengths in kinds.items():
        _say(f"{kind}: " + ", ".join(f"{name} {1e3 * v:g} mm" for name, v in lengths.items()))
    for name, found in sets.items():
        _say(f"set {name}: {', '.join(item.name for item in found.objects)}")
    return 0


def _evolve(args: argparse.Namespace) -> int:
    from bench_tasks.evolve import evolve

    kinds = tuple(word.strip() for word in args.kinds.split(",") if word.strip())
    if not kinds:
        raise UsageError("--kinds names no kind (see bench_tasks objects list)")
    if args.out.exists():
        raise UsageError(f"{args.out} exists already: choose another file")
    command = (
        f"bench_tasks objects evolve --kinds {','.join(kinds)} --count {args.count} "
        f"--seed {args.seed}"
    )
    try:  # before hours of work, not after
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.touch()
        args.out.unlink()
    except OSError as error:
        raise UsageError(f"cannot write {args.out}: {error.strerror}") from None

    def note(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    result = evolve(kinds, args.count, args.seed, command, note=note)
    kept = result.objects.objects
    if kept:
        try:
            args.out.write_text(result.objects.to_yaml(), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {args.out}: {error.strerror}") from None
    if args.json:
        _say(json.dumps({**result.to_dict(), "out": str(args.out) if kept else ""}, indent=1))
    else:
        for kind in kinds:
            why = ", ".join(f"{reason} ({n})" for reason, n in result.rejected[kind].most_common())
            count = len(result.objects.of_kind(kind))
            _say(f"{kind}: {count} kept of {result.proposed[kind]}; rejected: {why or 'none'}")
        _say(f"{len(kept)} objects written to {args.out}" if kept else "nothing to write")
    return 0 if len(kept) == args.count else 1


def _show(args: argparse.Namespace) -> int:
    from bench_tasks.evolve import contact_sheet
    from bench_tasks.manifest import PICTURE, replaceable

    out = contact_sheet(read_set(args.set), replaceable(args.out, PICTURE))
    _say(json.dumps({"picture": str(out)}) if args.json else f"written to {out}")
    return 0
