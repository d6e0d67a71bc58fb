"""The arguments of `memory.launch.py`, checked before any process is started; no ROS needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench_tasks.commands.launch_args import flag, whole
from bench_tasks.errors import UsageError
from bench_tasks.manifest import stamped_folder, writable_folder
from bench_tasks.memory_runs import (
    check_live,
    check_new,
    check_pictures,
    run_path,
    with_models,
)
from bench_tasks.probes import check_seeds, make_probe
from bench_tasks.ros.domain import claim_domain

__all__ = ["ARGUMENTS", "read"]

ARGUMENTS: dict[str, tuple[str, str]] = {
    "probe": ("conversations", "what is said and asked: name or name:key=value,..."),
    "memory": ("structured", "what remembers and answers: name or name:key=value,..."),
    "reader": ("", "a planner's model, openai:..., that answers from what is recalled; '': rules"),
    "user": ("", "a planner's model that plays the user of amemgym; '': rules"),
    "seeds": ("1", "how many times it is played, each with a seed of its own"),
    "seed": ("0", "the first one; each further one adds 1"),
    "record": ("true", "one bag for each seed, which can be scored again; false: the table only"),
    "out": ("", "folder for bags and results; default results/<UTC time>"),
    "pictures": ("results/stills", "where rendered pictures are kept for the next time"),
}
"""Launch argument -> (default, description)."""


def read(given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of the node `probe` from the texts of all `ARGUMENTS`.

    UsageError in one line names the first wrong one, or the ROS domain if another run uses it.
    """
    seeds, seed = (whole(name, given[name]) for name in ("seeds", "seed"))
    if seeds < 1 or seed < 0:
        raise UsageError(f"seeds must be 1 or more and seed 0 or more, got {seeds} and {seed}")
    models, _, user = with_models(given["reader"], given["user"])
    kind = make_probe(given["probe"], **user)
    check_seeds(given["probe"], kind, range(seed, seed + seeds))
    check_live(given["memory"])
    record = flag("record", given["record"])
    claim_domain()
    pictures = Path(given["pictures"]).absolute()
    if not given["pictures"]:
        raise UsageError("pictures must be a folder, got ''")
    check_pictures(pictures, [kind])
    out = writable_folder(Path(given["out"]).absolute() if given["out"] else stamped_folder())
    played = range(seed, seed + seeds)
    check_new(run_path(out, given["probe"], given["memory"] + models, s) for s in played)
    return {
        "probe": given["probe"], "memory": given["memory"], "reader": given["reader"],
        "user": given["user"], "seeds": seeds, "seed": seed,
        "record": record, "out": str(out), "pictures": str(pictures),
    }  # fmt: skip
