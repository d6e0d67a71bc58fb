"""Points, boxes and trajectories in the output dialects of multimodal models, by one table.

A dialect is a setting of the model and never guessed: the scale cannot be told from the text.
Results are in normalised image coordinates: u to the right and v down, both in [0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench_tasks.errors import unknown
from policies.planners.jsontext import AnswerError, find_json

__all__ = ["DIALECTS", "Dialect", "DialectError", "Mark", "Parsed", "parse", "qwen25_image_size"]


class DialectError(AnswerError):
    """Text that is not of the dialect; the text says what is wrong."""


@dataclass(frozen=True)
class Mark:
    """Something a model showed in an image.

    `points` are (u, v): one for a point, two opposite corners (least u and v first) for a box,
    any number for a trajectory or polygon. `times` holds the frame time of each point of a track.
    """

    kind: str
    points: tuple[tuple[float, float], ...]
    label: str = ""
    frame: int | None = None
    id: int | None = None
    times: tuple[float, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """What an answer shows; `dropped` marks lay outside the image, `repairs` mended the text."""

    marks: tuple[Mark, ...]
    dropped: int = 0
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """How a family of models writes.

    `scale` is the number that stands for the image's full width and height (None: pixels of the
    image as the model saw it). `form` is json, xml, coords, tuples or tags. What lies outside the
    image is refused, or dropped where the family's own parser drops it.
    """

    form: str
    scale: float | None
    y_first: bool = False
    drop_outside: bool = False
    point_keys: tuple[str, ...] = ()
    box_keys: tuple[str, ...] = ()


_QWEN = {"point_keys": ("point_2d",), "box_keys": ("bbox_2d",)}
DIALECTS: dict[str, Dialect] = {
    "qwen3-vl": Dialect("json", 1000.0, **_QWEN),
    "qwen2.5-vl": Dialect("json", None, **_QWEN),
    "qwen2.5-vl-xml": Dialect("xml", None),
    "gemini-er": Dialect(
        "json", 1000.0, y_first=True, point_keys=("point",), box_keys=("box_2d",)
    ),
    "molmo1": Dialect("xml", 100.0, drop_outside=True),
    "molmo2": Dialect("coords", 1000.0, drop_outside=True),
    "robopoint": Dialect("tuples", 1.0),
    "roborefer": Dialect("tuples", 1.0),
    "rynnbrain": Dialect("tags", 1000.0),
}
"""Name -> dialect."""

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_XML = re.compile(r"<points?\b([^<>]*)>(?:([^<>]*)</points?>)?")
_ATTRIBUTE = re.compile(r"\b([A-Za-z]+)(\d*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_COORDS = re.compile(
    r"<(points|tracks)\b[^<>]*?\bcoords\s*=\s*\"([^\"]*)\"[^<>]*>(?:([^<>]*)</\1>)?"
)
_TUPLE = re.compile(r"\(\s*([^()]*?)\s*\)")
_TAGS = {
    "affordance": "point", "area": "point", "counting": "point", "object": "box",
    "trajectory": "trajectory", "traj": "trajectory", "grasp_pose": "polygon",
    "grasp pose": "polygon",
}
_TAG = re.compile(r"<(%s)>(.*?)(</\1>|(?=<(?:%s)>)|\Z)" % (("|".join(_TAGS),) * 2), re.DOTALL)
_FRAME = re.compile(r"<\s*frame\s*(\d{1,9})\s*>\s*[:;]?")
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


class _Outside(Exception):
    """A coordinate outside the image."""


@dataclass
class _Reader:
    """Turns numbers as the model wrote them into marks, and counts what was dropped."""

    dialect: Dialect
    width: float
    height: float
    dropped: int = 0

    def point(self, a: float, b: float) -> tuple[float, float]:
        x, y = (b, a) if self.dialect.y_first else (a, b)
        u, v = x / self.width, y / self.height
        if not (0.0 <= u <= 1.0 and 0.0 <= v <= 1.0):
            raise _Outside(f"({a:g}, {b:g}) is outside 0 to {self.width:g} x {self.height:g}")
        return u, v

    def mark(self, kind: str, values: list[float], **more: Any) -> Iterator[Mark]:
        """The mark of a flat list of coordinates; nothing when it is dropped."""
        try:
            points = tuple(
                self.point(a, b) for a, b in zip(values[::2], values[1::2], strict=True)
            )
        except _Outside as error:
            if not self.dialect.drop_outside:
                raise DialectError(str(error)) from None
            self.dropped += 1
            return
        if kind == "box":
            us, vs = zip(*points, strict=True)
            points = ((min(us), min(vs)), (max(us), max(vs)))
        yield Mark(kind, points, **more)


def parse(text: str, dialect: str, image_size: tuple[int, int] | None = None) -> Parsed:
    """Read a model's answer in a dialect of `DIALECTS`.

    `image_size` (width, height) in pixels of the image as the model saw it is needed by the
    dialects in pixels, and ignored by the others. DialectError when the text cannot be read or
    shows something outside the image; UsageError on an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise unknown("dialect", dialect, DIALECTS)
    chosen = DIALECTS[dialect]
    if chosen.scale is not None:
        width = height = chosen.scale
    elif image_size is None or min(image_size) < 1:
        raise DialectError(f"dialect {dialect} is in pixels: the image's size is needed")
    else:
        width, height = map(float, image_size)
    reader = _Reader(chosen, width, height)
    repairs: list[str] = []
    marks = tuple(_FORMS[chosen.form](text, reader, repairs))
    return Parsed(marks, reader.dropped, tuple(repairs))


def _numbers(values: Any, sizes: tuple[int, ...], what: str) -> list[float]:
    """Finite numbers of one of these counts; DialectError otherwise."""
    try:
        if isinstance(values, str | bytes | dict):
            raise TypeError
        numbers = [float(v) for v in values if not isinstance(v, bool)]
        good = len(numbers) == len(values) and all(abs(v) < 1e9 for v in numbers)
    except (TypeError, ValueError, OverflowError):
        numbers, good = [], False
    if not good or len(numbers) not in sizes:
        shown = repr(values)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        count = " or ".join(map(str, sizes))
        raise DialectError(f"{what} must have {count} finite numbers, got {shown}")
    return numbers


def _split(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", text) if word]


def _json(text: str, reader: _Reader, repairs: list[str]) -> Iterator[Mark]:
    try:
        found = find_json(text, (list, dict))
    except DialectError:
        raise
    except AnswerError as error:
        raise DialectError(str(error)) from None
    repairs.extend(found.repairs)
    entries = found.value if isinstance(found.value, list) else [found.value]
    dialect = reader.dialect
    keys = [*dialect.point_keys, *dialect.box_keys]
    for entry in entries:
        known = [key for key in keys if isinstance(entry, dict) and key in entry]
        if not known:
            shown = repr(entry)[:80]
            raise DialectError(f"an entry needs {' or '.join(keys)}, got {shown}")
        for key in known:
            box = key in dialect.box_keys
            values = _numbers(entry[key], (4,) if box else (2,), key)
            label = str(entry.get("label", ""))
            yield from reader.mark("box" if box else "point", values, label=label)


def _xml(text: str, reader: _Reader, repairs: list[str]) -> Iterator[Mark]:
    matches = list(_XML.finditer(text))
    if not matches:
        raise DialectError("no <point> or <points> in the answer")
    for match in matches:
        fields = {(a[1], a[2]): a[3] if a[3] is not None else a[4]
                  for a in _ATTRIBUTE.finditer(match[1])}  # fmt: skip
        label = (match[2] or fields.get(("alt", "")) or "").strip()
        numbers = [n for name, n in fields if name == "x"]
        if not numbers or any(("y", n) not in fields for n in numbers):
            raise DialectError(f"a point needs x and y, got <point{match[1][:60]}>")
        for n in numbers:
            values = _numbers([fields["x", n], fields["y", n]], (2,), "a point")
            yield from reader.mark("point", values, label=label, id=_small(n))


def _small(digits: str) -> int | None:
    return int(digits) if digits and len(digits) < 10 else None


def _coords(text: str, reader: _Reader, repairs: list[str]) -> Iterator[Mark]:
    matches = list(_COORDS.finditer(text))
    if not matches:
        raise DialectError("no <points coords> or <tracks coords> in the answer")
    for tag, coords, label in (match.groups() for match in matches):
        label = (label or "").strip()
        tracks: dict[int, list[tuple[float, float, float]]] = {}
        for group in re.split(r"[\t;:,]", coords):
            words = _split(group)
            if not words:
                continue
            size = len(words)
            if size % 3 != 1 or size < 4:
                raise DialectError(f"a group is frame, then id x y ..., got {group.strip()[:60]!r}")
            values = _numbers(words, (size,), "a group")
            for i in range(1, size, 3):
                number = int(values[i])
                if tag == "tracks":
                    tracks.setdefault(number, []).append((values[0], *values[i + 1 : i + 3]))
                else:
                    yield from reader.mark(
                        "point", values[i + 1 : i + 3], label=label, frame=int(values[0]),
                        id=number,
                    )  # fmt: skip
        for number, seen in tracks.items():
            marks = [(t, m) for t, x, y in seen for m in reader.mark("point", [x, y])]
            if marks:
                points = tuple(mark.points[0] for _, mark in marks)
                times = tuple(time for time, _ in marks)
                yield Mark("trajectory", points, label, None, number, times)


def _tuples(text: str, reader: _Reader, repairs: list[str]) -> Iterator[Mark]:
    matches = [m for m in _TUPLE.findall(text) if re.match(_NUMBER, m)]
    if not matches:
        raise DialectError("no tuple of coordinates in the answer")
    for inner in matches:
        values = _numbers(_split(inner), (2, 4), "a tuple")
        yield from reader.mark("box" if len(values) == 4 else "point", values)


def _tags(text: str, reader: _Reader, repairs: list[str]) -> Iterator[Mark]:
    # What is thought aloud before the answer is not the answer.
    answer = _ANSWER.search(text)
    text = answer[1] if answer else text.rpartition("</think>")[2]
    blocks = list(_TAG.finditer(text))
    if not blocks:
        raise DialectError(f"none of the tags {', '.join(_TAGS)} in the answer")
    for block in blocks:
        tag, inner = block[1], block[2]
        if not block[3]:
            repairs.append(f"<{tag}> is not closed")
        frames = [*_FRAME.finditer(inner)]
        parts: Iterable[tuple[int | None, str]] = [(None, inner)]
        if frames:
            ends = [*(f.start() for f in frames[1:]), len(inner)]
            parts = [
                (int(f[1]), inner[f.end() : e]) for f, e in zip(frames, ends, strict=True)
            ]
        for frame, part in parts:
            yield from _tagged(tag.replace(" ", "_"), frame, part, reader)


def _tagged(tag: str, frame: int | None, part: str, reader: _Reader) -> Iterator[Mark]:
    values = [
        value for inner in _TUPLE.findall(part)
        for value in _numbers(_split(inner), (2,), f"a point of <{tag}>")
    ]  # fmt: skip
    kind = _TAGS[tag]
    if not values:
        raise DialectError(f"<{tag}> has no coordinates: {part.strip()[:60]!r}")
    if kind == "box" and len(values) != 4:
        raise DialectError(f"<{tag}> must have two corners, got {len(values) // 2} points")
    if kind == "point":
        for i in range(0, len(values), 2):
            yield from reader.mark("point", values[i : i + 2], label=tag, frame=frame)
    else:
        yield from reader.mark(kind, values, label=tag, frame=frame)


_FORMS = {"json": _json, "xml": _xml, "coords": _coords, "tuples": _tuples, "tags": _tags}


def qwen25_image_size(
    width: int, height: int, factor: int = 28, min_pixels: int = 3136, max_pixels: int = 1003520
) -> tuple[int, int]:
    """(width, height) to which Qwen2.5-VL resizes an image: what its pixels refer to.

    Sides become multiples of `factor` (patch 14 times merge 2) and the area is kept within the
    two bounds, the aspect ratio as it was: the rule of the model's published processor.
    """
    w, h = (max(factor, round(side / factor) * factor) for side in (width, height))
    if w * h > max_pixels:
        ratio = (width * height / max_pixels) ** 0.5
        w, h = (max(factor, int(s / ratio / factor) * factor) for s in (width, height))
    elif w * h < min_pixels:
        ratio = (min_pixels / (width * height)) ** 0.5
        w, h = (-int(-s * ratio // factor) * factor for s in (width, height))
    return w, h
