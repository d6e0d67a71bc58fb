"""Looks whether this machine can run the project; each finding that is bad says what to do.

Everything that could crash or change this process (ROS, rendering) is tried in a subprocess.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import bench_tasks
from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments

__all__ = ["Finding", "examine", "examine_franka", "examine_server", "examine_unitree"]

ROOT = Path(bench_tasks.__file__).resolve().parents[1]
MIN_PYTHON = (3, 10)
MIN_FREE_GB = 2.0
TIMEOUT_S = 60.0
SEEN_S = 3.0
_INSTALL = "run `make setup`, or: pip install -r requirements/base.txt"
_PACKAGES = {
    "numpy": "numpy", "scipy": "scipy", "mujoco": "mujoco", "pin": "pinocchio",
    "opencv-python-headless": "cv2", "PyYAML": "yaml", "mcap": "mcap", "zstandard": "zstandard",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One check. `needed`: without it nothing runs; otherwise only a part is missing."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def _try(code: str) -> tuple[bool, str]:
    """Run Python code in a fresh interpreter: whether it worked, and its last line of output."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S,
            env={**os.environ, "PYTHONPATH": path}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"no answer within {TIMEOUT_S:g} s"
    text = done.stdout if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return done.returncode == 0, lines[-1].strip() if lines else ""


def _python() -> Finding:
    return Finding(
        "python", sys.version_info >= MIN_PYTHON, f"{platform.python_version()}, {sys.executable}",
        f"Python {MIN_PYTHON[0]}.{MIN_PYTHON[1]} or newer is needed",
    )  # fmt: skip


def _packages() -> list[Finding]:
    found = []
    for name, module in _PACKAGES.items():
        present = importlib.util.find_spec(module) is not None
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "version unknown" if present else "not installed"
        found.append(Finding(name, present, version, _INSTALL))
    return found


def _robot() -> Finding:
    remedy = f"the wheel with the FR3 model is missing: {_INSTALL}"
    try:
        from bench_tasks.robots.fr3 import arm_mjcf

        return Finding("robot model", True, f"FR3, {len(arm_mjcf()) // 1000} kB of MJCF", remedy)
    except (BenchError, ImportError, OSError) as error:
        return Finding("robot model", False, str(error), remedy)


_RENDER = """
import numpy as np
from sim import gl
name = gl.choose()
import mujoco
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><light pos="0 0 3"/><geom size=".3" rgba="1 0 0 1"/>'
    '<camera name="c" pos="0 -2 0" xyaxes="1 0 0 0 0 1"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 48, 64) as renderer:
    renderer.update_scene(data, 'c')
    picture = renderer.render().astype(int)
red = picture[24, 32]
assert red[0] > 40 and red[0] > 2 * red[1], f'the middle pixel is {red.tolist()}, not red'
print(name + ', drew a picture')
"""


def _renderer() -> Finding:
    ok, text = _try(_RENDER)
    packages = "libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6"
    return Finding("renderer", ok, text, f"sudo apt-get install {packages}")


_PUBLISH = """
import os
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'OFF'
import rclpy
from bench_interfaces.msg import WorldState
rclpy.init()
node = rclpy.create_node('bench_tasks_doctor')
node.create_publisher(WorldState, 'bench_tasks_doctor', 1)
node.destroy_node()
rclpy.shutdown()
print('bench_interfaces, made a publisher')
"""


def _registered(name: str, load: Callable[[], int], remedy: str) -> Finding:
    try:
        return Finding(name, True, f"{load()} can be loaded", remedy)
    except (BenchError, ImportError) as error:
        return Finding(name, False, str(error), remedy)


def _tasks() -> int:
    from bench_tasks import tasks

    return len(tasks.names())


def _policies(missing: list[str] | None = None) -> int:
    """How many can be loaded; why others lack an extra is added to `missing`."""
    from bench_tasks.registry import MissingExtra, load
    from policies import PLANNERS, POLICIES

    count = 0
    for kind, registry in (("planner", PLANNERS), ("policy", POLICIES)):
        for name in registry:
            try:
                load(kind, name, registry)
                count += 1
            except MissingExtra as error:
                if missing is not None:
                    missing.append(str(error))
    return count


def _registries() -> list[Finding]:
    """Whether what is registered can be loaded, and what is optional and not installed."""
    missing: list[str] = []
    found = [
        _registered("tasks", _tasks, "mend the file in bench_tasks/tasks/, or move it elsewhere"),
        _registered("policies", lambda: _policies(missing),
                    "mend the module, or its entry in policies/__init__.py"),
    ]  # fmt: skip
    try:
        embodiments.get("g1").check_installed()
    except BenchError as error:
        missing.append(str(error))
    remedy = "only if you want to use it"
    return found + [Finding("extra", False, text, remedy, needed=False) for text in missing]


def _ros() -> list[Finding]:
    distro = os.environ.get("ROS_DISTRO", "")
    ok, text = _try("import rclpy; print(rclpy.__file__)")
    source = f"sourced {distro}" if distro else "from wheels"
    remedy = "source a ROS 2 distribution, or run `make setup`; `bench_tasks run` works without ROS"
    found = [Finding("ROS 2", ok, f"{source}: {text}" if ok else text, remedy, needed=False)]
    if ok:
        ok, text = _try(_PUBLISH)
        remedy = ("run `make setup`; with a distribution, `source ros_ws/install/setup.bash` makes"
                  " what it built known to the shell")  # fmt: skip
        found.append(Finding("ros_ws", ok, text, remedy, needed=False))
    return found


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    return Finding(
        "disk", free >= MIN_FREE_GB, f"{free:.1f} GB free here",
        f"keep {MIN_FREE_GB:g} GB free: an episode takes 1 MB, with camera streams up to 50 MB",
    )  # fmt: skip


def _writable() -> Finding:
    here = Path.cwd()
    return Finding(
        "folder", os.access(here, os.W_OK), str(here),
        "runs are recorded in results/ here: change folder, or name one by --out", needed=False,
    )  # fmt: skip


def examine() -> list[Finding]:
    """All checks, in the order in which they matter; takes a few seconds."""
    return [
        _python(), *_packages(), _robot(),
        *_registries(), _renderer(), *_ros(), _disk(), _writable(),
    ]  # fmt: skip


def examine_franka(cell: str, evidence: Sequence[str]) -> list[Finding]:
    """Checks of a cell with two Franka arms: its files, its driver, and what its cameras saw.

    Before that, whether arms and hands are there at all; they are told nothing.

    `evidence`: files of franka_check_node. UsageError when one of them cannot be read.
    """
    from hardware.franka.calibration import read_evidence
    from hardware.franka.cell import driver_python, read_cell
    from hardware.franka.checkup import check
    from hardware.franka.computer import check_computer
    from hardware.franka.reach import check_reach

    found = read_cell(cell)
    looks = [read_evidence(Path(path)) for path in evidence]
    findings = [Finding("cell", True, cell)]
    try:
        findings.append(Finding("driver", True, driver_python(found)))
    except BenchError as error:
        findings.append(Finding("driver", False, str(error), "see docs/franka.md"))
    driver = findings[-1].ok
    findings += [Finding(*one) for one in check_computer(found)]
    if driver or not found.by_ros:  # a control box answers to any driver
        findings += [Finding(*one) for one in check_reach(found)]
    mounts = found.mounts()
    findings.append(
        Finding("calibration", bool(mounts), f"of {', '.join(mounts) or 'no camera'}",
                "name a calibration file in the cell", needed=bool(looks))
    )  # fmt: skip
    if not looks:
        remedy = "let franka_check_node collect what each camera sees, and name its files here"
        findings.append(Finding("left and right, cameras, hands", False, "not looked at", remedy,
                                needed=False))  # fmt: skip
    return findings + [Finding(*one) for one in check(mounts, looks)]


def examine_unitree(cell: str, evidence: Sequence[str]) -> list[Finding]:
    """Checks of a G1 and its cell: its file, its driver, what is heard and seen; tells it nothing.

    `evidence`: files of unitree_check_node. UsageError when one of them cannot be read.
    """
    from hardware.unitree import checkup, joints, network
    from hardware.unitree.cell import driver_python, read_cell

    found = read_cell(cell)
    looks = [joints.read_evidence(Path(path)) for path in evidence]
    findings, heard = [Finding("cell", True, cell)], {}
    try:
        embodiments.get("g1").check_installed()
        python = driver_python(found)
        findings.append(Finding("driver", True, python))
        settings = {**found.bus(), "hands": found.raw["hands"]}
        if found.raw["transport"] == "ros2":
            wrong = network.ros_faults(os.environ, found.domain)
            findings.append(Finding("ROS 2", not wrong, "; ".join(wrong) or "as the robot's",
                                    "see the robot's own ROS 2 topics in docs/unitree.md"))
            findings.append(Finding("robot", False, "not listened to over ROS 2",
                                    "ros2 topic hz /lowstate", needed=False))  # fmt: skip
        elif wrong := network.interface_fault(settings["interface"]):
            findings.append(Finding("network", False, wrong, "correct interface in the cell"))
        else:
            shared = network.domain_fault(os.environ, found.domain)
            findings.append(Finding("domain", not shared, shared or f"{found.domain}, not ROS 2's",
                                    network.OTHER_DOMAIN))  # fmt: skip
            heard = network.hear(python, settings)
            findings += [Finding(*one) for one in checkup.check(heard, settings)]
    except BenchError as error:
        findings.append(Finding("driver", False, str(error), "see docs/unitree.md"))
    findings += _seen(cell, heard.get("quaternion") or None)
    if not looks:
        remedy = "let unitree_check_node collect what a tracker sees, and name its files here"
        findings.append(
            Finding("order and signs of joints", False, "not looked at", remedy, needed=False)
        )
    return findings + [Finding(*one) for one in (joints.check(looks) if looks else ())]


def _seen(cell: str, upright: Sequence[float] | None) -> list[Finding]:
    """What cameras and tracker of a G1's cell publish."""
    ok, text = _try(
        "import sys; from hardware.seen_ros import main; "
        f"sys.argv = ['', 'hardware.unitree.cell', {cell!r}, '{SEEN_S}', 'pelvis']; main()"
    )
    try:
        seen = json.loads(text) if ok else None
    except ValueError:
        seen = None
    if seen is None:
        remedy = "run `make setup`: the robot's world node needs ROS 2"
        return [Finding("tracker and cameras", False, f"ROS 2 cannot be used: {text}", remedy)]
    from hardware.unitree.checkup import check_seen

    return [Finding(*one) for one in check_seen(seen, upright)]


def examine_server(spec: str) -> list[Finding]:
    """Checks of a policy server: whether it fits, answers, and forgets from episode to episode.

    UsageError when `spec` names no policy that runs on a server.
    """
    from policies.remote.probe import examine as look

    return [Finding(*found) for found in look(spec)]
