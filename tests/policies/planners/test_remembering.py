"""The planner with a memory under test: what it takes in, and what comes back."""

from __future__ import annotations

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import CameraFrame, Observation, PlanRequest, Question
from policies import make_planner
from policies.planners.remembering import RememberingPlanner
from sim.world import SimWorld

TASK = "put_back_block"
HOBBIES = ("chess", "sailing", "pottery", "fencing", "baking")
QUESTION = Question("hobby", "What is Ana's hobby?", {"Ana": HOBBIES})


@pytest.fixture(scope="module")
def episode():
    """(scene, state) of a memory probe."""
    return SimWorld().reset(TASK, 0)


def asked(planner, state) -> tuple[str, str]:
    """What is answered, and by what."""
    answer = planner.ask(QUESTION, Observation(state))
    return answer.values["Ana"], answer.transcript["memory"]["Ana"]["by"]


def hears(planner, state, *lines) -> None:
    planner.observe(Observation(state, heard=lines))


def items_of(planner: RememberingPlanner):
    assert planner._memory is not None
    return planner._memory.store.items()  # type: ignore[attr-defined]


@pytest.mark.parametrize("hobby", HOBBIES)
def test_what_was_heard_is_answered_and_the_last_word_holds(episode, hobby):
    scene, state = episode
    planner = make_planner("remembering")
    planner.reset(scene, 0)
    hears(planner, state, ("Ana", "My hobby is singing."), ("Ben", "My hobby is climbing."))
    hears(planner, state, ("Ana", f"My hobby is {hobby} now, no longer what it was."))
    assert asked(planner, state) == (hobby, "memory")
    stamps = [item.stamp_ns for item in items_of(planner)]
    assert stamps == sorted(set(stamps)), "what came at one moment has an order all the same"


@pytest.mark.parametrize(("keep", "by"), [("true", "memory"), ("false", "guess")])
def test_it_keeps_what_was_from_one_episode_to_the_next_only_if_told_to(episode, keep, by):
    scene, state = episode
    planner = make_planner(f"remembering:keep={keep}")
    planner.reset(scene, 0)
    hears(planner, state, ("Ana", "My hobby is chess."))
    planner.reset(scene, 0)
    answer, how = asked(planner, state)
    assert how == by and (answer == "chess" or by == "guess")


def test_guesses_are_spread_evenly_and_once_made_they_stay(episode):
    scene, state = episode
    planner, found = make_planner("remembering:memory=none"), []
    for seed in range(200):
        planner.reset(scene, seed)
        answer, by = asked(planner, state)
        assert by == "guess" and asked(planner, state) == (answer, "said before")
        found.append(answer)
    counts = [found.count(hobby) for hobby in HOBBIES]
    assert min(counts) > 20 and max(counts) < 65, counts


def test_what_is_seen_is_kept_in_words_and_as_a_picture(episode):
    scene, state = episode
    planner = make_planner("remembering:cameras=head")
    assert planner.metadata.cameras == ("head",)
    planner.reset(scene, 0)
    frame = CameraFrame("head", state.seq, state.stamp_ns, 4, 4, "jpeg", b"\xff\xd8picture")
    planner.observe(Observation(state, (frame,)))
    (item,) = items_of(planner)
    mat = scene.params["target"].replace("_", " ")
    assert item.speaker == "" and item.text == f"The red block is on the {mat}."
    assert item.picture.data == frame.data and item.picture.caption == item.text


def test_options_of_the_memory_are_passed_on_and_mistakes_are_one_line(episode):
    scene, state = episode
    planner = make_planner("remembering:memory=window:items=2")
    planner.reset(scene, 0)
    hears(planner, state, ("Ana", "My hobby is chess."), *[("Ben", "Hm.")] * 2)
    assert asked(planner, state)[1] == "guess"
    for spec, text in (
        ("memory=elephant", "planner remembering: unknown memory 'elephant'"),
        ("memory=window:items=0", "items must be 1 or more"),
        ("memory=window:size=2", "unknown option of memory window"),
        ("remember=rag", "unknown option of planner remembering"),
    ):
        with pytest.raises(UsageError, match=text):
            make_planner(f"remembering:{spec}")


def test_it_does_what_the_expert_does_where_nothing_must_be_remembered():
    world = SimWorld()
    scene, state = world.reset("stack_blocks_three", 1)
    plans = []
    for name in ("expert", "remembering:memory=none"):
        planner = make_planner(name)
        planner.reset(scene, 0)
        plans.append(planner.plan(PlanRequest(scene.instruction, Observation(state), 0)))
    assert plans[0].steps == plans[1].steps and plans[0].steps
