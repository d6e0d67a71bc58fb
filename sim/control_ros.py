"""The services and the action of simulation_interfaces on the world node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.action import ActionServer
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    GetEntities,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    StepSimulation,
)

from bench_tasks.bags.cdr import split_ns
from sim.control import FEATURES, Outcome, SimulationControl

if TYPE_CHECKING:
    from sim.world_node import WorldNode

__all__ = ["offer"]


def _result(outcome: Outcome) -> Result:
    return Result(result=outcome.code, error_message=outcome.message)


def offer(node: WorldNode) -> None:
    """Create the services on `node`, under its name (`/world/get_entities`, ...)."""
    control = SimulationControl(node)

    def features(_: Any, response: Any) -> Any:
        response.features.features = [getattr(SimulatorFeatures, name) for name in FEATURES]
        response.features.custom_info = "One step is a control period of 20 ms."
        return response

    def reset(request: Any, response: Any) -> Any:
        response.result = _result(control.reset(request.scope))
        return response

    def get_state(_: Any, response: Any) -> Any:
        response.state = SimulationState(state=control.mode)
        response.result = _result(Outcome())
        return response

    def set_state(request: Any, response: Any) -> Any:
        response.result = _result(control.set_mode(request.state.state))
        return response

    def step(request: Any, response: Any) -> Any:
        *_, (_, outcome) = control.step(request.steps)
        response.result = _result(outcome)
        return response

    def entities(request: Any, response: Any) -> Any:
        outcome, response.entities = control.entities(request.filters.filter)
        response.result = _result(outcome)
        return response

    def get_entity(request: Any, response: Any) -> Any:
        outcome, pose, twist = control.entity(request.entity)
        response.result = _result(outcome)
        _fill(node, response.state, pose, twist)
        return response

    def set_entity(request: Any, response: Any) -> Any:
        p, q = request.state.pose.position, request.state.pose.orientation
        v, w = request.state.twist.linear, request.state.twist.angular
        pose = np.array([p.x, p.y, p.z, q.w, q.x, q.y, q.z])
        twist = np.array([v.x, v.y, v.z, w.x, w.y, w.z])
        frame = request.state.header.frame_id
        response.result = _result(control.set_entity(request.entity, pose, twist, frame))
        return response

    for kind, name, handler in (
        (GetSimulatorFeatures, "get_simulator_features", features),
        (ResetSimulation, "reset_simulation", reset),
        (GetSimulationState, "get_simulation_state", get_state),
        (SetSimulationState, "set_simulation_state", set_state),
        (StepSimulation, "step_simulation", step),
        (GetEntities, "get_entities", entities),
        (GetEntityState, "get_entity_state", get_entity),
        (SetEntityState, "set_entity_state", set_entity),
    ):
        node.create_service(kind, f"/{node.get_name()}/{name}", handler)

    def simulate(goal: Any) -> Any:
        total, outcome = goal.request.steps, Outcome()
        for done, over in control.step(total):
            outcome = over or outcome
            goal.publish_feedback(
                SimulateSteps.Feedback(completed_steps=done, remaining_steps=total - done)
            )
        if outcome == Outcome():
            goal.succeed()
        else:
            goal.abort()
        return SimulateSteps.Result(result=_result(outcome))

    # Kept on the node: an action server that nobody refers to is collected.
    node.simulate_steps = ActionServer(
        node, SimulateSteps, f"/{node.get_name()}/simulate_steps", simulate
    )


def _fill(node: WorldNode, state: Any, pose: np.ndarray, twist: np.ndarray) -> None:
    """EntityState from a pose (7,) wxyz and a twist (6,) in the world frame."""
    stamp = split_ns(node.state.stamp_ns if node.state else 0)
    state.header.frame_id = "world"
    state.header.stamp.sec, state.header.stamp.nanosec = stamp["sec"], stamp["nanosec"]
    p, q, v, w = (
        state.pose.position, state.pose.orientation, state.twist.linear, state.twist.angular
    )  # fmt: skip
    p.x, p.y, p.z, q.w, q.x, q.y, q.z = map(float, pose)
    v.x, v.y, v.z, w.x, w.y, w.z = map(float, twist)
