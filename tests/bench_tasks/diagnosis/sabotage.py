"""Agents that fail in a known way: the expert planner and the skill policy, sabotaged.

What each does wrong is its label, given here, where nothing is known of the rules.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench_tasks import tasks
from bench_tasks.bags.recording import HashSink
from bench_tasks.diagnosis import Diagnosis, diagnose
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import UsageError
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ActionChunk, Answer, Plan, SkillCall, Verdict
from policies.floors import HoldPolicy
from policies.planners.chat import PlannerError
from policies.planners.expert import ExpertPlanner
from policies.skills import SkillPolicy

OTHER = dict(zip(ARMS, ARMS[::-1], strict=True))


class Planner(ExpertPlanner):
    """The expert; subclasses spoil its plans."""

    def reset(self, scene, seed):
        super().reset(scene, seed)
        self.scene = scene

    def plan(self, request):
        self.view_state = request.observation.state
        steps = [list(step) for step in super().plan(request).steps]
        return self.spoil(steps, request.turn)

    def spoil(self, steps, turn):
        return self.calls(steps, lambda call: self.change(call))

    def calls(self, steps, change):
        return Plan(tuple(tuple(change(copy.deepcopy(c)) for c in step) for step in steps))

    def change(self, call):
        return call


class Rename(Planner):
    """Takes things for one another, or for things that are not there."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def change(self, call):
        if "object" in call.args:
            args = {k: v for k, v in call.args.items() if k != "grasp"}
            args["object"] = self.names.get(args["object"], args["object"])
            return replace(call, args=args)
        return call


class SwapArms(Planner):
    """The wrong arm for everything."""

    def change(self, call):
        args = {k: v for k, v in call.args.items() if k != "grasp"}
        return SkillCall(call.skill, OTHER[call.arm], args)


class WrongAnswer(Planner):
    """Answers one item wrongly."""

    def ask(self, question, observation):
        right = super().ask(question, observation)
        item = sorted(right.values)[-1]
        choices = [c for c in question.choices[item] if c != right.values[item]]
        return Answer({**right.values, item: choices[len(item) % len(choices)]})


class NoAnswer(Planner):
    """Cannot be understood."""

    def ask(self, question, observation):
        return Answer({}, raw="It is over there.", error="there is no JSON in the answer")


class Reverse(Planner):
    """The steps of each plan backwards."""

    def spoil(self, steps, turn):
        return Plan(tuple(tuple(step) for step in steps[::-1]))


class Skip(Planner):
    """Leaves out calls of one skill."""

    def __init__(self, *skills):
        super().__init__()
        self.skills = skills

    def spoil(self, steps, turn):
        kept = [tuple(c for c in step if c.skill not in self.skills) for step in steps]
        return Plan(tuple(step for step in kept if step))


class TopFirst(Planner):
    """Builds a tower from the top: right things to their right places, where nothing is yet."""

    def spoil(self, steps, turn):
        task, scene = tasks.get(self.scene.task), self.scene
        order, top = list(task.order), 0.0
        poses = {}
        for name in order:
            half = scene.object(name).half_size_m[2]
            poses[name] = [0.45, 0.0, top + half]
            top += 2 * half
        if turn >= len(order):
            return Plan(())
        name = order[::-1][turn]
        arm = "left" if self.view_state.object_pose[scene.index(name)][1] >= 0 else "right"
        return Plan((
            (SkillCall("grasp", arm, {"object": name}),),
            (SkillCall("place", arm, {"object": name, "pose": poses[name]}),),
            (SkillCall("home", arm),),
        ))  # fmt: skip


class Shift(Planner):
    """All targets (of these skills) are off by a vector (m) and a turn about the vertical (rad)."""

    def __init__(self, offset, turn=0.0, skills=("place", "move_to"), idle=True):
        super().__init__()
        self.offset, self.turn, self.skills = np.array(offset, dtype=float), turn, skills

    def change(self, call):
        k = ARMS.index(call.arm)
        if call.skill not in self.skills or "pose" not in call.args:
            return call
        pose = np.array(call.args["pose"], dtype=float)
        if call.skill == "move_to" and np.allclose(pose, self.view_state.ee_pose[k], atol=1e-6):
            return call  # the hand that rests
        side = 1.0 if call.arm == "left" else -1.0
        pose[:3] += self.offset * np.array([1.0, side, 1.0])
        if self.turn and pose.size == 7:
            w, x, y, z = pose[3:]
            c, s = np.cos(self.turn / 2), np.sin(self.turn / 2)
            pose[3:] = [c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w]
        return replace(call, args={**call.args, "pose": pose.tolist()})


class Clash(Planner):
    """Sends both hands to the same place."""

    def spoil(self, steps, turn):
        pose = [0.5, 0.0, 0.25, 0.0, 1.0, 0.0, 0.0]
        return Plan((tuple(SkillCall("move_to", arm, {"pose": pose}) for arm in ARMS),))


class Park(Planner):
    """Before anything is put down the other hand is parked where that happens."""

    def spoil(self, steps, turn):
        spoilt = []
        for step in steps:
            place = next((c for c in step if c.skill == "place"), None)
            if place is not None:
                x, y = place.args["pose"][:2]
                pose = [x, y, 0.20, 0.0, 1.0, 0.0, 0.0]
                spoilt.append((SkillCall("move_to", OTHER[place.arm], {"pose": pose}),))
            spoilt.append(tuple(c for c in step if c.skill != "home") or tuple(step))
        return Plan(tuple(spoilt))


class OneMoves(Planner):
    """Of two arms that hold one thing, only the left one moves."""

    def spoil(self, steps, turn):
        kept = [
            tuple(c for c in step if not (c.skill == "move_by" and c.arm == "right"))
            for step in steps
        ]
        return Plan(tuple(step for step in kept if step))


class Uneven(Planner):
    """Of two arms that hold one thing, the right one moves half as far."""

    def change(self, call):
        if call.skill == "move_by" and call.arm == "right":
            return replace(call, args={"offset": [0.4 * v for v in call.args["offset"]]})
        return call


class Scale(Planner):
    """Movements by the wrong length."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def change(self, call):
        if call.skill == "move_by":
            return replace(call, args={"offset": [self.factor * v for v in call.args["offset"]]})
        return call

    def spoil(self, steps, turn):
        # It moves once, and then holds itself to be finished.
        if turn > 1:
            return Plan(())
        return super().spoil(steps, turn)


class Malformed(Planner):
    """Plans that cannot be read, from some turn on."""

    def __init__(self, how, turn=0):
        super().__init__()
        self.how, self.turn = how, turn

    def spoil(self, steps, turn):
        if turn < self.turn:
            return self.calls(steps, lambda call: call)
        if self.how == "text":
            return Plan((), raw="First I would", error="there is no JSON in the answer")
        if self.how == "raise":
            raise UsageError("step 1: a call needs arm, a text")
        if self.how == "skill":
            return Plan(((SkillCall("push", "left", {}),),))
        if self.how == "arms":
            return Plan(((SkillCall("home", "left"), SkillCall("home", "left")),))
        return Plan(((SkillCall("grasp", "left", {"object": 5}),),))


class Broken(Planner):
    """Fails, from some turn on."""

    def __init__(self, how, turn=0):
        super().__init__()
        self.how, self.turn = how, turn

    def spoil(self, steps, turn):
        if turn < self.turn:
            return self.calls(steps, lambda call: call)
        if self.how == "server":
            raise PlannerError("the server answered 503 five times")
        if self.how == "budget":
            raise PlannerError("budget spent: 3 of 3 calls")
        return {}["plan"]


class Stop(Planner):
    """Holds itself to be finished at some turn."""

    def __init__(self, turn=0):
        super().__init__()
        self.turn = turn

    def spoil(self, steps, turn):
        return Plan(()) if turn >= self.turn else self.calls(steps, lambda call: call)


class Dawdle(Planner):
    """Nothing wrong, but so little per plan that the plans do not suffice."""

    def spoil(self, steps, turn):
        step = tuple(steps[0])
        if turn % 4:
            # Hands that are idle are told to do what they do already.
            busy = [a for a in ARMS if self.view_state.command[8 * ARMS.index(a) + 7] < 0.002]
            skill = {True: "close", False: "open"}
            if tasks.get(self.scene.task).tier == 3:
                pose = self.view_state.ee_pose
                return Plan((tuple(
                    SkillCall("move_to", a, {
                        "pose": pose[k].tolist(), "opening_m": 0.0 if a in busy else 0.08,
                    }) for k, a in enumerate(ARMS)
                ),))  # fmt: skip
            return Plan((tuple(SkillCall(skill[a in busy], a) for a in ARMS),))
        return Plan((step,))


class OtherCover(Planner):
    """Answers rightly, and lifts another cover."""

    def change(self, call):
        if "object" in call.args:
            covers = [o.name for o in self.scene.objects if o.kind == "cover"]
            at = covers.index(call.args["object"])
            name = covers[(at + 1) % len(covers)]
            y = self.view_state.object_pose[self.scene.index(name)][1]
            return replace(call, arm="left" if y >= 0 else "right",
                           args={**call.args, "object": name})  # fmt: skip
        return call


# ---- policies -----------------------------------------------------------------------------------


class Policy(SkillPolicy):
    """The skill policy; subclasses spoil its actions."""

    def infer(self, observation):
        chunk = super().infer(observation)
        if chunk.needs_plan:
            return chunk
        return ActionChunk(chunk.seq, self.spoil(chunk.values.copy(), observation.state))

    def spoil(self, values, state):
        return values


class LetGo(Policy):
    """Opens a hand whenever it has carried something 5 cm up."""

    def reset(self, scene, seed):
        super().reset(scene, seed)
        self.opened = set()

    def spoil(self, values, state):
        view = View(self._scene, state)
        for k, arm in enumerate(ARMS):
            held = [o for o in self._scene.objects if view.grasped(o.name, arm)]
            if held:
                if view.position(held[0].name)[2] - held[0].half_size_m[2] > 0.05:
                    self.opened.add(arm)
            elif values[-1, 8 * k + 7] > 0.002 and arm in self.opened:
                self.opened.discard(arm)
            if arm in self.opened:
                values[:, 8 * k + 7] = 0.08
        return values


class Freeze(Policy):
    """Stands still from some time on."""

    def __init__(self, after_s):
        super().__init__()
        self.after_s = after_s

    def spoil(self, values, state):
        if state.stamp_ns >= self.after_s * 1e9:
            return np.tile(state.command, (len(values), 1))
        return values


class Offset(Policy):
    """Joints of both arms are off by some angle (rad)."""

    def __init__(self, joint, angle):
        super().__init__()
        self.joint, self.angle = joint, angle

    def infer(self, observation):
        # What it was told is taken back from what it is told that it told.
        state = observation.state
        told = state.command.copy()
        if getattr(self, "spoilt", False):
            told[[self.joint, 8 + self.joint]] -= self.angle
        chunk = super().infer(replace(observation, state=replace(state, command=told)))
        return chunk

    def reset(self, scene, seed):
        super().reset(scene, seed)
        self.spoilt = False

    def spoil(self, values, state):
        self.spoilt = True
        values[:, [self.joint, 8 + self.joint]] += self.angle
        return values


class Faulty(Policy):
    """Gives no numbers, or crashes, from some time on."""

    def __init__(self, how, after_s=0.0):
        super().__init__()
        self.how, self.after_s = how, after_s

    def spoil(self, values, state):
        if state.stamp_ns >= self.after_s * 1e9:
            if self.how == "crash":
                raise RuntimeError("the controller went away")
            values[3, 5] = np.nan
        return values


# ---- running ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A sabotaged episode and the kind of cause that it is to be given."""

    label: str
    name: str
    task: str
    seed: int
    planner: Any = ExpertPlanner
    policy: Any = SkillPolicy
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return f"{self.label.replace(' ', '_')}-{self.name}-{self.task}-{self.seed}"

    def run(self, world) -> tuple[Verdict, Diagnosis | None]:
        """Run it and diagnose it."""
        sink = HashSink()
        task = tasks.get(self.task)
        verdict, _ = run_episode(
            task, self.seed, world, self.planner(), self.policy(), sink, Options(**self.options)
        )
        return verdict, diagnose(task, sink.scene_seen, sink.states, sink.events, verdict)


__all__ = ["Case", "HoldPolicy"]
