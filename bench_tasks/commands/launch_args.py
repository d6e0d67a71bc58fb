"""The arguments of the launch files, checked before any process is started; no ROS needed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_tasks import tasks
from bench_tasks.config import RunConfig
from bench_tasks.errors import UsageError, unknown
from bench_tasks.execution import MODES
from bench_tasks.images import DEFAULT_SIZE
from bench_tasks.listeners import refuse_taken
from bench_tasks.manifest import writable_folder
from bench_tasks.object_sets import shipped
from bench_tasks.ros.domain import claim_domain
from bench_tasks.ros.middleware import middleware
from bench_tasks.runner import cell_cameras, check, simulated_addresses
from bench_tasks.streams import parse_streams
from bench_tasks.vocabulary import AXES, FR3_PAIR
from bench_tasks.yaml_shape import shipped as shipped_with

__all__ = [
    "ARGUMENTS", "RENAMED", "Settings", "flag", "read", "refuse_undeclared", "summary",
    "variables", "whole",
]  # fmt: skip

ROBOTS = ("sim", "franka", "unitree")
EMBODIMENTS = {"franka": FR3_PAIR, "unitree": "g1"}
"""What kind of robot a real one is: tasks are for one kind or the other."""
CLOCKS = ("lockstep", "realtime")
STANDIN = "standin"
"""The cell whose robot is simulated and speaks its vendor's protocol."""
STANDINS = {"franka": (STANDIN, "standin_ros2"), "unitree": (STANDIN,)}
"""Real robot -> cells where it is simulated: behind its vendor's protocol, or franka_ros2's."""
AUTO = "auto"
VIEWERS = ("none", "foxglove", "mujoco")

FIRST_TASKS = (
    "spatial_sparse", "blocks_ranking_rgb", "handover_block", "lift_pot", "stack_blocks_two",
    "cover_blocks",
)
"""One of each tier and way of working together: what a first run evaluates, within 2 minutes."""

ENVIRONMENT = {
    # A run's processes share few cores; a linear algebra thread pool each would fight for them.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}
"""What nodes are started with, unless the environment has it already."""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables to set for nodes that are started from this environment."""
    own = {name: environ.get(name, value) for name, value in ENVIRONMENT.items()}
    return own | middleware(environ)


ARGUMENTS: dict[str, tuple[str, str]] = {
    "tasks": (
        ",".join(FIRST_TASKS), "tasks to evaluate, separated by commas, or all (bench_tasks list)"
    ),
    "episodes": ("1", "episodes of each task"),
    "seed": ("0", "seed of the first episode; each further one adds 1"),
    "planner": ("expert", "what turns instructions into skill calls"),
    "policy": ("skills", "what moves the arms"),
    "latency": ("free", "what thinking costs in simulated time: free, measured, or seconds a plan"),
    "execution": ("sync", "how the policy's chunks are executed: " + ", ".join(MODES)),
    "policy_latency": (
        "free", "what a policy's call costs in simulated time: free, measured, or seconds"
    ),
    "execute": ("0", "periods from one call of the policy to the next; 0: as the mode allows"),
    "policy_deadline_s": ("10", "after so many seconds a policy's answer is not used any more"),
    "vary": ("none", "what to randomise beyond the layout, or all: " + ", ".join(AXES)),
    "objects": ("", "set of evolved objects to use, a file or a name (bench_tasks objects list)"),
    "dynamics": (
        "", "with robot:=sim, a file that says how its joints answer (bench_tasks sysid)"
    ),
    "robot": ("sim", "whose arms: " + ", ".join(ROBOTS)),
    "cell": (
        STANDIN, "with a real robot, the file that describes its cell, or standin: a simulated "
        "robot that speaks the vendor's protocol (standin_ros2: arms behind franka_ros2's topics)"
    ),
    "safety": (
        "auto", "check every command before it is executed: true, false, or auto, which is true "
        "for a real robot"
    ),
    "limits": (
        AUTO, "what the safety node lets through: a robot's limits by its name (auto: those of the "
        "tasks' robot), or a file of your own, made from one of hardware/limits; a cell's own "
        "limits are kept besides"
    ),
    "confirm": ("false", "true: motion is confirmed already; false: by /safety/confirm"),
    "dry_run": ("false", "true: print what the safety node would send, and send nothing"),
    "record": ("true", "one bag per episode, scored offline; false: the live verdict only"),
    "out": ("", "folder for recordings, results and report; default results/<UTC time>"),
    "clock": ("lockstep", "lockstep: repeatable to the bit; realtime: 50 Hz of wall time"),
    "streams": ("none", "cameras that stream while the arms move: name[@hz],..."),
    "image_size": (DEFAULT_SIZE, "width x height of every picture, in pixels"),
    "viewer": ("none", "none, foxglove (needs foxglove_bridge) or mujoco (needs a display)"),
}
"""Launch argument -> (default, description)."""

RENAMED = {"cameras": "streams"}
"""Old name -> new name; ROS would pass over an argument that nobody declares."""


@dataclass(frozen=True)
class Settings:
    """What the nodes are started with."""

    config: RunConfig
    clock: str
    streams: str
    viewer: str
    robot: str
    safety: bool = False
    confirm: bool = False
    dry_run: bool = False
    limits: str = ""
    cell: str = ""


def whole(name: str, text: str) -> int:
    """A whole number that a ROS parameter holds; UsageError names the argument that is none."""
    try:
        found = int(text)
    except ValueError:
        raise UsageError(f"{name} must be a whole number, got {text!r}") from None
    if not -(2**63) <= found < 2**63:
        raise UsageError(f"{name} must be a whole number of 64 bits, got {text!r}")
    return found


def _seconds(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name} must be a number of seconds, got {text!r}") from None


def flag(name: str, text: str) -> bool:
    """True or false; UsageError names the argument whose text is neither."""
    flags = {"true": True, "false": False}
    if text.lower() not in flags:
        raise UsageError(f"{name} must be true or false, got {text!r}")
    return flags[text.lower()]


def _one_of(kind: str, value: str, valid: tuple[str, ...]) -> str:
    if value not in valid:
        raise unknown(kind, value, valid)
    return value


def read(given: Mapping[str, str]) -> Settings:
    """Settings from the texts of all `ARGUMENTS`, and of `RENAMED` ones that were given.

    UsageError in one line names the first wrong one, or the ROS domain if another run uses it:
    the domain is claimed. The output folder is made, last of all, since only writing to it proves
    that it can be written.
    """
    for old, new in RENAMED.items():
        if given.get(old):
            raise UsageError(f"{old}:={given[old]}: the argument is called {new} now; "
                             f"write {new}:={given[old]}")  # fmt: skip
    chosen, vary = (
        tuple(word.strip() for word in given[name].split(",") if word.strip())
        for name in ("tasks", "vary")
    )
    config = RunConfig(
        tasks=tuple(tasks.names()) if chosen == ("all",) else chosen,
        planner=given["planner"], policy=given["policy"],
        episodes=whole("episodes", given["episodes"]), seed=whole("seed", given["seed"]),
        out=given["out"], record=flag("record", given["record"]), latency=given["latency"],
        vary=() if given["vary"] == "none" else AXES if given["vary"] == "all" else vary,
        image_size=given["image_size"],
        # Nodes may run in another folder.
        objects=given["objects"] if given["objects"] in ("", *shipped())
        else str(Path(given["objects"]).absolute()),
        dynamics=str(Path(given["dynamics"]).absolute()) if given["dynamics"] else "",
        execution=given["execution"], policy_latency=given["policy_latency"],
        execute=whole("execute", given["execute"]),
        policy_deadline_s=_seconds("policy_deadline_s", given["policy_deadline_s"]),
    )  # fmt: skip
    robot = _one_of("robot", given["robot"], ROBOTS)
    for name in config.tasks if robot != "sim" else ():
        if tasks.get(name).embodiment != EMBODIMENTS[robot]:
            raise UsageError(f"robot {robot} is {EMBODIMENTS[robot]}, {name} is for "
                             f"{tasks.get(name).embodiment}")  # fmt: skip
    if robot == "sim" and given["cell"] != ARGUMENTS["cell"][0]:
        raise UsageError(f"cell has no meaning for robot sim, got {given['cell']!r}: did you mean "
                         "robot:=franka or robot:=unitree?")  # fmt: skip
    fixed = [axis for axis in config.vary if axis != "paraphrase"]
    if robot != "sim" and fixed:
        raise UsageError(f"vary must be none or paraphrase for robot {robot}, whose cell is as it "
                         f"is, got {','.join(fixed)}")  # fmt: skip
    if robot != "sim" and config.dynamics:
        raise UsageError(f"dynamics must be empty for robot {robot}, whose joints are as they "
                         f"are, got {given['dynamics']!r}")  # fmt: skip
    # Real arms do not wait, whatever is asked of the simulated ones.
    clock = _one_of("clock", given["clock"], CLOCKS) if robot == "sim" else "realtime"
    on_clock = config.executing.checked().on_clock(clock)
    config = replace(config, policy_latency=on_clock.latency)
    if config.planner.partition(":")[0].strip() == "human":
        raise UsageError("planner human needs a terminal, and launched nodes have none: "
                         "use bench_tasks run")  # fmt: skip
    streams = "" if given["streams"] == "none" else given["streams"]
    cell = _file("cell", given["cell"], STANDINS[robot]) if robot != "sim" else ""
    there = cell_cameras(robot, cell) if cell else None
    check(replace(config, cameras=tuple(parse_streams(streams))), there)
    settings = Settings(
        check(config, there),
        clock,
        streams,
        _viewer(_one_of("viewer", given["viewer"], VIEWERS), robot),
        robot,
        **_safety({**given, "clock": clock}, config),
        cell=cell,
    )
    claim_domain()
    if robot == "franka" and cell == STANDIN:
        # Else the world's node would find the arms of the other run before its own are there.
        refuse_taken(cell, simulated_addresses(cell).values())
    if config.record:
        out = writable_folder(Path(settings.config.out))
        if (out / "run.json").exists():
            raise UsageError(f"{out} holds a run already: choose another output folder")
    return settings


def refuse_undeclared(words: Sequence[str], file: str, declared: Collection[str]) -> None:
    """UsageError for an argument (`name:=value`) on a command line that its launch file has not.

    ROS would pass over it. `words` are the command's; nothing is refused when it is not `file`
    that they launch, but one that includes it and has arguments of its own.
    """
    if not any(Path(word).name == file for word in words if ":=" not in word):
        return
    for word in words:
        name, given, _ = word.partition(":=")
        if given and name not in declared:
            raise unknown("launch argument", name, declared)


def _safety(given: Mapping[str, str], config: RunConfig) -> dict[str, Any]:
    """What is asked of the safety node; UsageError when a real robot would be without one."""
    real = given["robot"] != "sim"
    asked = real if given["safety"] == "auto" else flag("safety", given["safety"])
    confirm, dry_run = flag("confirm", given["confirm"]), flag("dry_run", given["dry_run"])
    if real and not asked:
        raise UsageError(f"safety must be true for robot {given['robot']}, got false")
    robots = tuple(shipped_with("hardware.limits"))
    limits = _file("limits", given["limits"], (AUTO, *robots))
    kinds = {tasks.get(name).embodiment for name in config.tasks}
    if asked and limits == AUTO:
        if len(kinds) > 1:
            raise UsageError("the safety node knows the limits of one robot at a time, the tasks "
                             f"are for {' and '.join(sorted(kinds))}")  # fmt: skip
        limits = next(iter(kinds), FR3_PAIR)
    others = sorted(kinds - {limits})
    if asked and limits in robots and others:
        raise UsageError(f"limits:={limits} are those of another robot: the tasks are for "
                         f"{' and '.join(others)}")  # fmt: skip
    if not asked and given["limits"] != ARGUMENTS["limits"][0]:
        raise UsageError(f"limits have no meaning without safety:=true, got {given['limits']!r}")
    if not asked and (confirm or dry_run):
        name = "confirm" if confirm else "dry_run"
        raise UsageError(f"{name} must be false without safety:=true, got true")
    if dry_run and given["clock"] != "realtime":
        raise UsageError("dry_run needs clock:=realtime: in lockstep time stands still until an "
                         f"action is executed, got {given['clock']!r}")  # fmt: skip
    # Of simulated arms nobody has to stand clear.
    simulated = real and given["cell"] in STANDINS[given["robot"]]
    if dry_run and real and not simulated:
        raise UsageError(f"dry_run must be false for the cell {given['cell']}: its arms go home and"
                         " its hands open before anything is checked, got true")  # fmt: skip
    return {
        "safety": asked, "confirm": confirm or simulated, "dry_run": dry_run, "limits": limits,
    }  # fmt: skip


def _file(what: str, name: str, names: tuple[str, ...]) -> str:
    """One of some names, or a file as nodes find it, which may run in another folder."""
    if not name.endswith((".yaml", ".yml")):
        if name not in names:
            raise unknown(what, name, [*names, "a path ending in .yaml"])
        return name
    if not Path(name).is_file():
        raise UsageError(f"{what}: there is no file {name}")
    return str(Path(name).absolute())


def _viewer(viewer: str, robot: str) -> str:
    if viewer == "mujoco" and robot != "sim":
        raise UsageError(f"viewer:=mujoco shows robot:=sim only, not {robot}")
    if viewer == "foxglove" and not has_package("foxglove_bridge"):
        raise UsageError(
            "viewer:=foxglove needs the package foxglove_bridge: on a ROS machine "
            "apt-get install ros-$ROS_DISTRO-foxglove-bridge; Foxglove also opens the recordings"
        )
    if viewer == "mujoco":
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise UsageError("viewer:=mujoco needs a display, and neither DISPLAY is set nor "
                             "WAYLAND_DISPLAY")  # fmt: skip
        if importlib.util.find_spec("glfw") is None:
            raise UsageError("viewer:=mujoco needs the Python package glfw")
    return viewer


def has_package(name: str) -> bool:
    """Whether a ROS package of that name is installed."""
    marker = Path("share/ament_index/resource_index/packages") / name
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / marker).exists() for prefix in prefixes if prefix)


def summary(given: Mapping[str, str], file: str) -> str:
    """The command that repeats this launch: the arguments that differ from their defaults."""
    words = [f"{k}:={given[k]}" for k, (default, _) in ARGUMENTS.items() if given[k] != default]
    return " ".join(["ros2", "launch", "bench_tasks", file, *words])
