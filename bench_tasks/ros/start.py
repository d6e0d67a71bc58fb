"""Entry points of the nodes: quiet from the first moment.

A node takes a second to import; Ctrl-C within it must not end in a traceback.
"""

from __future__ import annotations

import importlib
import os
import signal

__all__ = [
    "franka_check", "franka_world", "layout", "memory", "planner", "policy", "probe", "recorder",
    "safety", "standin_franka", "standin_g1", "standin_ros2_control", "task", "unitree_check",
    "unitree_world", "world",
]  # fmt: skip


def _start(module: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    importlib.import_module(module).main()


def world() -> None:
    """Start the node `world`."""
    _start("sim.world_node")


def planner() -> None:
    """Start the node `planner`."""
    _start("policies.planner_node")


def policy() -> None:
    """Start the node `policy`."""
    _start("policies.policy_node")


def memory() -> None:
    """Start the node `memory`."""
    _start("policies.memory_node")


def probe() -> None:
    """Start the node `probe`."""
    _start("bench_tasks.ros.probe_node")


def safety() -> None:
    """Start the node `safety`."""
    _start("hardware.safety_node")


def task() -> None:
    """Start the node `task`."""
    _start("bench_tasks.ros.task_node")


def recorder() -> None:
    """Start the node `recorder`."""
    _start("bench_tasks.ros.recorder_node")


def franka_world() -> None:
    """Start the node `world` of two Franka arms."""
    _start("hardware.franka.world_node")


def franka_check() -> None:
    """Start the node that collects what a camera sees of an arm."""
    _start("hardware.franka.check_node")


def standin_franka() -> None:
    """Start the stand-in for a cell with two Franka arms."""
    _start("sim.standin.franka_node")


def standin_ros2_control() -> None:
    """Start the stand-in for a cell with two Franka arms that franka_ros2 drives."""
    _start("sim.standin.ros2_control_node")


def unitree_world() -> None:
    """Start the node `world` of a Unitree G1."""
    _start("hardware.unitree.world_node")


def unitree_check() -> None:
    """Start the node that collects what a tracker sees of a G1's hand."""
    _start("hardware.unitree.check_node")


def standin_g1() -> None:
    """Start the stand-in for a G1 at a table."""
    _start("sim.standin.g1_node")


def layout() -> None:
    """Start the node `layout`."""
    _start("sim.layout_node")
