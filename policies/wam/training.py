"""One training as a folder: what was asked, the checkpoint, the log and the page about it.

`train.json` keeps what was asked, so that the same command goes on in the folder after a kill and
another one is refused. The rest is `checkpoint.safetensors`, `log.jsonl`, `report.html`, and what a
stopped training needs to go on, `autoencoder.pt` and `training.pt`.
"""

from __future__ import annotations

import fcntl
import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.manifest import environment, read_json, utc_now, writable_folder, write_json
from policies.sentences import embed
from policies.wam.checkpoint import load_checkpoint
from policies.wam.distill import load_teacher
from policies.wam.flow import SCHEDULES
from policies.wam.rows_cache import Loaded, load_rows
from policies.wam.shape import LARGEST, Shape
from policies.wam.train import Recipe, Trainer
from policies.wam.train_report import write_report

__all__ = ["KINDS", "Done", "read_shape", "train"]

KINDS = ("wam", "bc")
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Done:
    """What came out: files, the last errors of held-out demonstrations, the tasks learnt."""

    checkpoint: Path
    report: Path
    steps: int
    wall_s: float
    held_out: dict[str, float]
    tasks: list[str]


def read_shape(text: str, kind: str, init: str = "") -> Shape:
    """The shape that `key=value,...` asks for, the rest being that of `init`, or the default.

    UsageError lists the valid keys, or names the wrong value.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    base = load_checkpoint(Path(init)).model.shape if init else Shape()
    known = {field.name: field for field in fields(Shape) if field.name != "video"}
    given: dict[str, Any] = {}
    for item in text.split(",") if text else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise UsageError(f"--shape takes key=value,..., got {item!r}")
        if key not in known:
            raise unknown("shape", key, known)
        given[key] = value
        if known[key].type == "int":
            if not value.isdecimal() or not 1 <= int(value) <= LARGEST:
                raise UsageError(f"--shape {key} must be from 1 to {LARGEST}, got {value!r}")
            given[key] = int(value)
    shape = replace(base, video=kind == "wam", **given)
    if init and shape.latent != base.latent:
        raise UsageError(
            f"--shape latent must be {base.latent}, as in {init}, whose autoencoder is used; got "
            f"{shape.latent}"
        )
    return shape


def train(
    data: Sequence[str], out: str, kind: str, shape: str, recipe: Recipe, cache: str,
    say: Callable[[str], None],
) -> Done:
    """Train, or go on with what was begun in `out`.

    UsageError when something is wrong with what is asked, before anything is computed, or when
    `out` holds another training.
    """
    recipe.checked()
    if recipe.schedule not in SCHEDULES:
        raise unknown("schedule", recipe.schedule, SCHEDULES)
    sizes = read_shape(shape, kind, recipe.init)
    if not sizes.video and not recipe.action_weight:
        raise UsageError(f"action_weight must be above 0 for {kind}, which learns nothing else")
    if recipe.teacher:
        load_teacher(Path(recipe.teacher), sizes)
    folders, folder = [Path(name) for name in data], Path(out)
    if len({path.resolve() for path in folders}) < len(folders):
        raise UsageError(f"--data names a folder twice: {','.join(data)}")
    for path in folders:
        if not path.is_dir():
            raise UsageError(f"{path} is not a folder")
    before = _begun(folder)
    embed("")  # what is missing for it is said now, not after minutes of reading
    writable_folder(folder)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another process is training in {folder}") from None
        loaded = load_rows(folders, sizes, say, Path(cache) if cache else None)
        _check_length(sizes, max(loaded.rows.lengths))
        asked = _asked(kind, sizes, recipe, loaded)
        if before is not None:
            _compare(folder, before, asked)
        made = {**_made(recipe, loaded, before), "caution": _caution(recipe, sizes, loaded)}
        if made["caution"]:
            say(made["caution"])
        trainer = Trainer(loaded.rows, sizes, recipe, folder, say, made, loaded.seeds)
        if before is None:
            write_json(folder / "train.json", {
                "format_version": FORMAT_VERSION, "asked": asked, "started": utc_now(),
                **environment(),
            })  # fmt: skip
        try:
            trainer.run()
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "memory" not in str(error):
                raise
            raise UsageError(
                f"there is not enough memory for --batch {recipe.batch} of this --shape: choose "
                "less, and a new folder for --out"
            ) from None
        result = load_checkpoint(folder / "checkpoint.safetensors")
        say("writing the report")
        report = write_report(folder, result, trainer, loaded.seeds, recipe.sampling)
    last = next((entry for entry in reversed(trainer.history) if "held_out_rad" in entry), {})
    errors = {k: v for k, v in last.items() if k.startswith("held_out")}
    about = result.made
    return Done(
        folder / "checkpoint.safetensors", report, about["steps"], about["wall_s"], errors,
        about["tasks"],
    )  # fmt: skip


def _check_length(shape: Shape, longest: int) -> None:
    """UsageError when a model would look further than any demonstration goes, at made-up rows."""
    for what, count, names in (
        ("predict", shape.chunk, "stride x frames"),
        ("remember", shape.stride * (shape.history - 1), "stride x (history - 1)"),
    ):
        if count >= longest:
            raise UsageError(
                f"--shape {names} is {count}: no demonstration has more than {longest} rows, so "
                f"there is nothing so far away to {what}"
            )


def _begun(folder: Path) -> dict[str, Any] | None:
    """What `train.json` says; None for a new folder. UsageError when it holds something else."""
    file = folder / "train.json"
    if file.exists():
        found = read_json(file)
        if found.get("format_version") != FORMAT_VERSION:
            raise UsageError(f"{file} has not format_version {FORMAT_VERSION}")
        for key, kind in (("asked", dict), ("command", list), ("git", dict)):
            if not isinstance(found.get(key), kind):
                raise UsageError(f"{file} does not say {key}: choose a new folder for --out")
        return found
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    if folder.exists() and any(path.name != ".lock" for path in folder.iterdir()):
        raise UsageError(f"{folder} holds something else: choose a new folder for --out")
    return None


def _asked(kind: str, shape: Shape, recipe: Recipe, loaded: Loaded) -> dict[str, Any]:
    """All that the result depends on, flat, as JSON gives it back."""
    files = {
        key: hashlib.sha256(Path(name).read_bytes()).hexdigest() if name else ""
        for key, name in (("init", recipe.init), ("teacher", recipe.teacher))
    }
    sizes = {f"shape {key}": value for key, value in shape.to_dict().items() if key != "video"}
    return {
        "kind": kind, **asdict(recipe), **files, **sizes,
        "data": [part["hash"] for part in loaded.folders],
    }  # fmt: skip


def _compare(folder: Path, before: dict[str, Any], asked: dict[str, Any]) -> None:
    """UsageError that names what is not as it was.

    What a training of an earlier version says nothing of, it did as is done by default.
    """
    shape = {f"shape {key}": value for key, value in Shape().to_dict().items() if key != "video"}
    old = {**asdict(Recipe()), **shape, **before["asked"]}
    differ = [key for key in {**before["asked"], **asked} if old.get(key) != asked.get(key)]
    if not differ:
        return

    def shown(value: Any) -> str:
        parts = value if isinstance(value, list) else [value]
        return "+".join(str(part)[:12] for part in parts) or "none"

    texts = [f"{key} was {shown(old.get(key))}, is {shown(asked.get(key))}" for key in differ]
    raise UsageError(
        f"{folder} holds another training ({'; '.join(texts)}): ask for the same, or choose a new "
        "folder for --out"
    )


def _caution(recipe: Recipe, shape: Shape, loaded: Loaded) -> str:
    """Why errors of held-out demonstrations may be too small; "" when nothing speaks for it."""
    if not recipe.init:
        return ""
    found = load_checkpoint(Path(recipe.init))
    learnt = [part["hash"] for part in found.made.get("data", [])]
    same = [part["hash"] for part in loaded.folders] == learnt
    if found.model.shape.video != shape.video or same and found.made.get("seed") == recipe.seed:
        return ""  # it gives no weights, or held out the same
    return (
        f"{recipe.init} was trained with another seed or other data, so it may have learnt from "
        "demonstrations that are held out here: their errors may be too small"
    )


def _made(recipe: Recipe, loaded: Loaded, before: dict[str, Any] | None) -> dict[str, Any]:
    """What the checkpoint says of where it comes from; the trainer adds to it.

    The command is the one that began the training: a later one only went on.
    """
    about = before or environment()
    return {
        "command": shlex.join(str(word) for word in about["command"]), "seed": recipe.seed,
        "data": loaded.folders, "git": about["git"],
    }  # fmt: skip
