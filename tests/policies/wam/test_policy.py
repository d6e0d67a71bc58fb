"""The model as a policy, beyond what every policy must do (test_contract.py)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, steady_checkpoint  # noqa: E402

from bench_tasks.errors import BenchError, UsageError  # noqa: E402
from bench_tasks.execution import CALL, Execution  # noqa: E402
from bench_tasks.robots import embodiments  # noqa: E402
from bench_tasks.verdicts.dreams import DREAM, dreams_of  # noqa: E402
from bench_tasks.vocabulary import (  # noqa: E402
    ACTION_SIZE,
    FR3_PAIR,
    GRIPPER_COLUMNS,
    Event,
    Observation,
)
from policies import make_policy  # noqa: E402
from policies.execution import ExecutedPolicy  # noqa: E402
from policies.wam.policy import WamOptions, WamPolicy  # noqa: E402

TOKENS = TINY.patches[0] * TINY.patches[1] + 1
"""Of one observation."""


@pytest.fixture(scope="module")
def world():
    from sim.world import SimWorld

    return SimWorld(width=64, height=48)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return str(steady_checkpoint(tmp_path_factory.mktemp("wam") / "tiny.safetensors"))


def roll(world, policy, calls, seed=0):
    """What it saw and answered, call by call."""
    scene, _ = world.reset("lift_pot", 0)
    policy.reset(scene, seed)
    found = []
    for _ in range(calls):
        seen = Observation(world.state, world.capture(policy.metadata.cameras))
        chunk = policy.infer(seen).checked(world.state.seq)
        world.step(chunk)
        found.append((seen, chunk))
    return found


def test_its_dreams_are_compared_with_what_it_sees(no_weights, world, checkpoint, monkeypatch):
    predicted, seen = [], []
    from policies.wam import policy as module

    def spy(*args):
        got = sample(*args)
        predicted.append(got.video)
        return got

    sample = module.sample
    monkeypatch.setattr(module, "sample", spy)
    policy = WamPolicy(WamOptions(checkpoint, steps=1, dream=True))
    encode = policy._made.autoencoder.encode
    monkeypatch.setattr(policy._made.autoencoder, "encode",
                        lambda pixels: seen.append(encode(pixels)) or seen[-1])  # fmt: skip
    found = roll(world, policy, 4)
    told = [chunk.detail[DREAM] for _, chunk in found]
    # A look every stride: the first picture of a chunk is due at the next look, the second after.
    horizons = [[item["horizon_s"] for item in one["compared"]] for one in told]
    assert horizons == [[], [0.2], [0.4, 0.2], [0.4, 0.2]] and not any(d["missed"] for d in told)
    third = told[2]["compared"][0]  # predicted at the first look, two strides on
    assert third["latent"] == pytest.approx((predicted[0][:, 1] - seen[2]).square().mean().item())
    assert third["still_latent"] == pytest.approx((seen[0] - seen[2]).square().mean().item())
    assert all(0 <= third[key] <= 1 for key in ("pixel", "still_pixel", "own_pixel"))
    events = [Event(DREAM, k, k, detail) for k, detail in enumerate(told)]
    summed = dreams_of(events)
    assert list(summed["horizons"]) == ["0.2", "0.4"]
    assert [v["pictures"] for v in summed["horizons"].values()] == [3, 2]
    # Untrained, it dreams of noise; and what it does is the same as without.
    assert summed["right"] is False
    plain = roll(world, WamPolicy(WamOptions(checkpoint, steps=1, execute=2)), 4)
    for (_, a), (_, b) in zip(found, plain, strict=True):
        assert np.array_equal(a.values, b.values) and DREAM not in b.detail


def test_dreams_of_a_time_that_was_not_seen_are_counted(no_weights, world, checkpoint):
    policy = WamPolicy(WamOptions(checkpoint, steps=1, execute=3, dream=True))
    told = [chunk.detail[DREAM] for _, chunk in roll(world, policy, 3)]
    # Due 10 and 20 periods after each look, which is every 15: none is ever seen.
    assert [one["compared"] for one in told] == [[], [], []]
    assert [one["missed"] for one in told] == [0, 1, 2]
    summed = dreams_of([Event(DREAM, 0, 0, one) for one in told])
    assert summed == {"horizons": {}, "missed": 3, "right": None}


def test_dreams_are_of_the_pictures_time_not_the_states(no_weights, world, checkpoint):
    # In realtime the state may have moved on since; and of two times there is no one picture.
    policy = WamPolicy(WamOptions(checkpoint, steps=1, execute=2, dream=True))
    scene, _ = world.reset("lift_pot", 0)
    policy.reset(scene, 0)
    told = []
    for later, camera in ((3, ""), (3, ""), (1, ""), (0, "head"), (0, "")):
        frames = [
            replace(f, seq=f.seq + later + (f.camera == camera))
            for f in world.capture(policy.metadata.cameras)
        ]
        chunk = policy.infer(Observation(world.state, tuple(frames)))
        told.append(chunk.detail.get(DREAM))
        world.step(chunk)
    # Pictures of the states 3, 13, 21, 31 or 30, and 40; due are 13, 23; 23, 33; 31, 41.
    assert [len(one["compared"]) if one else None for one in told] == [0, 1, 0, None, 0]
    assert [one["missed"] if one else None for one in told] == [0, 0, 0, None, 4]


def test_dreams_do_not_survive_the_episode(no_weights, world, checkpoint):
    policy = WamPolicy(WamOptions(checkpoint, steps=1, execute=2, dream=True))
    roll(world, policy, 2)
    (_, chunk), *_ = roll(world, policy, 1)
    assert chunk.detail[DREAM] == {"compared": [], "missed": 0}


@pytest.mark.parametrize("history", [1, 2, 3, 4, 6])
def test_it_remembers_as_many_looks_as_it_learnt_with(
    no_weights, world, tmp_path, monkeypatch, history
):
    from policies.wam import policy as module

    shape = replace(TINY, history=history)
    policy = WamPolicy(WamOptions(str(steady_checkpoint(tmp_path / "a.safetensors", shape)), 1))
    given, sample = [], module.sample

    def spy(model, cache, *args):
        given.append([] if not cache else list(cache[0][0].split(TOKENS, dim=2)))
        got = sample(model, cache, *args)
        seen.append(got.seen[0][0])
        return got

    seen = []
    monkeypatch.setattr(module, "sample", spy)
    roll(world, policy, 8)
    # Before the present look: all earlier ones at first, later the newest `history` - 1.
    assert [len(one) for one in given] == [min(k, history - 1) for k in range(8)]
    for k, window in enumerate(given):
        for own, kept in zip(seen[k - len(window) : k], window, strict=True):
            assert torch.equal(own, kept)


def test_a_missing_camera_is_named(no_weights, world, checkpoint):
    policy = WamPolicy(WamOptions(checkpoint, execute=2))
    scene, state = world.reset("lift_pot", 0)
    policy.reset(scene, 0)
    with pytest.raises(BenchError, match="no picture of left_wrist, right_wrist$"):
        policy.infer(Observation(state, world.capture(("head",))))


def test_a_direct_one_answers_without_noise_in_its_only_step(no_weights, world, tmp_path):
    path = str(steady_checkpoint(tmp_path / "direct.safetensors", schedule="direct"))
    with pytest.raises(UsageError, match="steps must be 1, got 4: .* trained with the schedule di"):
        WamPolicy(WamOptions(path, steps=4))
    one, other = (
        [chunk.values for _, chunk in roll(world, WamPolicy(WamOptions(path, steps=n)), 2, seed)]
        for seed, n in ((0, 0), (1, 1))
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    # One policy, one name: the report groups by it.
    plain, told = (WamPolicy(WamOptions(path, steps=n)).metadata.name for n in (0, 1))
    assert plain == told and "steps" not in told


@pytest.mark.parametrize(("recipe", "steps"), [
    ({}, 4), ({"teacher": "a"}, 1), ({"schedule": "flash"}, 4), ({"schedule": "direct"}, 1),
])  # fmt: skip
def test_the_usual_steps_are_those_that_it_was_made_for(
    no_weights, world, tmp_path, monkeypatch, recipe, steps
):
    from policies.wam import policy as module

    path = str(steady_checkpoint(tmp_path / "a.safetensors", **recipe))
    calls, sample = [], module.sample
    monkeypatch.setattr(module, "sample", lambda *a: calls.append(sample(*a)) or calls[-1])
    roll(world, WamPolicy(WamOptions(path)), 1)
    assert [got.calls for got in calls] == [steps]


def test_wrong_options_are_named(checkpoint, tmp_path):
    for options, message in (
        ({"steps": -1}, "steps must be at least 1, or 0 for the usual, got -1"),
        ({"execute": -1}, "execute must be from 0 to 4, got -1"),
        ({"execute": 5}, "execute must be from 0 to 4, got 5"),
        ({"threads": 0}, "threads must be from 1 to 1024, got 0"),
        ({"reuse": float("nan")}, "reuse must be from 0 to 1, got nan"),
    ):
        with pytest.raises(UsageError, match=message):
            WamPolicy(WamOptions(checkpoint, **{"execute": 2, **options}))
    with pytest.raises(UsageError, match="checkpoint is empty: give a value, or leave it out"):
        make_policy("wam:checkpoint=")  # as a script's empty variable leaves it
    cloned = steady_checkpoint(tmp_path / "bc.safetensors", replace(TINY, video=False))
    with pytest.raises(UsageError, match="dream must be false"):
        WamPolicy(WamOptions(str(cloned), execute=2, dream=True))


def test_the_name_tells_policies_apart_whose_results_differ(checkpoint, tmp_path):
    # The report groups by it: two checkpoints, or two numbers of steps, are two policies.
    cloned = steady_checkpoint(tmp_path / "bc.safetensors", replace(TINY, video=False))
    digests = [
        hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8] for path in (checkpoint, cloned)
    ]
    named = [
        WamPolicy(options).metadata.name
        for options in (
            WamOptions(checkpoint), WamOptions(str(cloned)), WamOptions(checkpoint, dream=True),
            WamOptions(checkpoint, steps=1, execute=2, reuse=0.93, threads=2),
        )
    ]  # fmt: skip
    assert named == [f"wam {digests[0]}", f"bc {digests[1]}", f"wam {digests[0]}",
                     f"wam {digests[0]} steps=1 execute=2 reuse=0.93"]  # fmt: skip
    assert digests[0] != digests[1]


def test_a_binding_prefix_is_continued_and_a_free_one_changes_nothing(
    no_weights, world, checkpoint
):
    scene, state = world.reset("lift_pot", 0)
    policy = WamPolicy(WamOptions(checkpoint, steps=3, execute=4))
    seen = Observation(state, world.capture(policy.metadata.cameras))
    answers = []
    change = np.full(ACTION_SIZE, 0.005)
    change[GRIPPER_COLUMNS] *= -1  # open wide already
    prefix = state.command + change * np.arange(1, 13)[:, None]
    for weights in (None, np.zeros(12), np.ones(12)):
        policy.reset(scene, 0)
        every = policy._periods
        answers.append(
            policy.infer(seen) if weights is None
            else policy.infer_with_prefix(seen, prefix, weights)
        )  # fmt: skip
    plain, free, bound = (answer.values for answer in answers)
    assert np.array_equal(plain, free) and not np.allclose(plain, bound, atol=1e-3)
    ends = np.arange(every - 1, 12, every)
    assert len(ends) and np.allclose(bound[ends], prefix[ends], atol=1e-5)
    assert not np.allclose(bound[-1], prefix[-1], atol=1e-3), "what is not known is free"


@pytest.mark.parametrize(("recipe", "steps"), [({"schedule": "direct"}, 0), ({}, 1)])
def test_with_a_single_step_chunks_are_blended_for_nothing_can_be_continued(
    no_weights, world, tmp_path, recipe, steps
):
    path = str(steady_checkpoint(tmp_path / "a.safetensors", **recipe))
    policy = WamPolicy(WamOptions(path, steps, execute=4))
    executed = ExecutedPolicy(policy, Execution("rtc", "0.1", 10))
    scene, _ = world.reset("lift_pot", 0)
    executed.reset(scene, 0)
    calls = []
    for _ in range(4):
        seen = Observation(world.state, world.capture(policy.metadata.cameras))
        chunk = executed.infer(seen)
        calls.append(chunk.detail[CALL])
        world.step(chunk)
    assert all(call["blended"] > 0 and not call["inpainted"] for call in calls[1:]), calls


def test_what_it_asks_for_is_within_what_the_arms_can_do(
    no_weights, world, checkpoint, monkeypatch
):
    """A network's openings end a hair below 0 and above 0.08, which a safety node refuses."""
    robot = embodiments.get(FR3_PAIR)
    policy = WamPolicy(WamOptions(checkpoint, steps=1))
    beyond = np.concatenate([robot.low - 0.01, robot.high + 0.01]).reshape(2, -1)
    monkeypatch.setattr(
        type(policy._made.scaler), "commands",
        lambda _, rows, state: np.tile(beyond, (len(rows), 1)),
    )  # fmt: skip
    ((seen, chunk),) = roll(world, policy, 1)
    first = policy._periods - 1
    np.testing.assert_array_equal(chunk.values[first], robot.low)
    np.testing.assert_array_equal(chunk.values[first + policy._periods], robot.high)
    assert ((robot.low <= chunk.values) & (chunk.values <= robot.high)).all()
    assert seen.state.seq == 0
