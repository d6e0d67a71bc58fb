"""From where a model points in a picture to where that is in the world; never by a guess."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bench_tasks.depth import depth_m
from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import CameraFrame
from policies.planners.dialects import DIALECTS, Mark, parse, qwen25_image_size
from policies.planners.geometry import depth_at, pixel_of, world_point
from policies.planners.jsontext import AnswerError

__all__ = ["Pointer"]


class Pointer:
    """The pictures of one call, numbered, and the dialect in which a model points in them.

    `found` tells of each point that was lifted which picture, pixel, depth and place it was: with
    the recorded depth, whoever reads the bag can do it again.
    """

    def __init__(self, dialect: str, frames: tuple[CameraFrame, ...], first: int) -> None:
        """`first` is the number by which the model was told the first of `frames`."""
        self._dialect, self._frames, self._first = dialect, frames, first
        self.found: list[dict[str, Any]] = []

    def args(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, a point in a picture replaced by one in the world.

        AnswerError when it is not one point, the picture is not told, or there is no depth.
        """
        dialect = DIALECTS[self._dialect]
        keys = dialect.point_keys or ("point",)
        for key in dialect.box_keys:
            if key in args:
                raise AnswerError(f"{key}: a target is one point, {keys[0]}")
        given = [key for key in keys if key in args]
        if not given:
            return args
        value, number = args[given[0]], args.get("frame")
        if dialect.form == "json":
            text = json.dumps([{given[0]: value}])
        elif isinstance(value, str):
            text = value
        else:
            raise AnswerError(f"point must be a text in the form of {self._dialect}, got {value!r}")
        size = None
        if dialect.scale is None:
            seen = self._frame(number)
            size = qwen25_image_size(seen.width, seen.height)
        parsed = parse(text, self._dialect, size)
        if parsed.dropped:
            raise AnswerError(f"the point {text} lies outside the picture")
        if len(parsed.marks) != 1:
            raise AnswerError(f"a target is one point, got {len(parsed.marks)}")
        rest = {k: v for k, v in args.items() if k not in (*given, "frame", "label")}
        return {**rest, "point": self.lift(parsed.marks[0], number)}

    def lift(self, mark: Mark, number: object = None) -> list[float]:
        """World position (3,), m, of what a point shows; AnswerError when that is not known.

        `number` names the picture unless the mark does.
        """
        if mark.kind != "point":
            raise AnswerError(f"a target is one point, got a {mark.kind}")
        frame = self._frame(number if mark.frame is None else mark.frame)
        if frame.depth is None:
            raise AnswerError(f"there is no depth with the picture of camera {frame.camera}")
        x, y = pixel_of(*mark.points[0], frame.width, frame.height)
        try:
            depth = depth_at(depth_m(frame.depth.png), x, y)
        except (BenchError, ValueError) as error:
            raise AnswerError(f"camera {frame.camera}: {error}") from None
        matrix = np.reshape(frame.depth.matrix, (3, 3))
        point = world_point(x, y, depth, matrix, np.array(frame.depth.pose))
        at = [round(float(v), 4) for v in point]
        self.found.append(
            {"camera": frame.camera, "seq": frame.seq, "pixel": [x, y], "depth_m": depth, "at": at}
        )
        return at

    def _frame(self, number: object) -> CameraFrame:
        count = len(self._frames)
        if not count:
            raise AnswerError("there is no picture to point in")
        numbers = range(self._first, self._first + count)
        named = " or ".join(str(n) for n in numbers)
        if number is None:
            if count > 1:
                raise AnswerError(f"say in which picture the point lies: frame {named}")
            return self._frames[0]
        text = str(number).strip()
        if isinstance(number, bool) or not text.isdecimal() or int(text[:9]) not in numbers:
            raise AnswerError(f"frame {text} is no picture of now: those are {named}")
        return self._frames[int(text[:9]) - self._first]
