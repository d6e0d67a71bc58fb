"""The check-up of a G1 finds each planted fault, names it, and finds none where there is none."""

import copy
import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench_tasks.errors import UsageError
from bench_tasks.robots import g1
from hardware.unitree import network
from hardware.unitree.checkup import check, check_seen
from hardware.unitree.guard import unsafe

CELL = {"interface": "eth0", "domain": 0, "hands": "rubber", "control": "arm_sdk"}
HEARD = {
    "cyclonedds": "0.10.2", "states": 2000, "rate_hz": 500.0, "gap_s": 0.006, "stalled_s": 0.003,
    "unusable": {}, "machines": [5], "ticks": list(range(100_000, 104_000, 2)), "hands": {},
    "q": g1.DEFAULT_RAD.tolist(), "quaternion": [1.0, 0.0, 0.0, 0.0], "mode": "ai",
    "round_trips_s": [0.002] * 8, "programs": 6,
    "writers": {"rt/lowstate": 1, "rt/lowcmd": 1, "rt/odommodestate": 1},
}  # fmt: skip


def wrong(cell=CELL, **changes):
    """What is found that is not well, of a robot that is healthy but for these."""
    found = check({**copy.deepcopy(HEARD), **changes}, {**CELL, **cell})
    return {name: said for name, ok, said, _ in found if not ok}


@pytest.mark.parametrize(
    ("cell", "changes"),
    [
        ({}, {}), ({}, {"machines": [15], "ticks": list(range(5, 5000, 5)), "rate_hz": 200.0}),
        ({"hands": "dex3"}, {"hands": {"left": 900, "right": 900}}),
        ({"control": "low"}, {"mode": ""}),
        ({}, {"ticks": [*range(90_000, 92_000, 2), *range(0, 2000, 2)]}),  # switched off and on
    ],
)  # fmt: skip
def test_no_false_alarm_on_a_healthy_robot(cell, changes):
    assert wrong(cell, **changes) == {}
    assert len(check({**HEARD, **changes}, {**CELL, **cell})) >= 10


NOBODY = {"states": 0, "rate_hz": 0.0, "gap_s": 0.0, "machines": [], "ticks": [], "q": []}


@pytest.mark.parametrize(
    ("cell", "changes", "name", "said"),
    [
        ({}, {"unsafe": unsafe("eth0", "11.0.1", "")}, "CycloneDDS", "11.0.1 makes programs with"),
        ({}, {"cannot": "cannot use interface 'eth0'"}, "CycloneDDS", "cannot use interface"),
        ({}, {**NOBODY, "programs": 0, "writers": {}}, "robot",
         "no rt/lowstate: nobody else is on interface eth0, domain 0"),
        ({}, {**NOBODY, "programs": 2, "writers": {}}, "robot", "none of which writes it"),
        ({}, NOBODY, "robot", "is announced, but none comes"),
        ({}, {**NOBODY, "unusable": {"a wrong checksum": 9}}, "robot", "9 with a wrong checksum"),
        ({}, {"writers": {"rt/lowstate": 2}}, "robot", "2 programs write rt/lowstate"),
        ({}, {"rate_hz": 80.0}, "heartbeat", "80 states a second"),
        ({}, {"gap_s": 0.08}, "heartbeat", "at most 80 ms without one"),
        ({}, {"gap_s": 0.08, "stalled_s": 0.07}, "heartbeat", "did not run the check-up for 70 ms"),
        ({}, {"unusable": {"a wrong checksum": 3}}, "messages", "3 with a wrong checksum"),
        ({}, {"round_trips_s": [0.06] * 8}, "latency", "60 ms there and back"),
        ({}, {"machines": [4]}, "mode_machine", "4: a G1 with 23 joints.*for 29 joints"),
        ({}, {"machines": [6]}, "mode_machine", "6: a G1 with 29 joints, its waist locked"),
        ({}, {"machines": [77]}, "mode_machine", "77 is not known"),
        ({}, {"machines": [4, 5]}, "mode_machine", "it changes"),
        ({}, {"mode": ""}, "control", "debug mode.*nobody keeps it on its feet"),
        ({}, {"mode": None, "round_trips_s": []}, "control", "is not known"),
        ({"control": "low"}, {}, "control", r"\(ai\) is active, and would fight with rt/lowcmd"),
        ({}, {"writers": {"rt/lowstate": 1, "rt/arm_sdk": 1}}, "commander", "1 more write rt/arm"),
        ({"hands": "dex3"}, {"hands": {"left": 9}}, "right hand", "right/state does not come"),
        ({}, {"hands": {"left": 9}}, "hands", "the cell says rubber, and a Dex3 hand is there"),
        ({}, {"q": np.where(np.arange(29) == 18, 2.4, g1.DEFAULT_RAD).tolist()}, "joints",
         "left_elbow_joint says 2.40 rad, its range is -1.05 to 2.09"),
    ],
)  # fmt: skip
def test_each_fault_is_found_and_named_and_nothing_else(cell, changes, name, said):
    found = wrong(cell, **changes)
    assert list(found) == [name], found
    assert re.search(said, found[name]), found


def test_a_robot_whose_states_go_out_unevenly_has_lost_none():
    """As a simulated one on a machine with other work: late, and then several at once."""
    rng, now, due, ticks = np.random.default_rng(1), 100.0, 100.0, []
    for _ in range(2000):
        due = max(due + 4.0, now - 20.0)
        now = max(now, due) + rng.exponential(0.5) + (rng.random() < 0.03) * rng.uniform(5, 15)
        ticks.append(int(now))
    assert wrong(ticks=ticks) == {}


@pytest.mark.parametrize(("share", "found"), [(0.02, False), (0.1, True), (0.5, True)])
def test_lost_messages_are_counted_by_the_robots_own_milliseconds(share, found):
    kept = np.random.default_rng(0).random(len(HEARD["ticks"])) >= share
    said = wrong(ticks=np.array(HEARD["ticks"])[kept].tolist()).get("messages", "")
    assert bool(said) == found
    if found:
        lost = float(re.search(r"([\d.]+) % lost", said)[1])
        assert lost == pytest.approx(100 * share, abs=2.0 if share < 0.2 else 4.0)


def turned(degrees, axis):
    return np.roll(Rotation.from_euler(axis, degrees, degrees=True).as_quat(), 1).tolist()


def test_a_pelvis_that_is_not_seen_or_lies_wrong_is_named():
    def seen(pelvis, upright=None, **cameras):
        return check_seen({"objects": {"pelvis": pelvis}, "cameras": cameras}, upright)

    (missing,) = seen("pelvis is not seen: nobody publishes the tf frame object/pelvis")
    assert not missing[1]
    assert missing[2] == "not seen: nobody publishes the tf frame object/pelvis"
    at = [0.0, 0.0, 0.2]
    leaning = turned(4.0, "y")
    # About the vertical tracker and robot need not agree, and a robot may lean.
    assert seen([*at, *turned(120.0, "z")], turned(10.0, "z"))[0][1]
    assert seen([*at, *leaning], leaning)[0][1]
    (tilted,) = seen([*at, *turned(90.0, "x")], leaning)
    assert not tilted[1] and "tilted by 1.5" in tilted[2]
    dark = "camera head: nothing has come on /cameras/head/image_raw/compressed"
    found = seen([*at, *leaning], leaning, head=dark, left_wrist="")
    assert [(name, ok) for name, ok, *_ in found] == [
        ("pelvis", True), ("camera head", False), ("camera left_wrist", True)
    ]  # fmt: skip
    assert found[1][2] == "nothing has come on /cameras/head/image_raw/compressed"


def test_what_this_machine_says_of_an_interface(tmp_path, monkeypatch):
    assert network.interface_fault("lo") == ""
    assert re.search(r"no interface nosuch0 \(there are .*lo", network.interface_fault("nosuch0"))
    (tmp_path / "eth7").mkdir()
    (tmp_path / "eth7/operstate").write_text("down\n")
    monkeypatch.setattr(network, "_NETWORK", tmp_path)
    assert "eth7 is down: no cable" in network.interface_fault("eth7")
    (tmp_path / "eth7/operstate").write_text("up\n")
    assert network.interface_fault("eth7") == "interface eth7 has no IPv4 address"


def test_settings_of_a_shell_that_do_not_go_with_the_robots_ros(tmp_path):
    file = tmp_path / "cyclonedds.xml"
    file.write_text("<NetworkInterface name='eth0'/>")
    right = {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", "CYCLONEDDS_URI": f"file://{file}"}
    assert network.ros_faults(right, 0) == []
    for change, said in (
        ({"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}, "RMW_IMPLEMENTATION is 'rmw_fastrtps_cpp'"),
        ({"CYCLONEDDS_URI": ""}, "names no network interface"),
        ({"CYCLONEDDS_URI": f"file://{file}.not"}, "No such file"),
        ({"ROS_DOMAIN_ID": "7"}, "ROS_DOMAIN_ID is 7, the cell's domain is 0"),
    ):
        (fault,) = network.ros_faults(right | change, 0)
        assert said in fault


@pytest.mark.parametrize("rmw", [{}, {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}])
def test_nodes_over_fast_dds_are_kept_out_of_the_robots_domain(rmw):
    assert "ROS 2 is in domain 0, the robot's own" in network.domain_fault(rmw, 0)
    assert network.domain_fault({**rmw, "ROS_DOMAIN_ID": "7"}, 0) == ""
    assert "domain 7" in network.domain_fault({**rmw, "ROS_DOMAIN_ID": "7"}, 7)
    assert network.domain_fault({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, 0) == ""


def test_a_python_that_cannot_listen_is_one_line(tmp_path):
    from bench_tasks.errors import BenchError

    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho a traceback >&2\necho no module cyclonedds >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(BenchError, match="cannot listen: no module cyclonedds"):
        network.hear(str(fake), {})


def test_the_doctor_takes_evidence_of_this_robot_only(tmp_path):
    from hardware.unitree.joints import read_evidence

    file = tmp_path / "seen.json"
    file.write_text(json.dumps({"format_version": 1, "arm": "middle", "looks": []}))
    with pytest.raises(UsageError, match="middle"):
        read_evidence(file)
    file.write_text(json.dumps({"format_version": 1, "arm": "left", "looks": [{"q": [0.0] * 14,
                                "seen": [0.0] * 7}]}))  # fmt: skip
    with pytest.raises(UsageError, match="must be a list of 17"):
        read_evidence(file)
