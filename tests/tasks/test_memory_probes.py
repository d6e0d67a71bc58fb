"""Embodied memory: nothing can be guessed, what was seen is enough, the arms do what is said."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from memory_solver import AFTER, SOLVERS, Line, amid_rumours

from bench_tasks import tasks
from bench_tasks.bags.recording import HashSink
from bench_tasks.diagnosis import diagnose
from bench_tasks.episode import run_episode
from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query
from bench_tasks.probes.talk import counting, meanings
from bench_tasks.tasks.base import Ask, MoveObjects, Show, Task, Tell
from bench_tasks.tasks.families.memory import MATS, MemoryTask
from bench_tasks.tasks.families.trying import TryTask
from bench_tasks.tasks.reopen_drawer import DRAWERS
from bench_tasks.view import View
from bench_tasks.vocabulary import Event, Scene, WorldState
from policies import make_planner, make_policy
from policies.memory import make_memory
from policies.memory.reader import RuleReader
from sim.world import SimWorld

PROBES, QUICK = tuple(SOLVERS), ("put_back_block", "press_button")
SEEDS = range(-(-500 // len(PROBES)))
"""500 questions in all."""
READER = RuleReader(lambda picture: ())


@dataclass(frozen=True)
class Drawn:
    """What one seed drew, and the prologue as it is seen and heard, without any physics."""

    scene: Scene
    lines: tuple[Line, ...]
    now: tuple[Line, ...]
    """What is in view, or told, when the arms may move."""
    ask: Ask
    after: Drawn | None = None
    """The same once the arms are done, as `acted` has it; None where nothing is asked."""

    @property
    def choices(self) -> tuple[str, ...]:
        (choices,) = self.ask.question.choices.values()
        return choices

    @property
    def gold(self) -> str:
        (gold,) = self.ask.gold.values()
        return gold

    def replied(self, lines) -> str:
        """What the reader says that has these lines alone."""
        items = [Item(f"{k}", k, "", who, words) for k, (who, words) in enumerate(lines)]
        query = Query("q", 10**9, self.ask.wording or self.ask.question.text, self.choices)
        return READER.answer(query, items).text


def draw(task: Task, scene: Scene, state: WorldState, seed: int) -> Drawn:
    """Draw a layout and play the prologue, objects being where they are put."""
    rng = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
    layout = task.layout(rng, {item.name: item for item in scene.objects})
    scene = replace(scene, seed=seed, params=layout.params, instruction=layout.instruction)
    poses = dict(layout.poses)

    def placed() -> WorldState:
        return replace(state, object_pose=np.array([poses[o.name] for o in scene.objects]))

    lines: list[Line] = []
    last = None
    history = task.history(scene)

    def play(steps) -> None:
        nonlocal last
        for step in steps:
            if isinstance(step, MoveObjects):
                poses.update({name: np.array(pose) for name, pose in step.poses.items()})
            elif isinstance(step, Tell):
                lines.extend(step.lines)
                if history is not None:
                    said = [list(line) for line in step.lines]
                    history.on_event(Event("said", 0, 0, {"lines": said}))
            elif isinstance(step, Show):
                lines.extend(("", words) for words in task.sights(View(scene, placed(), last)))
                last = placed()

    play(task.prologue(scene))
    turn = 0
    while task.recall(View(scene, placed())) is None:
        assert isinstance(task, TryTask)
        place = list(task.places.values())[(layout.params["first"] + turn) % len(task.places)]
        poses[task.thing][:2] = place
        play(task.react(View(scene, placed()), turn))
        turn += 1
    view = View(scene, placed(), placed())
    now = [("", f"{words}.") for words in scene.instruction.rstrip(".").split(". ")]
    now += [("", words) for words in task.sights(View(scene, placed(), last))]
    ask = task.recall(view)
    assert ask is not None
    one = Drawn(scene, tuple(lines), tuple(now), ask)
    began = placed()
    poses.update(acted(task, scene, seed))
    steps = task.afterwards(View(scene, placed(), began, history))
    if not steps:
        return one
    play(steps)
    now = [*now[: scene.instruction.rstrip(".").count(". ") + 1],
           *(("", words) for words in task.sights(View(scene, placed(), last)))]  # fmt: skip
    after = Drawn(scene, tuple(lines), tuple(now), steps[-1])
    return replace(one, after=after)


def acted(task: Task, scene: Scene, seed: int) -> dict[str, np.ndarray]:
    """Where things are once the arms are done, rightly or not, without any arms."""
    wrong, params = np.random.default_rng(seed), scene.params

    def at(name: str, xy) -> np.ndarray:
        return np.array([*xy, scene.object(name).half_size_m[2], 1, 0, 0, 0])

    if task.name.startswith("put_back_block"):
        return {"red_block": at("red_block", list(MATS.values())[wrong.integers(4)])}
    if task.name.startswith("reopen_drawer"):
        drawer = list(DRAWERS)[wrong.integers(3)]
        return {drawer: at(drawer, (params["closed_x_m"] - 0.07, DRAWERS[drawer]))}
    if task.name.startswith("moved_while_away") and params["moved"] != "nothing":
        moved = params["moved"]
        return {moved: at(moved, MATS[params["at"][moved]])}
    return {}


@pytest.fixture(scope="module")
def world() -> SimWorld:
    return SimWorld()


@pytest.fixture(scope="module", params=PROBES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def drawn(name, world) -> list[Drawn]:
    scene, state = touching_the_table(*world.reset(name, 0))
    return [draw(tasks.get(name), scene, state, seed) for seed in SEEDS]


def touching_the_table(scene: Scene, state: WorldState) -> tuple[Scene, WorldState]:
    """All things do when they are put somewhere, as cover_blocks wants to see."""
    table = scene.entity("table")
    pairs = [[scene.entity(o.name), table] for o in scene.objects]
    return scene, replace(
        state, contact_pair=np.array(pairs, np.uint16), contact_force=np.ones(len(pairs))
    )


@pytest.mark.parametrize(("name", "why"), [
    ("put_back_block_rumours0", "rumours must be from 1 to 500, got '0'"),
    ("put_back_block_rumours501", "rumours must be from 1 to 500, got '501'"),
    ("put_back_block_rumours", "rumours must be from 1 to 500, got ''"),
    ("lift_pot_rumours4", "unknown task 'lift_pot_rumours4'"),
])  # fmt: skip
def test_how_many_rumours_is_said_by_the_name(name, why):
    with pytest.raises(UsageError, match=why):
        tasks.get(name)
    assert tasks.get("put_back_block_rumours7").rumours == 7
    assert tasks.get("put_back_block").rumours == 0


def test_every_probe_is_tested():
    probes = [n for n in tasks.names(None, apart=True) if isinstance(tasks.get(n), MemoryTask)]
    assert set(probes) | {"cover_blocks", "cover_blocks_told"} == {
        name for probe in SOLVERS for name in (probe, f"{probe}_told")
    }


def test_golds_follow_from_what_was_seen(name, drawn):
    for one in drawn:
        assert SOLVERS[name](list(one.lines), one.scene.instruction) == one.gold, one.scene.seed


def test_golds_of_what_is_asked_afterwards_follow_from_what_was_done(name, drawn):
    for one in drawn:
        asked = one.after.ask.question
        assert AFTER[name](list(one.after.lines), asked.text) == one.after.gold, one.scene.seed
        assert one.after.replied([*one.after.now]) not in one.after.choices, "it needs a memory"
        assert set(one.after.ask.evidence) == set(tasks.get(name).evidence(one.scene, asked.name))
    places = Counter(one.after.choices.index(one.after.gold) for one in drawn)
    chance = drawn[0].after.ask.chance
    assert chance == 1 / len(drawn[0].after.choices)
    most = chance + 3.5 * math.sqrt(chance * (1 - chance) / len(drawn))
    assert max(places.values()) / len(drawn) < most, places
    same = sum(one.gold == one.after.gold for one in drawn) / len(drawn)
    assert name in ("reopen_drawer", "put_back_block") or same < most, "it is another question"


def test_no_answer_is_likelier_than_others(drawn):
    counts, chance = Counter(one.gold for one in drawn), drawn[0].ask.chance
    assert set(counts) == set(drawn[0].choices) and chance == 1 / len(counts)
    most = chance + 3.5 * math.sqrt(chance * (1 - chance) / len(drawn))
    assert max(counts.values()) / len(drawn) < most, counts


def test_the_evidence_is_enough_and_what_is_left_is_not(name, drawn):
    for one in drawn:
        told = [line for line in one.lines if any(e in line[1] for e in one.ask.evidence)]
        assert one.replied([*told, *one.now]) == one.gold, one.scene.seed
        assert one.replied(one.lines) == one.gold, one.scene.seed
        assert one.replied(one.now) not in one.choices, "it needs a memory"


KINDS = ("window", "notes", "structured", "oracle", "full")
"""Those that need no torch and remember."""


def remembered(one: Drawn, kind: str) -> str:
    """What a memory answers that was shown and told all of it, in words."""
    memory = make_memory(kind)
    lines = [*one.lines, *one.now]
    for k, (who, words) in enumerate(lines):
        memory.observe(Item(f"{k}", k, "one", who, words))
    text = one.ask.wording or one.ask.question.text
    if kind == "oracle":
        _, counts = counting(text)
        memory.tell([str(k) for k, (who, words) in enumerate(lines)
                     if (counts is None or who in counts)
                     and any(e in words for e in one.ask.evidence)])  # fmt: skip
    reply = memory.answer(Query("q", 10**9, text, one.choices))
    memory.close()
    return reply.text


@pytest.mark.parametrize("kind", KINDS)
def test_every_memory_answers_and_only_a_short_one_forgets(drawn, kind):
    for few in (drawn[:3], [one.after for one in drawn[:3]]):
        right = sum(remembered(one, kind) == one.gold for one in few)
        if kind == "window" and "chatter" in drawn[0].scene.params:
            assert right < 3
        else:
            assert right == 3


@pytest.fixture(scope="module")
def amid(name, world) -> list[Drawn]:
    """The first draws of the probe with rumours."""
    if name == "cover_blocks":
        pytest.skip("nobody talks there")
    scene, state = touching_the_table(*world.reset(name, 0))
    return [draw(tasks.get(f"{name}_rumours40"), scene, state, seed) for seed in range(16)]


def test_rumours_count_for_nothing_and_mislead_who_goes_by_them(name, amid):
    for one in amid:
        assert len(one.scene.params["chatter"]) >= 80
        assert amid_rumours(name)(list(one.lines), one.scene.instruction) == one.gold
        after = one.after.ask.question.text.split("?")[0] + "?"
        assert AFTER[name](list(one.after.lines), after) == one.after.gold
        assert "counts" in one.scene.instruction
        for each in (one, one.after):
            _, counts = counting(each.ask.question.text)
            assert each.replied(each.lines) == each.gold, "who is told whose word counts"
            assert each.replied([w for w in each.lines if w[0] not in counts]) not in each.choices
            assert each.replied(each.now) not in each.choices, "it needs a memory"
    naive = [READER.answer(Query("q", 10**9, counting(one.ask.question.text)[0], one.choices), [
        Item(f"{k}", k, "", *line) for k, line in enumerate(one.lines)
    ]).text for one in amid]  # fmt: skip
    wrong = sum(text != one.gold for text, one in zip(naive, amid, strict=True))
    assert wrong > len(amid) / 3, "whose word counts makes a difference"
    golds = Counter(one.gold for one in amid)
    chance = amid[0].ask.chance
    most = chance + 3.5 * math.sqrt(chance * (1 - chance) / len(amid))
    assert max(golds.values()) / len(amid) < most, golds
    for kind, right in (("oracle", 3), ("structured", 3), ("none", 0)):
        for few in (amid[:3], [one.after for one in amid[:3]]):
            assert sum(remembered(one, kind) == one.gold for one in few) == right, kind


@pytest.mark.parametrize("rumours", ["", "_rumours40"])
def test_the_control_needs_no_memory(name, world, rumours):
    if rumours and name == "cover_blocks":
        pytest.skip("nobody talks there")
    told = tasks.get(f"{name}_told{rumours}")
    scene, state = touching_the_table(*world.reset(f"{name}_told", 0))
    for seed in range(20):
        one = draw(told, scene, state, seed)
        assert one.replied(one.now) == one.gold
        assert len(one.scene.instruction) < 600


def test_what_people_say_is_understood_and_has_nothing_to_do_with_it(drawn):
    texts = {words for one in drawn for _, words in one.scene.params.get("chatter", ())}
    names = set()
    for one in drawn:
        (asked,) = meanings(one.ask.wording or one.ask.question.text, asked=True)
        slots = [text for slot, text in asked.slots.items() if slot not in ("place", "person")]
        names |= {thing for text in slots for thing in text.split(", ")}
    assert names
    about = re.compile("|".join(rf"\b{re.escape(thing)}\b" for thing in names))
    assert not [text for text in texts if about.search(text)]


def played(world, name: str, seed: int, memory: str):
    planner = make_planner(f"remembering:memory={memory}")
    policy = make_policy("skills")
    sink = HashSink()
    verdict, _ = run_episode(tasks.get(name), seed, world, planner, policy, sink)
    told = [e.data["transcript"].get("memory") for e in sink.events if e.kind in ("plan", "answer")]
    # An answer tells of each item that was asked about, a plan of the one.
    first = next(part if "by" in part else next(iter(part.values())) for part in told if part)
    why = diagnose(tasks.get(name), sink.scene_seen, sink.states, sink.events, verdict)
    return verdict, first["by"], why


def test_the_arms_do_what_is_remembered(name, world):
    verdict, by, _ = played(world, name, 1, "structured")
    assert verdict.success, verdict.cause
    assert by == "memory"
    (asked,) = verdict.details["afterwards"].values()
    assert asked["accuracy"] == 1.0, asked


@pytest.mark.parametrize(
    "probe", [pytest.param(p, marks=() if p in QUICK else pytest.mark.slow) for p in PROBES]
)
def test_who_remembers_nothing_guesses_and_the_first_attempt_counts(probe, world):
    seed = next(s for s in range(20) if guesses_wrong(world.reset(probe, s)[0]))
    verdict, by, why = played(world, probe, seed, "none")
    assert by == "guess"
    assert not verdict.success
    assert why.kind == "memory", why
    assert verdict.cause.startswith("invariant broken: "), verdict.cause


def guesses_wrong(scene: Scene) -> bool:
    """Whether `remembering` is wrong here without a memory."""
    ask = tasks.get(scene.task).asked(scene)
    ((item, choices),) = ask.question.choices.items()
    rng = np.random.default_rng([scene.seed, 0, zlib.crc32(f"{ask.question.name}/{item}".encode())])
    return choices[int(rng.integers(len(choices)))] != ask.gold[item]


@pytest.mark.slow
def test_the_control_succeeds_without_a_memory(name, world):
    for seed in range(5):
        verdict, by, _ = played(world, f"{name}_told", seed, "none")
        assert by == "view"
        assert verdict.success, (seed, verdict.cause)
        for asked in verdict.details.get("afterwards", {}).values():
            assert asked["accuracy"] == 1.0, (seed, asked)
