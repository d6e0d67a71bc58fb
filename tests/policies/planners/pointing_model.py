"""A model that points at what the test knows to be there, in any dialect; or beside it."""

from __future__ import annotations

import json
import re

import numpy as np

from bench_tasks.view import View, invert, rotate, rotation_matrix
from policies.planners.dialects import qwen25_image_size
from sim.cameras import camera_info

CAMERAS = ("head", "third")


class PointingModel:
    """Answers the requests of one episode: carries each object to a place, one at each call.

    `carries(view)` gives what is left to do as (object, place) where a place is a world point (3,)
    or the name of an object, whose top it is. `off_px` moves every point by so many pixels.
    """

    def __init__(self, world, dialect: str, carries, off_px: float = 0.0, camera: str = "head"):
        self.world, self.dialect, self.carries = world, dialect, carries
        self.off_px, self.camera = off_px, camera
        self.points: list[tuple[float, float]] = []
        self.prompts: list[str] = []

    def __call__(self, body: dict) -> str:
        content = body["messages"][-1]["content"]
        text = " ".join(part.get("text", "") for part in content)
        self.prompts.append(text)
        self.frame = int(re.search(rf"frame (\d+) \({self.camera}\)", text)[1])
        view = View(self.world.scene, self.world.state)
        left = self.carries(view)
        if self.dialect == "rynnbrain":
            return self._spoken(view, left)
        steps = []
        if left:
            name, place = left[0]
            arm = "left" if view.position(name)[1] > 0 else "right"
            steps = [
                [{"skill": "grasp", "arm": arm, "args": self.show(top(view, name))}],
                [{"skill": "place", "arm": arm, "args": self.show(self._place(view, place))}],
                [{"skill": "home", "arm": arm, "args": {}}],
            ]
        return json.dumps({"executable_plan": steps})

    def _place(self, view, place):
        return top(view, place) if isinstance(place, str) else np.asarray(place)

    def _spoken(self, view, left) -> str:
        if not left:
            return "Done."
        name, place = left[0]
        a, b = self.scaled(top(view, name)), self.scaled(self._place(view, place))
        tag = f"<frame {self.frame}>"
        return (
            f"<think>I think.</think>Pick up <affordance> {tag}: ({a[0]}, {a[1]}) </affordance> of "
            f"<object> {tag}: (0, 0), (1000, 1000) </object>. Place <object> {tag}: (0, 0), "
            f"(1000, 1000) </object> into <area> {tag}: ({b[0]}, {b[1]}) </area>."
        )

    def uv(self, point: np.ndarray) -> tuple[float, float]:
        """Where a world point is in the picture, 0 to 1, by the pinhole's equations."""
        cameras, world = self.world.cameras, self.world
        pose = invert(cameras.pose(world.data, self.camera))
        seen = pose[:3] + rotate(pose[3:], point)
        info = camera_info(world.model, self.camera, cameras.width, cameras.height)
        x, y = (info.matrix @ seen)[:2] / seen[2]
        self.points.append((x, y))
        x += self.off_px
        return (x + 0.5) / cameras.width, (y + 0.5) / cameras.height

    def scaled(self, point) -> tuple[float, float]:
        """The point as the dialect writes its numbers."""
        u, v = self.uv(point)
        if self.dialect.startswith("qwen2.5"):
            width, height = qwen25_image_size(self.world.cameras.width, self.world.cameras.height)
            return round(u * width, 1), round(v * height, 1)
        if self.dialect == "molmo1":
            return round(100 * u, 1), round(100 * v, 1)
        if self.dialect.startswith("robo"):
            return round(u, 3), round(v, 3)
        return round(1000 * u), round(1000 * v)

    def show(self, point) -> dict:
        """Arguments of a call that points there."""
        a, b = self.scaled(point)
        frame = {"frame": self.frame}
        return {
            "qwen3-vl": {"point_2d": [a, b], "label": "it", **frame},
            "qwen2.5-vl": {"point_2d": [a, b], **frame},
            "qwen2.5-vl-xml": {"point": f'<point x="{a}" y="{b}">it</point>', **frame},
            "gemini-er": {"point": [b, a], **frame},
            "molmo1": {"point": f'<point x="{a}" y="{b}" alt="it">it</point>', **frame},
            "molmo2": {"point": f'<points coords="{self.frame} 1 {a} {b}">it</points>'},
            "robopoint": {"point": f"[({a}, {b})]", **frame},
            "roborefer": {"point": f"[({a}, {b})]", **frame},
        }[self.dialect]


def top(view: View, name: str) -> np.ndarray:
    """The middle of an object's upper side."""
    half = np.asarray(view.scene.object(name).half_size_m)
    height = np.abs(rotation_matrix(view.pose(name)[3:])[2]) @ half
    return view.position(name) + np.array([0.0, 0.0, height])
