"""Versioned prompt templates and what fills them, by level of help.

`none` tells the instruction and what the robot feels of itself; `names` adds the objects' names,
`poses` where they are, `recipe` the expert's next skills without their numbers. All levels above
`none` are privileged: reports show success by level, so that what they buy can be seen.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from string import Template
from typing import Any

import yaml

from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.view import View
from bench_tasks.vocabulary import (
    ARMS,
    ObjectInfo,
    Observation,
    PlanRequest,
    Question,
    Scene,
    SkillCall,
    WorldState,
)

__all__ = ["HELP", "Prompts", "versions"]

HELP = ("none", "names", "poses", "recipe")
"""Levels of help, each with all that the one before tells."""


_WHERE = re.compile(r" at \([-+\d., ]+\)")


def versions() -> list[str]:
    """The versions that can be chosen."""
    files = resources.files(__name__).iterdir()
    return sorted(f.name[: -len(".yaml")] for f in files if f.name.endswith(".yaml"))


@cache
def _templates(version: str) -> dict[str, Any]:
    if version not in versions():
        raise unknown("prompt version", version, versions())
    text = (resources.files(__name__) / f"{version}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _fill(template: str, **values: object) -> str:
    return Template(template).substitute({k: str(v) for k, v in values.items()}).strip()


class Prompts:
    """The texts of one version at one level of help. UsageError on an unknown one."""

    def __init__(
        self, version: str = "v1", help: str = "none", dialect: str = "",  # noqa: A002
    ) -> None:
        """Choose version, level, and how to point in pictures ("": not at all)."""
        if help not in HELP:
            raise unknown("level of help", help, HELP)
        self._texts, self.version, self.help = _templates(version), version, help
        self._pointing: dict[str, str] | None = None
        if dialect:
            self._pointing = self._texts["dialects"][dialect]

    @property
    def tells_names(self) -> bool:
        """Whether the model may know the objects' names."""
        return self.help != "none"

    def plan_system(self, actions: bool, skills: tuple[str, ...]) -> str:
        """What a planner is told once: frames, what a plan consists of, the form of an answer."""
        texts, pointing = self._texts, None if actions else self._pointing
        if pointing and "language" in pointing:
            return "\n".join([texts["system"].strip(), pointing["language"].strip()])
        form = "actions" if actions else "skills"
        known, example = dict(texts["skill_lines"]), texts[f"{form}_example"]
        parts = [texts["system"].strip()]
        if pointing:
            known |= {k: _fill(v, **pointing) for k, v in texts["point_lines"].items()}
            example = _fill(texts["point_example"], **pointing)
        lines = "\n".join(known[skill] for skill in skills)
        parts.append(_fill(texts[form], example=example.strip(), skills=lines))
        if pointing:
            parts.append(_fill(texts["pointing"], **pointing))
        return "\n".join([*parts, texts["finish"].strip()])

    def question_system(self) -> str:
        """What a planner is told once when it is asked a question."""
        return self._texts["question_system"].strip()

    def turn(
        self, request: PlanRequest, scene: Scene, start: WorldState, first: int = 1
    ) -> str:
        """What a planner is told at each call; `first` is the number of its first picture."""
        state = request.observation.state
        texts = self._texts
        parts = [
            _fill(
                texts["turn"], instruction=request.instruction, turn=request.turn + 1,
                time_s=f"{state.stamp_ns / 1e9:.1f}", state=self.state(state),
            ),  # fmt: skip
            *self._help(scene, state, start, request.turn),
            self._feedback(request.feedback),
            self._pictures(request.observation, first),
        ]
        return "\n".join(part for part in parts if part)

    def question(
        self, question: Question, observation: Observation, scene: Scene
    ) -> str:
        """The text of a question."""
        choices = [f"- {item}: {' or '.join(c)}" for item, c in question.choices.items()]
        example = json.dumps({item: "..." for item in question.choices})
        help_ = self._help(scene, observation.state, None, 0)
        parts = [
            *help_, self._pictures(observation),
            _fill(
                self._texts["question"], text=question.text, choices="\n".join(choices),
                example=example,
            ),
        ]  # fmt: skip
        return "\n".join(part for part in parts if part)

    def shown(self, observation: Observation) -> str:
        """What introduces pictures that were shown earlier."""
        return _fill(
            self._texts["shown"], time_s=f"{observation.state.stamp_ns / 1e9:.1f}",
            cameras=", ".join(f.camera for f in observation.frames),
        )  # fmt: skip

    @property
    def dropped(self) -> str:
        """What stands in the place of an old picture."""
        return self._texts["dropped"]

    def state(self, state: WorldState) -> str:
        """What the robot feels of itself: hand poses and gripper openings."""
        lines = []
        for k, arm in enumerate(ARMS):
            numbers = _pose_fields(state.ee_pose[k])
            opening = f"{state.gripper_opening[k]:.3f}"
            lines.append(
                _fill(self._texts["state_line"], arm=arm.capitalize(), opening=opening, **numbers)
            )
        return "\n".join(lines)

    def _pictures(self, observation: Observation, first: int | None = None) -> str:
        if not observation.frames:
            return self._texts["no_pictures"]
        names = [f.camera for f in observation.frames]
        if self._pointing and first is not None:
            names = [f"frame {first + k} ({name})" for k, name in enumerate(names)]
        names = ", ".join(names)
        return _fill(self._texts["pictures"], cameras=names)

    def _help(
        self, scene: Scene, state: WorldState, start: WorldState | None, turn: int
    ) -> list[str]:
        if self.help == "none":
            return []
        if self.help == "names":
            lines = [_fill(self._texts["names_line"], **_known(o)) for o in scene.objects]
            return [_fill(self._texts["names"], objects=", ".join(lines))]
        lines = [
            _fill(
                self._texts["poses_line"], **_known(o), **_pose_fields(state.object_pose[i]),
                **{f"s{k}": f"{2 * h:.3f}" for k, h in zip("xyz", o.half_size_m, strict=True)},
            )
            for i, o in enumerate(scene.objects)
        ]  # fmt: skip
        parts = [_fill(self._texts["poses"], objects="\n".join(lines))]
        if self.help == "recipe" and start is not None:
            steps = _recipe(scene, state, start, turn)
            if steps:
                parts.append(_fill(self._texts["recipe"], steps=steps))
        return parts

    def _feedback(self, feedback: dict[str, Any]) -> str:
        status = str(feedback.get("status", "idle"))
        template = self._texts["feedback"].get(status)
        if template is None:
            raise UsageError(f"unknown status of a plan {status!r}")
        call = feedback.get("call") or {}
        described = f"{call.get('skill', '?')} by the {call.get('arm', '?')} arm"
        reason = str(feedback.get("reason", ""))
        if self.help in ("none", "names"):
            reason = _WHERE.sub("", reason)  # where an object is would be help that was not given
        told = _fill(
            template, reason=reason, call=described,
            completed=feedback.get("completed", 0),
        )  # fmt: skip
        held = feedback.get("held") or {}
        names = self.tells_names
        if held:
            hands = [f"{name if names else 'something'} in the {arm} hand"
                     for arm, name in held.items()]  # fmt: skip
            told = f"{told}\n{_fill(self._texts['held'], held=', '.join(hands))}"
        return told.strip()


def _pose_fields(pose: Any) -> dict[str, str]:
    keys = ("x", "y", "z", "qw", "qx", "qy", "qz")
    return {key: f"{float(value) + 0.0:.3f}" for key, value in zip(keys, pose, strict=True)}


def _known(item: ObjectInfo) -> dict[str, str]:
    grasps = ", ".join(g.name for g in item.grasps)
    return {
        "name": item.name, "color": item.color, "kind": item.kind,
        "grasps": f", ways to hold it: {grasps}" if grasps else "",
    }  # fmt: skip


def _recipe(scene: Scene, state: WorldState, start: WorldState, turn: int) -> str:
    """The expert's next skills, one line a step; "" when it would do nothing from here."""
    try:
        steps = tasks.get(scene.task).expert(View(scene, state, start), turn)
    except BenchError:
        return ""
    return "\n".join(
        f"{i + 1}. {' and, at the same time, '.join(_spoken(call) for call in step)}"
        for i, step in enumerate(steps)
    )


def _spoken(call: SkillCall) -> str:
    words = [f"{call.arm} arm: {call.skill}"]
    if "object" in call.args:
        words.append(str(call.args["object"]))
    if "grasp" in call.args:
        words.append(f"by {call.args['grasp']}")
    return " ".join(words)
