"""The check-up of a cell finds each planted fault, names it, and finds none where there is none."""

import json
import re
import socket
import threading

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from bench_tasks.errors import UsageError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS
from hardware.franka import computer, reach
from hardware.franka.calibration import Evidence, Mount, read_calibration, read_evidence
from hardware.franka.cell import read_cell
from hardware.franka.checkup import check

HEAD = np.array([0.05, -0.08, 0.75, 0.25, -0.68, 0.66, -0.2])
WRIST = np.array([0.05, -0.02, -0.06, 0.98, 0.05, -0.1, 0.15])
for _pose in (HEAD, WRIST):
    _pose[3:] /= np.linalg.norm(_pose[3:])
GRIP_M = 0.02
MARKER = np.array([0.01, 0.0, 0.03, 0.5, 0.5, 0.5, 0.5])
ON_TABLE = np.array([0.5, 0.1, 0.0, 0.8, 0.0, 0.0, 0.6])
NOISE_M, NOISE_RAD = 0.001, 0.004


def look(arm="left", camera="head", mount=None, seed=0, count=12, turn=0.5):
    """What a healthy cell's camera sees of a marker, as a tracker with some noise says it."""
    rng = np.random.default_rng(seed)
    mount = mount or Mount("world", HEAD)
    k, q, seen = ARMS.index(arm), np.tile(np.tile(HOME_RAD, 2), (count, 1)), []
    q[:, 7 * k : 7 * k + 7] += rng.uniform(-turn, turn, (count, 7))
    for row in q:
        hand = dual_arm().forward(arm, row[7 * k : 7 * k + 7])
        if mount.parent == "world":
            pose = compose(invert(mount.pose), compose(hand, MARKER))
        else:
            pose = compose(invert(compose(hand, mount.pose)), ON_TABLE)
        off = Rotation.from_rotvec(rng.normal(0, NOISE_RAD, 3)).as_quat()
        seen.append(compose(pose, [*rng.normal(0, NOISE_M, 3), *np.roll(off, 1)]))
    held = mount.parent == "world"
    opening = np.full((count, 2), 0.08)
    opening[:, k] = GRIP_M if held else 0.08
    return Evidence(f"{camera}.json", camera, arm, GRIP_M if held else 0.0, q, opening,
                    np.array(seen))  # fmt: skip


def changed(evidence, **parts):
    return Evidence(**{**vars(evidence), **parts})


def wrong(mounts, *evidence):
    """What is found that is not well."""
    return [found for _, ok, found, _ in check(mounts, evidence) if not ok]


WELL = {"head": Mount("world", HEAD), "left_wrist": Mount("left", WRIST)}


@pytest.mark.parametrize("seed", range(5))
def test_no_false_alarm_on_a_healthy_cell(seed):
    looks = [look(arm, seed=10 * seed + k) for k, arm in enumerate(ARMS)]
    wrist = look("left", "left_wrist", WELL["left_wrist"], seed=100 + seed)
    assert wrong(WELL, *looks, wrist) == []
    assert len(check(WELL, [*looks, wrist])) == 3 + 2 * 2


def flip(pose, *places):
    found = pose.copy()
    found[list(places)] *= -1
    return found


def moved(pose, metres, turn):
    off = Rotation.from_rotvec([0, turn, 0]).as_quat()
    return compose(pose, [metres, 0, 0, *np.roll(off, 1)])


@pytest.mark.parametrize(
    ("pose", "said"),
    [
        (flip(HEAD, 1), "its y has the wrong sign"),
        (flip(HEAD, 2), "its z has the wrong sign"),
        (flip(HEAD, 4), "its qx has the wrong sign"),
        (flip(HEAD, 3), "its qw has the wrong sign"),
        (np.append(HEAD[:3], np.roll(HEAD[3:], -1)), "its quaternion is written x, y, z, w"),
        (invert(HEAD), "its transform is the other way round"),
        (moved(HEAD, 0.04, 0.0), "it is 0.04. m and 0.0. rad away .* it has moved"),
        (moved(HEAD, 0.0, 0.06), "it is 0.00. m and 0.06 rad away .* it has moved"),
    ],
)
def test_a_calibration_that_is_not_true_is_found_and_named(pose, said):
    found = check({"head": Mount("world", pose)}, [look()])
    (bad,) = [item for item in found if not item[1]]
    assert re.search(said, bad[2]), bad
    # And the way to mend it is the truth.
    numbers = [float(v) for v in re.findall(r"-?\d+\.\d+", bad[3].split("pose:")[1])]
    sign = np.sign(numbers[3] * HEAD[3])
    np.testing.assert_allclose(numbers[:3], HEAD[:3], atol=0.01)
    np.testing.assert_allclose(sign * np.array(numbers[3:]), HEAD[3:], atol=0.02)


@pytest.mark.parametrize("arm", ARMS)
def test_swapped_arms_are_found(arm):
    seen = look(arm)
    swapped = changed(seen, q=np.roll(seen.q, 7, axis=1))
    (found,) = wrong(WELL, swapped)
    assert "left and right are swapped" in found


def test_swapped_wrist_cameras_are_found():
    seen = look("left", "left_wrist", WELL["left_wrist"])
    (found,) = wrong(WELL, changed(seen, q=np.roll(seen.q, 7, axis=1)))
    assert "left and right are swapped" in found


@pytest.mark.parametrize("joint", range(7))
def test_a_joint_with_the_wrong_sign_is_found(joint):
    seen = look("right", seed=joint)
    q = seen.q.copy()
    q[:, 7 + joint] *= -1
    (found,) = wrong(WELL, changed(seen, q=q))
    assert f"joint {joint + 1} of the right arm" in found and "wrong sign" in found


def test_a_camera_or_marker_that_is_loose_is_found():
    seen = look()
    loose = np.array([moved(pose, 0.03 * (k % 3), 0.0) for k, pose in enumerate(seen.seen)])
    (found,) = wrong(WELL, changed(seen, seen=loose))
    assert "does not agree with the joints of the left arm wherever it is" in found


@pytest.mark.parametrize(
    ("hand", "opening", "said"),
    [
        (0, 0.08 - GRIP_M, "it says 60 mm and is 20 mm open: its range is inverted"),
        (1, 0.0, "it says 0 mm and is 80 mm open: its range is inverted"),
        (0, 20.0, "it says 20 m: that is millimetres"),
        (1, 0.05, "it says 50 mm and is 80 mm open"),
    ],
)
def test_a_hand_that_says_what_is_not_so_is_found(hand, opening, said):
    seen = look()
    said_opening = seen.opening.copy()
    said_opening[:, hand] = opening
    (found,) = wrong(WELL, changed(seen, opening=said_opening))
    assert found == said
    half = changed(seen, grip_m=0.04, opening=np.tile([0.04, 0.08], (len(seen.q), 1)))
    assert "grip something else" in wrong(WELL, half)[0]


def test_too_little_is_not_taken_for_enough():
    assert "7 looks are too few" in wrong(WELL, look(count=7))[0]
    assert "differ too little" in wrong(WELL, look(turn=0.02))[0]
    assert "no such camera: it has head, left_wrist" in wrong(WELL, look(camera="nose"))[0]
    seen = look("right", "left_wrist", Mount("right", WRIST))
    assert wrong(WELL, seen) == ["it sits on the left arm, and the right arm moved"]


def written(evidence):
    return {
        "format_version": 1, "camera": evidence.camera, "arm": evidence.arm,
        "grip_m": evidence.grip_m,
        "looks": [{"q": list(q), "opening": list(o), "seen": list(s)}
                  for q, o, s in zip(evidence.q, evidence.opening, evidence.seen, strict=True)],
    }  # fmt: skip


def test_files_come_back_as_they_were_and_what_is_wrong_in_them_is_one_line(tmp_path):
    seen, file, cal = look(), tmp_path / "head.json", tmp_path / "calibration.yaml"
    file.write_text(json.dumps(written(seen)))
    read = read_evidence(file)
    np.testing.assert_allclose(read.q, seen.q)
    np.testing.assert_allclose(read.seen, seen.seen)
    raw = {"format_version": 1, "cameras": {"head": {"parent": "world", "pose": HEAD.tolist()}}}
    cal.write_text(yaml.safe_dump(raw))
    assert wrong(read_calibration(cal), read) == []
    for text, said in [
        ("{", "Expecting"), ("{}", "format_version is missing"),
        (json.dumps({**written(seen), "arm": "middle"}), "unknown arm 'middle'"),
        (json.dumps({**written(seen), "format_version": 9}), "format_version must be 1, got 9"),
    ]:  # fmt: skip
        file.write_text(text)
        with pytest.raises(UsageError, match=said) as caught:
            read_evidence(file)
        assert "\n" not in str(caught.value) and "head.json" in str(caught.value)
    cal.write_text(yaml.safe_dump({**raw, "format_version": 9}))
    with pytest.raises(UsageError, match="calibration.yaml: format_version must be 1, got 9"):
        read_calibration(cal)
    raw["cameras"]["head"]["pose"][3] = 3.0
    cal.write_text(yaml.safe_dump(raw))
    with pytest.raises(UsageError, match=r"cameras.head.pose must end in a unit quaternion, got"):
        read_calibration(cal)
    with pytest.raises(UsageError, match="cannot read"):
        read_calibration(tmp_path / "none.yaml")


class Boxes:
    """Control boxes: (arm, what) -> the socket that takes connections there."""

    def __init__(self, monkeypatch):
        self.cell = read_cell("standin")
        self.cell.raw["addresses"] = {"left": "127.0.7.1", "right": "127.0.7.2"}
        self.up, ports = {}, {}
        for arm, address in self.cell.raw["addresses"].items():
            for what in ("arm", "hand"):
                self.up[arm, what] = end = socket.socket()
                end.bind((address, ports.get(what, 0)))  # the same port at both addresses
                end.listen(100)  # nobody takes them up
                ports[what] = end.getsockname()[1]
        monkeypatch.setattr(reach, "PORTS", ports)

    def wrong(self):
        """What is found that is not well: name -> (what, what to do)."""
        found = reach.check_reach(self.cell)
        return {name: (what, remedy) for name, ok, what, remedy in found if not ok}


@pytest.fixture
def boxes(monkeypatch):
    made = Boxes(monkeypatch)
    yield made
    for end in made.up.values():
        end.close()


def test_control_boxes_that_answer_are_well_and_those_that_do_not_are_named(boxes):
    assert boxes.wrong() == {}
    assert len(reach.check_reach(boxes.cell)) == 4
    boxes.cell.raw["addresses"]["right"] = "127.0.7.3"
    assert list(boxes.wrong()) == ["right arm"], "and not its hand as well"
    what, remedy = boxes.wrong()["right arm"]
    assert f"does not answer at 127.0.7.3, port {reach.PORTS['arm']}: Connection refused" in what
    assert "start the stand-in" in remedy
    boxes.cell.raw["simulated"] = False
    assert "activate FCI in Desk" in boxes.wrong()["right arm"][1]
    boxes.cell.raw["addresses"]["right"] = "no-such-box.invalid"
    assert "cable and the address" in boxes.wrong()["right arm"][1]
    boxes.cell.raw["addresses"]["right"] = "127.0.7.2"
    boxes.up["left", "hand"].close()
    assert list(boxes.wrong()) == ["left hand"]
    assert "Franka Hand" in boxes.wrong()["left hand"][1]


def test_a_computer_that_cannot_keep_time_is_named_where_the_cell_insists(tmp_path, monkeypatch):
    cell = read_cell("cell")
    monkeypatch.setattr(computer.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(computer.resource, "getrlimit", lambda _: (0, 0))

    def wrong():
        found = computer.check_computer(cell, tmp_path / "realtime")
        return {name: remedy for name, ok, _, remedy in found if not ok}

    assert list(wrong()) == ["kernel", "priority"] and "limits.d" in wrong()["priority"]
    (tmp_path / "realtime").write_text("1\n")
    monkeypatch.setattr(computer.resource, "getrlimit", lambda _: (99, 99))
    assert wrong() == {} and len(computer.check_computer(cell, tmp_path / "realtime")) == 2
    cell.raw["arms"]["realtime"] = "ignore"
    assert computer.check_computer(cell, tmp_path / "none") == []


def test_two_names_of_one_control_box_are_found(boxes, monkeypatch):
    known = {"left.lab": "127.0.7.1", "right.lab": "127.0.7.1"}
    connect = socket.create_connection
    monkeypatch.setattr(
        socket, "create_connection", lambda at, limit: connect((known[at[0]], at[1]), limit)
    )
    boxes.cell.raw["addresses"] = {"left": "left.lab", "right": "right.lab"}
    assert boxes.wrong() == {
        "addresses": ("left.lab and right.lab are the same control box, 127.0.7.1",
                      "correct addresses in the cell")
    }  # fmt: skip


def test_a_control_box_that_says_nothing_takes_no_longer_than_the_limit(boxes, monkeypatch):
    monkeypatch.setattr(reach, "CONNECT_S", 0.1)
    over = threading.Event()

    def look_up(*_):  # a name
        over.wait()
        raise OSError

    monkeypatch.setattr(socket, "create_connection", look_up)
    found = boxes.wrong()
    over.set()
    assert list(found) == ["left arm", "right arm"]
    assert "nothing came within 0.1 s" in found["left arm"][0]


def test_the_doctor_says_what_the_evidence_shows(tmp_path, capsys, boxes):
    from bench_tasks.cli import main

    raw = boxes.cell.raw
    raw["python"] = __file__  # any file that is there
    cell, cal = tmp_path / "mine.yaml", tmp_path / "calibration.yaml"
    head = {"parent": "world", "pose": HEAD.tolist()}

    def doctor(*seen):
        cell.write_text(yaml.safe_dump(raw))
        cal.write_text(yaml.safe_dump({"format_version": 1, "cameras": {"head": head}}))
        status = main(["doctor", "--robot", "franka", "--cell", str(cell), "--seen", *seen])
        return status, capsys.readouterr().out

    status, said = doctor()
    assert status == 0 and "note  calibration: of no camera" in said
    assert "ok    left arm: its control box takes connections at 127.0.7.1, port" in said
    assert "note  left and right, cameras, hands: not looked at" in said
    raw["calibration"], file = cal.name, tmp_path / "left.json"
    file.write_text(json.dumps(written(look())))
    status, said = doctor(str(file))
    assert status == 0 and "ok    camera head (left.json): where the calibration has it" in said
    assert "ok    left hand (left.json)" in said and "FAIL" not in said
    head["pose"][1] *= -1
    status, said = doctor(str(file))
    assert status == 1 and "FAIL  camera head (left.json): in the calibration its y has the" in said
    assert main(["doctor", "--robot", "franka", "--policy", "x"]) == 2
