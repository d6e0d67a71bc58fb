"""What a launch is started with, by the robot it is for."""

import os
import socket
from importlib import resources

import pytest

from bench_tasks import tasks
from bench_tasks.commands import launch_args, memory_args
from bench_tasks.commands.humanoid_args import humanoid_tasks
from bench_tasks.commands.launch_args import ARGUMENTS, read, refuse_undeclared
from bench_tasks.errors import UsageError
from bench_tasks.runner import simulated_addresses

FREE = "127.0.0.41"


@pytest.fixture
def settings(tmp_path, ros_domain, monkeypatch):
    """What `read` makes of some arguments, the others being as they are by default.

    Another run of this machine may have the stand-in's own addresses meanwhile.
    """
    monkeypatch.setattr(launch_args, "simulated_addresses", lambda _: {"left": FREE})

    def made(**given):
        defaults = {name: default for name, (default, _) in ARGUMENTS.items()}
        return read({**defaults, "tasks": "lift_pot", "out": str(tmp_path / "out"), **given})

    return made


def test_the_robot_is_the_whole_difference(settings):
    sim = settings()
    assert (sim.robot, sim.clock, sim.safety, sim.cell) == ("sim", "lockstep", False, "")
    real = settings(robot="franka")
    # By default no robot moves: the arms are simulated, and nobody has to stand clear.
    assert (real.clock, real.safety, real.confirm) == ("realtime", True, True)
    assert real.cell == "standin"
    assert real.config.tasks == sim.config.tasks


def test_a_real_cell_is_confirmed_by_a_human(settings, tmp_path):
    file = tmp_path / "mine.yaml"
    shipped = resources.files("hardware.franka") / "cell.yaml"
    file.write_text(shipped.read_text().replace("  right_wrist:", "  # right_wrist:"))
    real = settings(robot="franka", cell=str(file))
    assert (real.cell, real.safety, real.confirm) == (str(file), True, False)
    with pytest.raises(UsageError, match="dry_run must be false for the cell .*mine.yaml"):
        settings(robot="franka", cell=str(file), dry_run="true")
    with pytest.raises(UsageError, match="unknown camera 'right_wrist': choose from head, left"):
        settings(robot="franka", cell=str(file), streams="right_wrist")


def test_simulated_arms_are_not_started_where_others_are(settings, tmp_path):
    with socket.create_server((FREE, 0)):
        said = f"address {FREE} of the simulated cell standin is held by process {os.getpid()} "
        with pytest.raises(UsageError, match=said):
            settings(robot="franka")
        assert settings(robot="franka", cell="standin_ros2").cell == "standin_ros2"
        settings()
    assert settings(robot="franka").cell == "standin"


def test_a_stand_in_is_where_its_cell_says(tmp_path):
    shipped, file = resources.files("hardware.franka"), tmp_path / "mine.yaml"
    text = (shipped / "standin.yaml").read_text()
    file.write_text(text.replace("127.0.0.11", "127.0.0.21").replace("127.0.0.12", "127.0.0.22"))
    assert simulated_addresses(str(file)) == {"left": "127.0.0.21", "right": "127.0.0.22"}
    for name in ("cell", "standin_ros2"):
        with pytest.raises(UsageError, match=f"cell {name} is not of simulated arms"):
            simulated_addresses(name)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"robot": "panda"}, "unknown robot 'panda': choose from franka, sim, unitree"),
        ({"robot": "franka", "cell": "no/such.yaml"}, "cell: there is no file no/such.yaml"),
        ({"robot": "franka", "tasks": "reach_both_hands"},
         "robot franka is fr3_pair, reach_both_hands is for g1"),
        ({"robot": "unitree", "tasks": "lift_pot"}, "unitree is g1, lift_pot is for fr3_pair"),
        ({"safety": "true", "tasks": "lift_pot,reach_both_hands"},
         "one robot at a time, the tasks are for fr3_pair and g1"),
        ({"robot": "franka", "safety": "false"}, "safety must be true for robot franka"),
        ({"robot": "franka", "cell": __file__}, "unknown cell .*: choose from .*standin"),
        ({"robot": "franka", "cell": "mycell"}, "unknown cell 'mycell': choose from "),
        ({"planner": "remembering:cameras=wrong"},
         "unknown camera of planner remembering 'wrong': choose from head, left_wrist"),
        ({"robot": "franka", "planner": "remembering:cameras=third"},
         "unknown camera of planner remembering 'third': choose from head, left_wrist, right_wr"),
        ({"robot": "franka", "dynamics": "robot.yaml"}, "dynamics must be empty for robot franka"),
        ({"dynamics": "no/such.yaml"}, "cannot read the dynamics .*no/such.yaml"),
        ({"safety": "true", "limits": "no/such.yaml"}, "limits: there is no file no/such.yaml"),
        ({"limits": "g1"}, "limits have no meaning without safety:=true"),
        ({"cell": "mine.yaml"}, "cell has no meaning for robot sim, got .mine.yaml.: did you mean"),
        ({"safety": "true", "limits": "fr3pair"}, "unknown limits 'fr3pair': choose from "),
        ({"safety": "true", "limits": "g1"},
         "limits:=g1 are those of another robot: the tasks are for fr3_pair"),
        ({"safety": "true", "limits": "fr3_pair", "tasks": "reach_both_hands"},
         "limits:=fr3_pair are those of another robot: the tasks are for g1"),
        ({"robot": "franka", "vary": "paraphrase,table_height"}, "as it is, got table_height"),
        ({"seed": "9" * 20}, "seed must be a whole number of 64 bits, got '9999"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(settings, given, said):
    with pytest.raises(UsageError, match=said):
        settings(**given)


def test_the_humanoid_is_launched_with_its_own_tasks(settings):
    every = humanoid_tasks("all", "sim")
    assert every.split(",") == tasks.names("g1")
    assert humanoid_tasks("reach_both_hands", "sim") == "reach_both_hands"
    assert settings(tasks=every).config.tasks == tuple(tasks.names("g1"))
    for names, robot, said in (
        ("all", "panda", "unknown robot .panda.: choose from sim, unitree"),
        ("all", "franka", "unknown robot 'franka': choose from sim"),
        ("reach_both_hands,lift_pot", "sim", "task lift_pot is for fr3_pair: choose from "),
        ("juggle", "sim", "unknown task 'juggle': choose from"),
    ):
        with pytest.raises(UsageError, match=said):
            humanoid_tasks(names, robot)


def test_limits_of_ones_own_reach_the_safety_node(settings, tmp_path, monkeypatch):
    assert settings(safety="true").limits == "fr3_pair"
    assert settings(safety="true", tasks="reach_both_hands").limits == "g1"
    assert settings(robot="unitree", tasks="reach_both_hands").limits == "g1"
    (tmp_path / "mine.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert settings(robot="franka", limits="mine.yaml").limits == str(tmp_path / "mine.yaml")


LAUNCH = ("/opt/ros/jazzy/bin/ros2", "launch")


@pytest.mark.parametrize(
    "words",
    [
        (*LAUNCH, "bench_tasks", "bimanual.launch.py", "saftey:=true"),
        (*LAUNCH, "share/launch/bimanual.launch.py", "tasks:=lift_pot", "saftey:=true"),
        (*LAUNCH, "--debug", "bench_tasks", "bimanual.launch.py", "saftey:=", "--noninteractive"),
    ],
)
def test_an_argument_that_the_launch_file_has_not_is_refused(words):
    with pytest.raises(UsageError) as caught:
        refuse_undeclared(words, "bimanual.launch.py", ("tasks", "safety", "robot"))
    assert str(caught.value) == (
        "unknown launch argument 'saftey': choose from robot, safety, tasks"
    )


@pytest.mark.parametrize(
    "words",
    [
        (*LAUNCH, "bench_tasks", "bimanual.launch.py", "tasks:=a:=b", "safety:=true"),
        (*LAUNCH, "lab", "all.launch.py", "cell_door:=shut"),
        (*LAUNCH, "lab", "all.launch.py", "file:=bimanual.launch.py"),
        ("python", "-m", "pytest"),
    ],
)
def test_arguments_that_are_declared_or_of_another_file_are_not(words):
    refuse_undeclared(words, "bimanual.launch.py", ("tasks", "safety"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pictures": "file/stills"}, "cannot write to .*file/stills: Not a directory"),
        ({"pictures": ""}, "pictures must be a folder, got ''"),
        ({"seeds": "two"}, "seeds must be a whole number, got 'two'"),
        ({"seed": "-1"}, "seed 0 or more, got 1 and -1"),
        ({"record": "maybe"}, "record must be true or false, got 'maybe'"),
        ({"memory": "rag:items=0"}, "items must be 1 or more, got 0"),
        ({"out": "file/out"}, "cannot write to .*file/out: Not a directory"),
        ({"probe": "conversations:mode=text,sessions=2,questions=50"},
         "probe conversations:.*: 2 sessions do not say enough for 50 questions"),
        ({"out": "played"}, "played/attacks-mode-text-1/full exists already: choose an"),
    ],
)
def test_what_is_wrong_with_a_memory_probe_is_said_before_anything_starts(
    tmp_path, ros_domain, monkeypatch, given, said
):
    (tmp_path / "file").touch()
    (tmp_path / "played" / "attacks-mode-text-1" / "full").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    defaults = {name: default for name, (default, _) in memory_args.ARGUMENTS.items()}
    defaults |= {"memory": "full", "out": "new"}
    if given.get("out") == "played":
        defaults |= {"probe": "attacks:mode=text", "seeds": "2"}
    with pytest.raises(UsageError, match=said):
        memory_args.read({**defaults, **given})
    assert not (tmp_path / "new").exists()
