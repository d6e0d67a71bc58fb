"""Result files: what a scoring said of the episodes of a folder, written and read."""

from __future__ import annotations

import datetime
import json
import os
import reprlib
import types
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from bench_tasks.diagnosis import KINDS
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.execution import check_execution
from bench_tasks.manifest import FORMAT_VERSION, environment, read_json, utc_now
from bench_tasks.verdicts.dreams import check_dreams
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.teamwork import check_teamwork
from bench_tasks.verdicts.usage import check_usage

__all__ = ["load_scores", "newest_scores", "save_scores"]


def save_scores(folder: Path, scores: list[EpisodeScore]) -> Path:
    """Write `scores-<UTC time>.json` into the folder beside older ones, and return its path.

    Bags are named relative to the folder. BenchError when it cannot be written.
    """
    episodes = []
    for score in scores:
        bag = Path(score.bag)
        inside = score.bag and bag.is_relative_to(folder)
        name = bag.relative_to(folder).as_posix() if inside else score.bag
        episodes.append({**score.to_dict(), "bag": name})
    result = {
        "format_version": FORMAT_VERSION, "created": utc_now(), "environment": environment(),
        "episodes": episodes,
    }  # fmt: skip
    text = json.dumps(result, indent=1, allow_nan=False) + "\n"  # unsorted: stages keep order
    path = folder / "scores.json"
    temporary = folder / f".scores-{os.getpid()}.tmp"
    try:
        try:
            temporary.write_text(text)
            while True:
                now = datetime.datetime.now(datetime.timezone.utc)
                path = folder / f"scores-{now:%Y%m%dT%H%M%S.%f}Z.json"
                try:
                    open(path, "x").close()  # the name is taken; its content comes in one step
                    break
                except FileExistsError:
                    continue  # another one in the same microsecond: take the next
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}") from None
    return path


def newest_scores(folder: Path, notes: list[str] | None = None) -> Path | None:
    """The latest readable result file of a folder; None when there is none.

    What was passed over, and why, is added to `notes`.
    """
    for path in sorted(folder.glob("scores-*.json"), reverse=True):
        try:
            load_scores(path)
            return path
        except UsageError as error:
            if notes is not None:
                notes.append(f"passed over: {error}")
    return None


_HINTS = get_type_hints(EpisodeScore)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of a field's type; a whole number is a float as well."""
    if isinstance(hint, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:
        return type(value) in (int, float) and abs(value) < 1e300
    if hint is int:
        return type(value) is int
    kind = get_origin(hint) or hint
    if hint == dict[str, bool] and isinstance(value, dict):
        return all(isinstance(item, bool) for item in value.values())
    return isinstance(value, kind)


def _checked(score: EpisodeScore) -> EpisodeScore:
    """Return it; TypeError when a field is of another type than it says, or cannot be."""
    for name, hint in _HINTS.items():
        if not _fits(getattr(score, name), hint):
            raise TypeError(f"{name} is {reprlib.repr(getattr(score, name))}")
    if not 0.0 <= score.progress <= 1.0:
        raise TypeError(f"progress is {score.progress}")
    if score.success != (score.scored and not score.cause):
        raise TypeError(f"success is {score.success}, scored {score.scored}, cause "
                        f"{reprlib.repr(score.cause)}")  # fmt: skip
    if not all(isinstance(note, str) and note for note in score.notes):
        raise TypeError(f"notes is {reprlib.repr(score.notes)}")
    if score.diagnosis and score.diagnosis.get("kind") not in KINDS:
        raise TypeError(f"diagnosis is {reprlib.repr(score.diagnosis)}")
    if not all(isinstance(value, str) for value in score.conditions.values()):
        raise TypeError(f"conditions is {reprlib.repr(score.conditions)}")
    check_usage(score.usage)
    check_execution(score.execution)
    check_dreams(score.dreams)
    check_teamwork(score.teamwork)
    if not isinstance(score.details.get("not_asked", ""), str):
        raise TypeError(f"not_asked is {reprlib.repr(score.details['not_asked'])}")
    for question in (
        one for key in ("questions", "afterwards")
        for one in _mapping(score.details.get(key, {})).values()
    ):  # fmt: skip
        _mapping(_mapping(question).get("gold", {}))
        _mapping(question.get("answer") or {})
        if not _fits(question.get("accuracy"), float) or not _fits(question.get("chance"), float):
            raise TypeError("a question has no accuracy or chance")
        if not (0.0 <= question["accuracy"] <= 1.0 and 0.0 <= question["chance"] < 1.0):
            raise TypeError("the accuracy or chance of a question is no share")
    return score


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{reprlib.repr(value)} is not a mapping")
    return value


def load_scores(path: Path) -> list[EpisodeScore]:
    """Read a result file; bags are named from its folder. UsageError when it is malformed."""
    raw = read_json(path)
    if raw.get("format_version") != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format_version {raw.get('format_version')!r}, this is {FORMAT_VERSION}"
        )
    try:
        return [
            _checked(EpisodeScore(**{
                **episode, "notes": tuple(episode["notes"]),
                "bag": str(path.parent / episode["bag"]) if episode["bag"] else "",
            }))
            for episode in raw["episodes"]
        ]  # fmt: skip
    except (KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is not a result file: {error}") from None
