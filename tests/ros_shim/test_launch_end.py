"""How a launch ends: exit status, Ctrl-C, and nothing left behind."""

import signal
from pathlib import Path

import pytest

from tests.ros_shim.conftest import running, wait_for

STUBBORN = """
    return [
        sh("trap '' INT TERM; echo $$ > a; sleep 60 & echo $! > b; while :; do sleep 0.2; done"),
        sh("echo $$ > c; exec sleep 60"),
    ]
"""


def pids(folder: Path) -> list[int]:
    files = [folder / name for name in "abc"]
    wait_for(lambda: all(f.exists() and f.read_text().endswith("\n") for f in files))
    found = [int(f.read_text()) for f in files]
    assert all(map(running, found))
    return found


def test_ends_with_0_when_all_processes_have_ended(ros2):
    result = ros2.launch("return [say('one'), sh('sleep 0.3; echo two')]")
    assert result.status == 0
    assert "[say-1] one\n" in result.out
    assert "[sh-2] two\n" in result.out
    assert "[INFO] [sh-2]: process has finished cleanly" in result.out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_even_stubborn_processes_in_5_s(ros2, number, status):
    process = ros2.start("launch", ros2.file(STUBBORN))
    found = pids(ros2.folder)
    process.send_signal(number)
    result = ros2.finish(process)
    assert result.seconds < 5.0
    assert result.status == status
    assert not any(map(running, found))


def test_processes_that_listen_stop_at_once(ros2):
    process = ros2.start("launch", ros2.file("return [sh('echo $$ > a; exec sleep 60')]"))
    wait_for(lambda: (ros2.folder / "a").exists())
    process.send_signal(signal.SIGINT)
    assert ros2.finish(process).seconds < 1.5


def test_killing_ros2_itself_leaves_no_process(ros2):
    process = ros2.start("launch", ros2.file("return [sh('echo $$ > a; exec sleep 60')]"))
    file = ros2.folder / "a"
    wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
    process.kill()
    wait_for(lambda: not running(int(file.read_text())), 5.0)


def test_dead_node_ends_the_launch_with_its_status(ros2):
    result = ros2.launch("""
        return [sh("sleep 0.3; exit 7", on_exit=[Shutdown(reason="it died")]),
                sh("echo $$ > other; exec sleep 60")]
    """)
    assert result.status == 7
    assert "exit code 7" in result.out
    assert "shutting down: it died" in result.out
    assert not running(int((ros2.folder / "other").read_text()))


def test_process_killed_by_a_signal_counts_as_128_plus_it(ros2):
    assert ros2.launch("return [sh('kill -9 $$', on_exit=Shutdown())]").status == 137


def test_clean_exit_with_shutdown_ends_with_0(ros2):
    result = ros2.launch("return [sh('exit 0', on_exit=Shutdown()), sh('exec sleep 60')]")
    assert result.status == 0
    assert result.seconds < 5


def test_failure_without_shutdown_lets_the_others_finish(ros2):
    result = ros2.launch("return [sh('exit 3'), sh('sleep 0.5; echo done'), sh('sleep 1; exit 4')]")
    assert "[sh-2] done" in result.out
    assert result.status == 3


def test_what_a_process_leaves_behind_is_ended(ros2):
    result = ros2.launch("return [sh('sleep 60 & echo $! > a')]")
    assert result.status == 0
    assert not running(int((ros2.folder / "a").read_text()))


def test_mistake_found_while_starting_stops_what_runs(ros2):
    result = ros2.launch("""
        return [sh("echo $$ > a; exec sleep 60"), sh("sleep 0.5", on_exit=[
            ExecuteProcess(cmd=["no_such_program"])])]
    """)
    assert result.status == 2
    assert "cannot start no_such_program" in result.out
    assert not running(int((ros2.folder / "a").read_text()))


def test_output_still_flows_when_nobody_reads(ros2):
    process = ros2.start("launch", ros2.file("return [sh('seq 100000; echo $$ > a; exit 5')]"))
    process.stdout.close()
    wait_for(lambda: process.poll() is not None, 15.0)
    assert (ros2.folder / "a").exists()
    assert process.returncode == 5


@pytest.mark.slow
def test_twenty_launches_in_a_row(ros2):
    path = ros2.file("""
        return [sh("echo $$ >> a; sleep 0.1", on_exit=Shutdown()), sh("exec sleep 60")]
    """)
    for _ in range(20):
        assert ros2("launch", path).status == 0
    assert not any(running(int(pid)) for pid in (ros2.folder / "a").read_text().split())


def test_environment_reaches_the_processes(ros2):
    result = ros2.launch(
        "return [sh('echo $ROS_DOMAIN_ID $ROS_AUTOMATIC_DISCOVERY_RANGE')]",
        ROS_DOMAIN_ID="42", ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
    )
    assert "[sh-1] 42 LOCALHOST\n" in result.out
