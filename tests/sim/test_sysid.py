"""What is fitted to the motion of a simulation with known parameters is these parameters."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.cli import main
from bench_tasks.config import RunConfig
from bench_tasks.excitation import read_excitation
from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import Dynamics, read_dynamics
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.runner import run
from bench_tasks.vocabulary import ActionChunk
from sim.fr3 import own_dynamics
from sim.scene import build_cell
from sim.sysid import Replay, _standard_errors, fit
from sim.world import SimWorld

TASK = "blocks_ranking_rgb"
PARTS = ("stiffness", "damping", "dry", "offset_rad", "delay_s")
WITHIN = ((0.0, 1e-2), (0.0, 1e-2), (0.02, 0.0), (1e-5, 0.0), (1e-5, 0.0))
"""Absolute and relative."""


def some_dynamics() -> Dynamics:
    """Of two different arms, half to ten times as stiff as simulated, at the wrists to 3 times."""
    rng = np.random.default_rng(5)
    stiffer = np.array([0.5, 10, 1, 4, 2, 0.7, 1, 10, 2, 0.5, 6, 1, 3, 0.5])
    own = own_dynamics(build_cell(()).model)
    return Dynamics(
        own.stiffness * stiffer, own.damping * np.sqrt(stiffer) * rng.uniform(0.5, 1.5, 14),
        own.dry * rng.uniform(0.3, 2.0, 14), rng.uniform(-0.02, 0.02, 14), np.array([0.033, 0.012]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """(file of the dynamics, folder of the recorded excitation) of a robot in its own simulation.

    It is as `bench_tasks run` leaves it.
    """
    folder = tmp_path_factory.mktemp("robot")
    some_dynamics().write(folder / "true.yaml")
    run(RunConfig(
        (TASK,), policy="excite:duration_s=6", cameras=(), out=str(folder / "out"),
        dynamics=str(folder / "true.yaml"),
    ))  # fmt: skip
    return folder / "true.yaml", folder / "out"


@pytest.fixture(scope="module")
def replay():
    return Replay()


def test_parameters_are_recovered_from_the_recording_alone(robot, tmp_path, capsys):
    true, folder = read_dynamics(robot[0]), robot[1]
    out = tmp_path / "found.yaml"
    assert main(["sysid", str(folder), "--out", str(out), "--try", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = read_dynamics(out)
    for part, (atol, rtol) in zip(PARTS, WITHIN, strict=True):
        np.testing.assert_allclose(
            getattr(found, part), getattr(true, part), atol=atol, rtol=rtol, err_msg=part
        )
    before, after = (list(said[f"rms_{when}_rad"].values()) for when in ("before", "after"))
    assert min(before) > 2e-3
    assert max(after) < 1e-5
    assert said["tried_after_rad"] == said["rms_after_rad"]
    assert said["at_limit"] == []  # or the status were 1
    page = out.with_suffix(".md").read_text()
    assert page.count("_fr3_joint") == 14
    assert f"left {1e3 * true.delay_s[0]:.2f}" in page


def test_with_noise_the_error_is_what_is_said_of_it(robot):
    true, told = read_dynamics(robot[0]), read_excitation(robot[1])
    noise = 1e-4 * np.random.default_rng(1).standard_normal(told.measured.shape)
    found = fit(replace(told, measured=told.measured + noise))
    # Of stiffness, 1/k: in it the fit is linear. Not of the last joints, which have so little to
    # move that noise hides it: their intervals are too short, as the documentation says.
    softer = (1 / found.dynamics.stiffness - 1 / true.stiffness) / (
        found.error.stiffness / found.dynamics.stiffness**2
    )
    away = np.concatenate([softer[np.arange(14) % 7 < 6]] + [
        (getattr(found.dynamics, part) - getattr(true, part)) / getattr(found.error, part)
        for part in PARTS[3:]
    ])  # fmt: skip
    # Of 28 standard normal numbers.
    assert np.abs(away).max() < 4.0
    assert 0.5 < np.sqrt((away**2).mean()) < 1.5
    for part, most in zip(PARTS[3:], (1e-4, 1e-3), strict=True):
        assert getattr(found.error, part).max() < most
    np.testing.assert_allclose(found.rms_after, 1e-4, rtol=0.2)


def test_the_simulation_itself_has_its_own_parameters(robot, replay):
    told = read_excitation(robot[1])
    same = replace(told, measured=replay.positions(told, replay.nominal))
    found = fit(same)
    for part, (atol, rtol) in zip(PARTS, WITHIN, strict=True):
        np.testing.assert_allclose(
            getattr(found.dynamics, part), getattr(found.own, part), atol=atol, rtol=rtol
        )
    assert found.rms_before.max() < 1e-6


def test_arms_without_any_lag_are_beyond_every_servo(robot, tmp_path, monkeypatch, capsys):
    told = read_excitation(robot[1])
    monkeypatch.setattr(
        "bench_tasks.excitation.read_excitation", lambda _: replace(told, measured=told.command)
    )
    out = tmp_path / "ideal.yaml"
    assert main(["sysid", str(robot[1]), "--out", str(out)]) == 1
    (said,) = (s for s in capsys.readouterr().err.splitlines() if "ends of their ranges" in s)
    for what in ("greatest stiffness", "least damping"):
        assert f"{what} of {', '.join(JOINT_NAMES)}" in said
    assert "offset" not in said and "lag" not in said.split(". An end")[0]
    assert "delay" not in said, "none at all is no wonder"
    read_dynamics(out)
    assert out.with_suffix(".md").read_text().count("At the end of its range") == 2


def test_what_the_fit_simulates_is_what_the_world_does(robot, replay):
    told = read_excitation(robot[1])
    np.testing.assert_allclose(
        replay.positions(told, read_dynamics(robot[0])), told.measured, atol=1e-6
    )


def stepped(dynamics: Dynamics | None, moved: float, periods: int = 40) -> np.ndarray:
    """Positions (periods + 1, 14) when all joints are told to be elsewhere within one period."""
    world = SimWorld(dynamics=dynamics)
    _, state = world.reset(TASK, 0)
    target = state.command.copy()
    target[embodiments.get("fr3_pair").joint_columns] += moved
    states = [state, *world.step(ActionChunk(0, np.tile(target, (periods, 1))))]
    return np.stack([s.joint_position for s in states])


def test_own_dynamics_change_nothing(replay):
    np.testing.assert_allclose(stepped(replay.nominal, 0.05), stepped(None, 0.05), atol=1e-9)


def test_a_late_arm_does_the_same_later(replay):
    late = replace(replay.nominal, delay_s=np.array([0.06, 0.0]))
    now, then = stepped(None, 0.05), stepped(late, 0.05)
    np.testing.assert_allclose(then[3:, :7], now[:-3, :7], atol=1e-5)
    np.testing.assert_allclose(then[:, 7:], now[:, 7:], atol=1e-5)
    assert np.abs(then[3, :7] - now[3, :7]).min() > 1e-3


def test_an_offset_is_where_a_joint_stands(replay):
    offset = np.linspace(-0.02, 0.02, 14)
    none = np.zeros(14)
    beside = replace(replay.nominal, offset_rad=offset, dry=none)
    np.testing.assert_allclose(
        stepped(beside, 0.0)[0] - stepped(replace(replay.nominal, dry=none), 0.0)[0], offset,
        atol=1e-4,
    )


def test_a_snapshot_keeps_commands_that_are_under_way():
    world = SimWorld(dynamics=some_dynamics())
    _, state = world.reset(TASK, 0)
    ways = np.tile(state.command, (30, 1))
    ways[:, 0] += 0.02 * np.sin(np.arange(30))
    world.step(ActionChunk(0, ways[:20]))
    saved = world.save()
    first = world.step(ActionChunk(20, ways[20:]))[-1].joint_position
    world.restore(saved)
    assert (world.step(ActionChunk(20, ways[20:]))[-1].joint_position == first).all()


def test_a_humanoid_takes_no_dynamics_of_arms(robot):
    with pytest.raises(Exception, match="dynamics are those of fr3_pair"):
        RunConfig(("reach_both_hands",), dynamics=str(robot[0])).checked()


def test_what_is_at_the_end_of_its_range_is_no_part_of_the_errors():
    rng = np.random.default_rng(0)
    time_s = 0.02 * np.arange(200)
    jacobian, residuals = rng.standard_normal((200 * 14, 3)), rng.standard_normal(200 * 14)
    jacobian[:, 2] += 5.0 * jacobian[:, 1]  # so that each blurs the other
    free = np.array([True, True, False])
    found = _standard_errors(jacobian, residuals, time_s, free, np.eye(3))
    alone = _standard_errors(jacobian[:, :2], residuals, time_s, np.ones(2, bool), np.eye(2))
    np.testing.assert_allclose(found, [*alone, 0.0])
    both = _standard_errors(jacobian, residuals, time_s, np.ones(3, bool), np.eye(3))
    assert both[1] > 3.0 * found[1] > 0.0
