"""The commands about simulation and reality: `bench_tasks sysid` and `paired`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench_tasks.errors import UsageError
from bench_tasks.robots.dynamics import is_dynamics

__all__ = ["COMMANDS", "add"]

HEAD = "# Dynamics of a robot"
"""How a report of sysid begins."""
Command = Callable[[str, str], argparse.ArgumentParser]


def add(command: Command) -> None:
    """Add the commands."""
    sub = command("sysid", "fit stiffness, friction, delay and offsets of a robot to a recording")
    sub.add_argument(
        "dir", type=Path, metavar="BAG", help="one recording, of policy excite for example"
    )
    sub.add_argument(
        "--out", type=Path, metavar="FILE.yaml", required=True,
        help="what run --dynamics reads; the report is put beside it, as FILE.md",
    )  # fmt: skip
    sub.add_argument(
        "--try", dest="other", type=Path, metavar="BAG2",
        help="another recording of the robot, to see how well what was found does there",
    )  # fmt: skip

    sub = command("paired", "say how well simulated results foretell real ones")
    sub.add_argument("sim", type=Path, metavar="SIM", help="a folder of simulated results")
    sub.add_argument(
        "real", type=Path, metavar="REAL", help="a folder of what they are to foretell"
    )
    sub.add_argument(
        "--out", type=Path, metavar="FILE.html",
        help="the page with the scatter (default: SIM/paired.html)",
    )  # fmt: skip


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _check_writable(out: Path, page: Path) -> None:
    """UsageError where the files cannot be written, or would replace what is not sysid's."""
    if out.exists() and not is_dynamics(out):
        raise UsageError(f"{out} is no file of sysid and would be overwritten: give --out another "
                         "name")  # fmt: skip
    if page.exists() and not page.read_text(encoding="utf-8", errors="replace").startswith(HEAD):
        raise UsageError(f"{page} is no report of sysid and would be overwritten: give --out "
                         "another name")  # fmt: skip
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error.strerror}") from error


def _sysid(args: argparse.Namespace) -> int:
    from bench_tasks.excitation import read_excitation
    from bench_tasks.manifest import replacing
    from bench_tasks.runner import identified

    if args.out.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--out must end with .yaml, got {args.out}")
    page = args.out.with_suffix(".md")
    _check_writable(args.out, page)
    told = read_excitation(args.dir)
    other = read_excitation(args.other) if args.other else None
    if not args.json:
        sys.stderr.write(f"fitting {told.time_s[-1]:.0f} s of motion: about as long on one core\n")
    found = identified(told, other)
    text = (
        f"{HEAD}\n\nFitted to {told.name} (SHA-256 {told.hash[:12]}), "
        f"{told.time_s[-1]:.1f} s. Errors are root mean squares between recorded and simulated "
        f"positions, before and after{', also elsewhere: ' + other.name if other else ''}; "
        f"± is half of a 95 % interval.\n\n{found.table()}"
    )
    found.dynamics.write(args.out)
    with replacing(page) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if args.json:
        files = {"dynamics": str(args.out), "report": str(page)}
        _say(json.dumps({**files, **found.to_dict()}, indent=1, allow_nan=False))
    else:
        _say(found.table())
        _say(f"written to {args.out} and {page}; try it: bench_tasks run --dynamics {args.out} ...")
    if found.at_limit:
        sys.stderr.write(
            "bench_tasks: no estimates, but the ends of their ranges, are the "
            f"{'; '.join(found.at_limit)}. An end says that the robot is beyond it (arms that "
            "follow without any lag are stiffer than any simulated servo), or that the recording's "
            "times jitter, as on a busy machine\n"
        )  # fmt: skip
        return 1
    return 0


def _paired(args: argparse.Namespace) -> int:
    from bench_tasks.manifest import PAGE, replaceable, replacing
    from bench_tasks.reports.paired import compare, results_of
    from bench_tasks.reports.paired_page import page, text

    if args.sim.is_dir() and args.sim.resolve() == args.real.resolve():
        raise UsageError(f"SIM and REAL are the same folder: {args.sim}")
    target = replaceable(args.out or args.sim / "paired.html", PAGE)
    found = compare(results_of(args.sim), results_of(args.real))
    with replacing(target) as temporary:
        temporary.write_text(page(found, str(args.sim), str(args.real)), encoding="utf-8")
    if args.json:
        _say(json.dumps({**found.to_dict(), "page": str(target)}, indent=1, allow_nan=False))
    else:
        _say(text(found))
        _say(f"written to {target}")
    return 0


COMMANDS = {"sysid": _sysid, "paired": _paired}
