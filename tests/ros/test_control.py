"""simulation_interfaces on the world node: names, result codes and meanings."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("simulation_interfaces")
pytestmark = pytest.mark.ros

OK, NOT_FOUND, FAILED, UNSUPPORTED, ALREADY = 1, 2, 4, 0, 101
PLAYING, PAUSED, STOPPED = 1, 2, 0


@pytest.fixture
def ask(world):
    """Call a service of the world by its type's name: fields in, response out."""
    import re

    import simulation_interfaces.srv as srv

    def call(kind: str, **fields):
        service = getattr(srv, kind)
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", kind).lower()
        return world.caller(service, f"/world/{name}").call(service.Request(**fields))

    return call


def mode(ask, value):
    from simulation_interfaces.msg import SimulationState

    return ask("SetSimulationState", state=SimulationState(state=value)).result.result


def test_features_name_what_works(ask):
    from simulation_interfaces.msg import SimulatorFeatures as F

    found = set(ask("GetSimulatorFeatures").features.features)
    assert {F.SIMULATION_RESET, F.SIMULATION_STATE_PAUSE, F.STEP_SIMULATION_MULTIPLE} <= found
    assert F.SPAWNING not in found and F.SIMULATION_RESET_TIME not in found


def test_steps_only_while_paused(world, ask):
    assert ask("GetSimulationState").state.state == PLAYING
    assert ask("StepSimulation", steps=3).result.result == FAILED
    assert mode(ask, PAUSED) == OK
    assert mode(ask, PAUSED) == ALREADY
    assert ask("GetSimulationState").state.state == PAUSED
    world.send(0, world.hold(1))
    assert world.event().data["reason"] == "the simulation is paused"
    assert ask("StepSimulation", steps=3).result.result == OK
    assert [world.state().seq for _ in range(3)] == [1, 2, 3]
    assert mode(ask, PLAYING) == OK
    world.send(3, world.hold(1))
    assert world.state().seq == 4


def test_simulate_steps_action_reports_progress(world, ask):
    import threading

    from rclpy.action import ActionClient
    from simulation_interfaces.action import SimulateSteps

    mode(ask, PAUSED)
    heard, done = [], threading.Event()
    client = ActionClient(world.client, SimulateSteps, "/world/simulate_steps")
    assert client.wait_for_server(20)
    sent = client.send_goal_async(
        SimulateSteps.Goal(steps=4), lambda m: heard.append(m.feedback.completed_steps)
    )
    results = []

    def accepted(future):
        future.result().get_result_async().add_done_callback(
            lambda f: (results.append(f.result().result), done.set())
        )

    sent.add_done_callback(accepted)
    assert done.wait(20)
    assert results[0].result.result == OK
    assert [world.state().seq for _ in range(4)] == [1, 2, 3, 4]
    assert heard == sorted(heard)
    client.destroy()


def test_reset_puts_back_everything_at_once(world, ask):
    moved = world.hold(10)
    moved[:, 0] += np.linspace(0, 0.3, 10)
    world.send(0, moved)
    assert [world.state().seq for _ in range(10)][-1] == 10
    assert ask("ResetSimulation", scope=1).result.result == UNSUPPORTED
    assert ask("ResetSimulation", scope=0).result.result == OK
    again = world.state()
    assert again.seq == 0 and again.stamp_ns == 0
    assert np.array_equal(again.joint_position, world.start.joint_position)
    assert np.array_equal(again.command, world.start.command)
    world.send(0, world.hold(5))
    for _ in range(5):
        state = world.state()
    assert np.abs(state.joint_position - world.start.joint_position).max() < 1e-3, "nothing snaps"


def test_entities_are_found_read_and_put(world, ask):
    assert ask("GetEntities").entities == ["pot"]
    from simulation_interfaces.msg import EntityFilters

    assert ask("GetEntities", filters=EntityFilters(filter="k.*")).entities == []
    answer = ask("GetEntityState", entity="pot")
    assert answer.result.result == OK
    x = answer.state.pose.position.x
    assert x == pytest.approx(world.start.object_pose[0][0])
    assert ask("GetEntityState", entity="kettle").result.result == NOT_FOUND
    answer.state.pose.position.x = x + 0.04
    assert ask("SetEntityState", entity="pot", state=answer.state).result.result == OK
    answer.state.twist.linear.x = 1.0
    assert ask("SetEntityState", entity="pot", state=answer.state).result.result == UNSUPPORTED
    world.send(0, world.hold(1))
    world.state()
    pose = ask("GetEntityState", entity="pot").state.pose
    assert pose.position.x == pytest.approx(x + 0.04, abs=2e-3)


def test_stopping_returns_to_the_start_and_must_be_left_by_playing(world, ask):
    world.send(0, world.hold(2))
    assert [world.state().seq for _ in range(2)] == [1, 2]
    assert mode(ask, STOPPED) == OK
    assert world.state().seq == 0
    assert ask("GetSimulationState").state.state == STOPPED
    assert mode(ask, PAUSED) == 103
    assert mode(ask, PLAYING) == OK


def test_quitting_ends_the_node(world, ask):
    assert mode(ask, 3) == OK
    assert world.nodes.wait("world", 20) == 0
