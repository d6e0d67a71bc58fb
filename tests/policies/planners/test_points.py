"""Pictures to points to the world to skills, end to end, in every dialect; and every refusal."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from model_server import ModelServer
from pointing_model import PointingModel, top

from bench_tasks import tasks
from bench_tasks.bags import bag
from bench_tasks.bags.recording import BagSink
from bench_tasks.depth import depth_m, depth_png
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import UsageError
from bench_tasks.targets import object_at
from bench_tasks.view import View
from bench_tasks.vocabulary import Observation, Plan, SkillCall
from policies import make_planner
from policies.planners.dialects import DIALECTS, Mark
from policies.planners.jsontext import AnswerError
from policies.planners.points import Pointer
from policies.planners.spoken import read_spoken
from policies.prompts import Prompts

TASK, MIDDLE = "stack_blocks_three", (0.45, 0.0, 0.0)
ORDER = ("red_block", "green_block", "blue_block")


def to_stack(view: View) -> list[tuple[str, object]]:
    """What is left of the tower, from the bottom up."""
    left: list[tuple[str, object]] = []
    if np.linalg.norm(view.position(ORDER[0])[:2] - MIDDLE[:2]) > 0.03:
        left.append((ORDER[0], MIDDLE))
    for lower, upper in zip(ORDER, ORDER[1:], strict=False):
        gap = view.position(upper) - view.position(lower)
        if np.linalg.norm(gap[:2]) > 0.02 or gap[2] < 0.03:
            left.append((upper, lower))
    return left


def episode(world, skills, dialect, path, off_px=0.0, options=""):
    """One recorded episode: (verdict, events, the model)."""
    model = PointingModel(world, dialect, to_stack, off_px)
    sink = BagSink(path)
    with ModelServer(model) as server:
        planner = make_planner(
            f"openai:model=m,base_url={server.url},dialect={dialect},retries=0{options}"
        )
        assert planner.metadata.depth and dialect in planner.metadata.name
        verdict, _ = run_episode(tasks.get(TASK), 0, world, planner, skills, sink, Options())
    sink.writer.close()
    return verdict, bag.read_bag(path).events, model


@pytest.fixture(scope="module")
def world():
    """The simulated cell, in pictures large enough to point in."""
    from sim.world import SimWorld

    return SimWorld(width=320, height=240)


IN_SHORT = ("qwen3-vl", "molmo2", "rynnbrain")
"""Dialects whose whole episode is run by default: one of each form of plan."""


@pytest.mark.parametrize(
    "dialect",
    [pytest.param(d, marks=() if d in IN_SHORT else pytest.mark.slow) for d in DIALECTS],
)
def test_a_model_that_points_right_builds_the_tower(dialect, world, skills, tmp_path):
    verdict, events, model = episode(world, skills, dialect, tmp_path / "bag")
    assert verdict.success, verdict.cause
    plans = [e.data for e in events if e.kind == "plan"]
    assert len(plans) == 3 and not any(p["refused"] for p in plans)
    assert all("point" in step[0]["args"] for p in plans for step in p["steps"][:2])
    results = [e.data for e in events if e.kind == "plan_result"]
    assert [r["pointed"][0]["object"] for r in results] == ["red_block", "green_block"]
    # The numbers of the pictures go on from call to call.
    named = ["frame 1 (head), frame 2 (third)", "frame 3 (head), frame 4 (third)"]
    assert all(name in said for name, said in zip(named, model.prompts, strict=False))


@pytest.mark.parametrize("dialect", ["qwen3-vl", "rynnbrain"])
def test_a_model_that_points_a_hundred_pixels_beside_it_is_told_so(
    dialect, world, skills, tmp_path
):
    verdict, events, model = episode(world, skills, dialect, tmp_path / "bag", off_px=100.0)
    why = "no object that can be grasped is within 3 cm of the point"
    assert not verdict.success and verdict.cause.startswith(f"malformed plan: {why}")
    assert why in model.prompts[1] and "Your last answer was refused" in model.prompts[1]
    assert verdict.sim_s == 0.0, "nothing was carried out"
    names = {o.name for o in world.scene.objects}
    assert not any(name in said for said in model.prompts for name in names)


def test_an_answer_can_be_derived_again_from_the_bag_alone(world, skills, tmp_path):
    _, events, _ = episode(world, skills, "rynnbrain", tmp_path / "bag", options=",history=single")
    seen = bag.measured_frames(tmp_path / "bag")
    plans = [e for e in events if e.kind == "plan"]
    for event in plans:
        told = event.data["transcript"]
        shown = [p for p in told["messages"][-1]["parts"] if "image" in p]
        frames = tuple(seen[p["camera"], p["seq"]] for p in shown)
        for part, frame in zip(shown, frames, strict=True):
            assert hashlib.sha256(frame.data).hexdigest() == part["image"]
            assert frame.depth and hashlib.sha256(frame.depth.png).hexdigest() == part["depth"]
        pointer = Pointer(told["dialect"], frames, 1)
        steps = read_spoken(event.data["raw"], pointer, ())
        assert [[vars(c) for c in step] for step in steps] == event.data["steps"]
        assert pointer.found == told["points"] and len(pointer.found) == 2
    counts = bag.read_bag(tmp_path / "bag").counts
    assert counts["/head/depth"] == counts["/third/depth"] == len(plans)


def test_without_a_dialect_no_depth_is_taken_nor_recorded(world, skills, tmp_path):
    sink = BagSink(tmp_path / "bag")
    with ModelServer('{"executable_plan": []}') as server:
        planner = make_planner(f"openai:model=m,base_url={server.url}")
        run_episode(tasks.get(TASK), 0, world, planner, skills, sink, Options())
        assert "frame" not in str(server.requests[0]["messages"][-1])
    sink.writer.close()
    assert not planner.metadata.depth
    counts = bag.read_bag(tmp_path / "bag").counts
    assert counts["/head/image_raw/compressed"] and not counts["/head/depth"]


@pytest.fixture(scope="module")
def frames(world):
    """Two pictures with depth of the first state of seed 0."""
    world.reset(TASK, 0)
    return world.capture(("head", "third"), depth=True)


@pytest.mark.parametrize("camera", ["head", "third"])
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "rynnbrain"])
def test_a_point_is_lifted_to_where_it_is(dialect, camera, world, frames):
    model = PointingModel(world, dialect, to_stack, camera=camera)
    model.frame = 7 + (camera == "third")
    pointer = Pointer(dialect, frames, 7)
    view = View(world.scene, world.state)
    for name in ORDER:
        at = np.array(pointer.args(model.show(top(view, name)))["point"])
        # A pixel is 4 mm here; molmo1 writes tenths of a per cent, a third of a pixel.
        assert np.linalg.norm(at - top(view, name)) < 0.006
        assert object_at(view, at) == name


def ask(frames, dialect="qwen3-vl", **args):
    return Pointer(dialect, frames, 3).args(args)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"point_2d": [500, 500]}, "say in which picture the point lies: frame 3 or 4"),
        ({"point_2d": [500, 500], "frame": 1}, "frame 1 is no picture of now: those are 3 or 4"),
        ({"point_2d": [500, 500], "frame": True}, "frame True is no picture of now"),
        ({"point_2d": [500, 1001], "frame": 3}, "(500, 1001) is outside 0 to 1000 x 1000"),
        ({"point_2d": [500], "frame": 3}, "point_2d must have 2 finite numbers, got [500]"),
        ({"point_2d": "500, 500", "frame": 3}, "point_2d must have 2 finite numbers"),
        ({"bbox_2d": [1, 2, 3, 4], "frame": 3}, "a target is one point, point_2d"),
        ({"dialect": "molmo1", "point": "<point x='150' y='5'>a</point>", "frame": 3},
         "lies outside the picture"),
        ({"dialect": "molmo1", "point": [1, 2], "frame": 3}, "must be a text in the form of"),
        ({"dialect": "molmo2", "point": '<points coords="1 1 9 9">a</points>'}, "frame 1 is no"),
        ({"dialect": "robopoint", "point": "[(0.1, 0.2), (0.3, 0.4)]", "frame": 3},
         "a target is one point, got 2"),
        ({"dialect": "robopoint", "point": "[(0.1, 0.2, 0.3, 0.4)]", "frame": 3}, "got a box"),
        ({"dialect": "qwen2.5-vl", "point_2d": [5, 5]}, "say in which picture"),
    ],
)  # fmt: skip
def test_what_is_no_clear_point_is_refused(frames, args, reason):
    with pytest.raises(AnswerError) as caught:
        ask(frames, **args)
    assert reason in str(caught.value)


def test_a_point_without_a_picture_or_depth_is_refused(frames):
    at = {"point_2d": [500, 500], "frame": 3}
    with pytest.raises(AnswerError, match="no picture to point in"):
        ask((), **at)
    with pytest.raises(AnswerError, match="no depth with the picture of camera head"):
        ask((replace(frames[0], depth=None),), **at)
    nothing = depth_png(np.full((240, 320), np.inf))
    with pytest.raises(AnswerError, match=r"camera head: there is no depth at pixel \(160, 120\)"):
        ask((replace(frames[0], depth=replace(frames[0].depth, png=nothing)),), **at)
    assert len(ask(frames[:1], point_2d=[500, 500])["point"]) == 3, "one picture needs no number"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("I would grasp it.", "each sentence must begin with Pick up, Place or Done"),
        ("Open the lid. Done.", "each sentence must begin with"),
        ("Pick up the cup.", "step 1: none of the tags"),
        ("Pick up <object> <frame 3>: (1, 1), (2, 2) </object>.", "<affordance> must have one"),
        ("Place it into <area> <frame 3>: (500, 500) </area>.", "no hand holds something"),
        ("Place it into <area> <frame 3>: (500, 500), (510, 500) </area> with the left arm.",
         "<area> must have one point, got 2"),
        ("Pick up <affordance> <frame 3>: (500, 500) </affordance> with the left arm or the right "
         "arm.", "a sentence is for one arm"),
        ("Pick up <affordance> (500, 500) </affordance>.", "say in which picture"),
        ("Pick up <affordance> <frame 3>: (500, 500) </affordance> with the left hand. Pick up "
         "<affordance> <frame 3>: (500, 500) </affordance> with the left hand.",
         "step 2: the left hand holds something already"),
    ],
)  # fmt: skip
def test_spoken_plans_that_leave_something_open_are_refused(frames, said, reason):
    with pytest.raises(AnswerError) as caught:
        read_spoken(said, Pointer("rynnbrain", frames, 3), ())
    assert reason in str(caught.value)


def test_spoken_plans_in_variants(frames):
    def read(text, held=()):
        steps = read_spoken(text, Pointer("rynnbrain", frames, 3), held)
        return [(call.skill, call.arm) for (call,) in steps]

    spot = "(480, 470)"
    assert read("Done.") == read("<think>Place?</think>\nDone") == []
    assert read(f"pick up <affordance><frame 3>; {spot}</affordance> with the right arm") == [
        ("grasp", "right")
    ]
    assert read(f"Place it into <area> <frame3>: {spot} </area>. Done.", ("right",)) == [
        ("place", "right"), ("home", "right"),
    ]  # fmt: skip


def test_a_point_between_two_objects_is_no_object(world):
    scene, state = world.reset(TASK, 0)
    poses = state.object_pose.copy()
    poses[:2, :3] = [[0.4, 0.0, 0.03], [0.45, 0.0, 0.03]]
    poses[:2, 3:] = [1.0, 0.0, 0.0, 0.0]
    view = View(scene, replace(state, object_pose=poses))
    assert object_at(view, np.array([0.41, 0.0, 0.05])) == scene.objects[0].name
    with pytest.raises(UsageError, match=r"\(0.425, 0.000, 0.050\) is as near to one object as"):
        object_at(view, np.array([0.425, 0.0, 0.05]))


def test_the_policy_takes_points_only_when_it_has_seen_the_state(world, skills):
    scene, state = world.reset(TASK, 0)
    at = top(View(scene, state), "red_block").tolist()
    plan = Plan(((SkillCall("grasp", "left", {"point": at}),),))
    skills.reset(scene, 0)
    with pytest.raises(UsageError, match="before the first state"):
        skills.accept(plan)
    skills.infer(Observation(state))
    skills.accept(plan)
    with pytest.raises(UsageError, match="unknown argument of grasp 'object': choose from"):
        SkillCall("grasp", "left", {"point": at, "object": "red_block"}).checked()
    with pytest.raises(UsageError, match="place point must have 3 numbers, got 2"):
        SkillCall("place", "left", {"point": at[:2]}).checked()
    with pytest.raises(UsageError, match="unknown argument of home 'point'"):
        SkillCall("home", "left", {"point": at}).checked()


def test_depth_survives_its_picture_to_the_millimetre():
    depth = np.array([[0.0005, 0.5, 1.2345], [np.inf, -1.0, 10.1]])
    back = depth_m(depth_png(depth))
    assert np.allclose(back[0, 1:], [0.5, 1.2345], atol=0.0005 + 1e-9)
    assert np.isnan(back[1]).all()
    for data in (b"", b"nonsense"):
        with pytest.raises(ValueError, match="16-bit grey PNG"):
            depth_m(data)


def test_options_that_cannot_be_together():
    for spec, message in (
        ("openai:dialect=latin", "unknown dialect 'latin': choose from gemini-er,"),
        ("openai:dialect=molmo2,cameras=none", "dialect molmo2 needs cameras"),
        ("smollm2:dialect=molmo2", "dialect molmo2 needs cameras"),
        ("blind:model=m,dialect=molmo2", "blind has no pictures to point in"),
    ):
        with pytest.raises(UsageError, match=message):
            make_planner(spec)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_prompt_shows_the_form_that_is_read(dialect, frames):
    """The example in the prompt is read by the very parser that reads the answer."""
    skills = tasks.get(TASK).skills
    text = Prompts("v1", "none", dialect).plan_system(False, skills)
    assert "$" not in text
    if dialect == "rynnbrain":
        lines = [line for line in text.splitlines() if line.startswith(("Pick", "Place"))]
        assert len(read_spoken("\n".join(lines), Pointer(dialect, frames, 1), ())) == 3
        return
    from policies.planners.answers import read_plan

    example = text[text.index('{\n  "visual') :]
    steps, found = read_plan(example, False, str, Pointer(dialect, frames, 1).args)
    assert not found.repairs and [c.skill for step in steps for c in step] == [
        "grasp", "place", "home",
    ]  # fmt: skip
    assert "point_2d" in text or '"point": ' in text
    actions = Prompts("v1", "none", dialect).plan_system(True, skills)
    assert actions == Prompts("v1").plan_system(True, skills), "numbers need no points"


def test_marks_that_are_no_points_are_refused(frames):
    with pytest.raises(AnswerError, match="got a box"):
        Pointer("rynnbrain", frames, 1).lift(Mark("box", ((0.0, 0.0), (1.0, 1.0)), frame=1))
