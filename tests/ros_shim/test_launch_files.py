"""What a launch file can say, and what a mistake in it prints."""

import subprocess
import sys

import pytest

from tests.ros_shim.conftest import ROOT, ROS2

ARGUMENT = "DeclareLaunchArgument('speed', default_value='slow', choices=['slow', 'fast'])"


def words(result, name="say"):
    """What the processes called `name` printed, in order."""
    lines = [line for line in result.out.splitlines() if line.startswith(f"[{name}-")]
    return [line.split("] ", 1)[1] for line in lines]


@pytest.mark.parametrize(("given", "want"), [((), ["slow"]), (("speed:=fast",), ["fast"])])
def test_argument_and_default(ros2, given, want):
    result = ros2.launch(f"return [{ARGUMENT}, say(LaunchConfiguration('speed'))]", *given)
    assert (result.status, words(result)) == (0, want)


@pytest.mark.parametrize(("value", "want"), [("true", "if"), ("False", "unless"), ("1", "if")])
def test_conditions(ros2, value, want):
    result = ros2.launch("""
        flag = LaunchConfiguration("flag")
        return [DeclareLaunchArgument("flag"), say("if", condition=IfCondition(flag)),
                say("unless", condition=UnlessCondition(flag))]
    """, f"flag:={value}")
    assert words(result) == [want]


def test_substitutions(ros2):
    result = ros2.launch("""
        x = LaunchConfiguration("x")
        return [DeclareLaunchArgument("x", default_value="4"),
                say(PathJoinSubstitution(["/a", x, ["b", x, ".txt"]])),
                say(PythonExpression(["2 * ", x, " + 1"])),
                say([TextSubstitution(text="<"), EnvironmentVariable("WHO"), ">"]),
                say(LaunchConfiguration("y", default="none"))]
    """, WHO="me")
    assert sorted(words(result)) == ["/a/4/b4.txt", "9", "<me>", "none"]


def test_include_passes_arguments(ros2):
    ros2.file(f"return [{ARGUMENT}, say(['inner ', LaunchConfiguration('speed')])]", "in.launch.py")
    result = ros2.launch("""
        return [IncludeLaunchDescription(
            PythonLaunchDescriptionSource("in.launch.py"),
            launch_arguments={"speed": "fast"}.items())]
    """)
    assert (result.status, words(result)) == (0, ["inner fast"])


def test_arguments_of_an_included_file_can_be_given(ros2):
    ros2.file(f"return [{ARGUMENT}, say(LaunchConfiguration('speed'))]", "in.launch.py")
    body = "return [IncludeLaunchDescription(PythonLaunchDescriptionSource('in.launch.py'))]"
    assert words(ros2.launch(body, "speed:=fast")) == ["fast"]


def test_group_has_a_scope(ros2):
    result = ros2.launch("""
        x = LaunchConfiguration("x")
        return [SetLaunchConfiguration("x", "outer"),
                GroupAction([SetLaunchConfiguration("x", "inner"),
                             SetEnvironmentVariable("V", "set"),
                             sh(["echo in ", x, " $V"])]),
                sh(["echo out ", x, " $V"]),
                GroupAction([sh("echo never")], condition=IfCondition("false"))]
    """, V="unset")
    assert sorted(words(result, "sh")) == ["in inner set", "out outer unset"]


def test_opaque_function_and_additional_env(ros2):
    result = ros2.launch("""
        def pick(context, prefix):
            import os
            n = int(LaunchConfiguration("n").perform(context))
            os.environ["F"] = "f"
            return [sh(f"echo {prefix}{i} $E$F", additional_env={"E": "e"}) for i in range(n)]
        return [DeclareLaunchArgument("n"), OpaqueFunction(function=pick, args=["p"])]
    """, "n:=2")
    assert sorted(words(result, "sh")) == ["p0 ef", "p1 ef"]


def test_event_handlers_run_in_turn(ros2):
    result = ros2.launch("""
        first = sh("sleep 0.2; echo first")
        def told(event, context):
            return [say(f"ended {event.returncode}"), *second]
        second = [sh("echo second; exit 0", on_exit=[Shutdown()])]
        return [sh("exec sleep 60", name="other"), first,
                RegisterEventHandler(OnProcessExit(target_action=first, on_exit=told)),
                RegisterEventHandler(OnShutdown(on_shutdown=[LogInfo(msg="the end")]))]
    """)
    assert result.status == 0
    assert words(result, "sh") == ["first", "second"]
    assert words(result) == ["ended 0"]
    assert "the end" in result.out


def test_timer_and_emitted_shutdown(ros2):
    result = ros2.launch("""
        return [sh("exec sleep 60"), TimerAction(period=0.3, actions=[say("late")]),
                TimerAction(period="0.8", actions=[EmitEvent(event=events.Shutdown(reason="x"))]),
                TimerAction(period=30.0, actions=[say("never")])]
    """)
    assert (result.status, words(result)) == (0, ["late"])
    assert 0.8 <= result.seconds < 5


def test_output_log_goes_to_a_file(ros2):
    result = ros2.launch("return [sh('echo quiet; echo loud >&2', output='log')]")
    assert words(result, "sh") == ["loud"]
    (log,) = (ros2.folder / "log").glob("launch-*.log")
    assert sorted(log.read_text().splitlines()) == ["[sh-1] loud", "[sh-1] quiet"]


def test_show_args(ros2):
    result = ros2.launch(f"""
        return [{ARGUMENT}, DeclareLaunchArgument("out", description="where to")]
    """, "-s")
    assert result.status == 0
    for piece in ("'speed'", "valid choices: slow, fast", "(default: 'slow')", "where to",
                  "(required)"):
        assert piece in result.out
    assert "process started" not in result.out


@pytest.mark.parametrize(("body", "given", "pieces"), [
    (f"return [{ARGUMENT}]", ["sped:=fast"], ["sped", "known: speed"]),
    (f"return [{ARGUMENT}]", ["speed:=9"], ["speed:=9", "slow, fast"]),
    (f"return [{ARGUMENT}]", ["fast"], ["'fast'", "name:=value"]),
    ("return [DeclareLaunchArgument('out')]", [], ["out", "required"]),
    ("return [say('x', condition=IfCondition('maybe'))]", [], ["maybe", "true, false"]),
    ("return [say(LaunchConfiguration('nothing'))]", [], ["nothing", "not set"]),
    ("return [Node(package='no_pack', executable='x')]", [], ["no_pack", "bench_tasks"]),
    ("return [Node(package='bench_tasks', executable='x')]", [], ["'x'", "world_node"]),
    ("return [ExecuteProcess(cmd=['no_such_program'])]", [], ["no_such_program", "No such file"]),
    ("return [IncludeLaunchDescription('gone.launch.py')]", [], ["gone.launch.py"]),
    ("return [sh('true', output='file')]", [], ["'file'", "screen, log, both"]),
    ("return [undefined]", [], ["test.launch.py", "undefined"]),
    ("return [", [], ["test.launch.py", "SyntaxError"]),
])
def test_mistakes_print_one_line_and_end_with_2(ros2, body, given, pieces):
    result = ros2.launch(body, *given)
    assert result.status == 2
    assert len(result.err.strip().splitlines()) == 1
    for piece in pieces:
        assert piece in result.err


@pytest.mark.parametrize(("command", "pieces"), [
    (["launch", "no_pack", "x.launch.py"], ["no_pack", "bench_tasks"]),
    (["launch", "bench_tasks", "no.launch.py"], ["no.launch.py", "it has: "]),
    (["launch", "./no.launch.py"], ["no.launch.py", "does not exist"]),
    (["run", "bench_tasks", "no_node"], ["no_node", "world_node"]),
])
def test_unknown_names_print_one_line_and_end_with_2(ros2, command, pieces):
    result = ros2(*command)
    assert result.status == 2
    assert len(result.err.strip().splitlines()) == 1
    for piece in pieces:
        assert piece in result.err


def test_run_becomes_the_executable(ros2):
    result = ros2("run", "bench_tasks", "bench_tasks", "--help")
    assert result.status == 0
    assert "usage" in result.out.lower()


def test_folder_named_launch_in_the_working_directory_does_not_hide_the_module():
    """The root of this repository has one, with the launch files."""
    code = "import launch, launch.actions; print(launch.LaunchDescription.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "launch.entity\n"
    assert subprocess.run([ROS2, "launch", "-h"], cwd=ROOT, capture_output=True).returncode == 0


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_after_the_file_shows_its_arguments(ros2, flag):
    result = ros2.launch(f"return [{ARGUMENT}, say('started')]", flag)
    assert result.status == 0
    assert "--show-args" in result.out and "'speed'" in result.out
    assert "started" not in result.out
