"""Recordings that tell nothing of a robot's joints are refused in one line that says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made import scene, state

from bench_tasks.bags.recording import BagSink
from bench_tasks.cli import main
from bench_tasks.errors import UsageError
from bench_tasks.excitation import Fit, read_excitation
from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import Dynamics

COUNT = 301
"""States of 6 s."""
PARTS = tuple(f"{a}_{p}" for a in ("left", "right") for p in ("arm", "finger1", "finger2"))


def motion() -> list:
    """States of arms that all swing by 0.2 rad and are one period late, touching nothing."""
    at = np.arange(COUNT)
    found = []
    for k in at:
        told, reached = (0.1 * np.sin(0.1 * (k - late) + np.arange(14)) for late in (0, 1))
        command = embodiments.with_openings(told, 0.08)
        found.append(replace(state(int(k), contacts=0), joint_position=reached, command=command))
    return found


def recorded(folder, states=None, about=None):
    sink = BagSink(folder, {"task": "made_lift", "seed": 7})
    sink.scene(about or replace(scene(), entities=("block", "table", *PARTS)))
    for one in motion() if states is None else states:
        sink.state(one)
    sink.writer.close("complete")
    return folder


def refused(folder, **given) -> str:
    with pytest.raises(UsageError) as error:
        read_excitation(recorded(folder / "bag", **given))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_good_one_is_read(tmp_path):
    told = read_excitation(recorded(tmp_path / "bag"))
    assert told.name == "made_lift seed 7"
    np.testing.assert_allclose(told.time_s, 0.02 * np.arange(COUNT))
    np.testing.assert_allclose(told.measured[1:], told.command[:-1])
    assert told.command.shape == (COUNT, 14)
    assert np.ptp(told.command, axis=0) == pytest.approx(0.2, abs=0.01)


def stopped(k: int) -> list:
    states = motion()
    for one in states:
        one.joint_position[k] *= 0.1
    return states


def touching() -> list:
    states = motion()
    pair = np.array([[1, 2]], np.uint16)
    states[50] = replace(states[50], contact_pair=pair, contact_force=np.ones(1))
    return states


def touching_nobody() -> list:
    states = touching()
    states[50].contact_pair[0, 0] = 99
    return states


def with_a_joint_more() -> list:
    states, more = motion(), np.zeros(15)
    states[9] = replace(states[9], joint_position=more, joint_velocity=more, joint_effort=more)
    return states


def still(k: int) -> list:
    return [
        replace(one, command=np.where(np.arange(16) == k, 0.3, one.command)) for one in motion()
    ]


def unknown_position() -> list:
    states = motion()
    states[7].joint_position[3] = np.nan
    return states


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (lambda: motion()[:200], "too short: 4.0 s of the 5 s that are needed; record with"),
        (lambda: motion()[:1], "too short: 0.0 s"),
        (lambda: [], "has no states"),
        (lambda: motion()[:100] + motion()[110:], "has a gap in its states after state 99"),
        (lambda: still(9), "right_fr3_joint2 is told to move by 0.000 rad only"),
        (lambda: stopped(4), "left_fr3_joint5 was told to move by 0.200 rad and went"),
        (touching, "table touches left_arm at 1.00 s"),
        (touching_nobody, "a contact of state 50 names no entity"),
        (with_a_joint_more, "state 9 has 16 commands and 15 joints, not those of fr3_pair"),
        (unknown_position, "a joint position of state 7 is not a finite number"),
        (lambda: [replace(one, stamp_ns=0) for one in motion()], "stamps of its states do not"),
    ],
)
def test_what_is_wrong_with_others_is_said(tmp_path, states, said):
    assert said in refused(tmp_path, states=states())


def test_another_robot_is_named(tmp_path):
    assert "is of robot g1: only fr3_pair" in refused(
        tmp_path, about=replace(scene(), embodiment="g1")
    )
    other = replace(scene(), joint_names=scene().joint_names[::-1])
    assert "only fr3_pair" in refused(tmp_path / "again", about=other)


def test_a_touch_of_others_is_nobody_s_business(tmp_path):
    states = motion()
    pair = np.array([[0, 1]], np.uint16)
    states[50] = replace(states[50], contact_pair=pair, contact_force=np.ones(1))
    read_excitation(recorded(tmp_path / "bag", states=states))


def test_one_recording_is_asked_for(tmp_path, capsys):
    recorded(tmp_path / "a")
    recorded(tmp_path / "b")
    assert main(["sysid", str(tmp_path), "--out", str(tmp_path / "x.yaml")]) == 2
    assert "holds 2 recordings: name one" in capsys.readouterr().err
    assert main(["sysid", str(tmp_path / "a"), "--out", str(tmp_path / "x.txt")]) == 2
    assert "--out must end with .yaml" in capsys.readouterr().err
    assert main(["sysid", str(tmp_path / "none"), "--out", str(tmp_path / "x.yaml")]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert not (tmp_path / "x.yaml").exists()


def test_the_table_says_what_was_found():
    ones = np.ones(14)
    found = Dynamics(3000 * ones, 30 * ones, 0.5 * ones, -0.002 * ones, np.array([0.01, 0.02]))
    error = Dynamics(10 * ones, 0.1 * ones, 0.01 * ones, 1e-5 * ones, np.array([1e-4, 2e-4]))
    fit = Fit(found, error, found, 0.01 * ones, 0.001 * ones, ("delay of the left arm",),
              (0.02 * ones, 0.002 * ones))  # fmt: skip
    rows = fit.table().splitlines()
    assert rows[2] == ("| left_fr3_joint1 | 3000 ± 20 | 30.0 ± 0.2 | 0.500 ± 0.020 "
                       "| -2.000 ± 0.020 | 10.000 | 1.000 | 20.000 | 2.000 |")  # fmt: skip
    assert "Delay: left 10.00 ± 0.20 ms, right 20.00 ± 0.39 ms." in rows
    assert rows[-1] == "At the end of its range: delay of the left arm."


def made_fit(after: np.ndarray) -> Fit:
    ones = np.ones(14)
    some = Dynamics(ones, ones, np.zeros(14), ones, np.array([0.0, 0.02]))
    error = Dynamics(ones, ones, np.zeros(14), ones, np.array([0.0, 1e-3]))
    return Fit(some, error, some, 0.01 * ones, after)


def test_what_is_at_the_end_of_its_range_has_no_interval():
    rows = made_fit(0.001 * np.ones(14)).table().splitlines()
    assert rows[2].startswith("| left_fr3_joint1 | 1 ± 2 | 1.0 ± 2.0 | 0.000 (end of range) | 1000")
    assert rows[-1] == "Delay: left 0.00 (end of range) ms, right 20.00 ± 1.96 ms."


def test_a_joint_that_the_fit_left_behind_is_named():
    after = 0.001 * np.ones(14)
    assert made_fit(after).doubtful == ()
    after[3], after[9] = 0.0031, 0.0029
    assert made_fit(after).doubtful == ("left_fr3_joint4",)
    assert "no nearer than before: left_fr3_joint4; " in made_fit(after).table()
    assert made_fit(after).to_dict()["doubtful"] == ["left_fr3_joint4"]
    assert len(made_fit(0.01 * np.ones(14)).doubtful) == 14
    # What is this small is noise.
    assert made_fit(1e-6 * np.arange(14)).doubtful == ()


def test_no_other_file_is_overwritten_and_nothing_is_fitted_in_vain(tmp_path, capsys, monkeypatch):
    from bench_tasks import runner

    fitted = []
    monkeypatch.setattr(
        runner, "identified", lambda *a: fitted.append(a) or made_fit(0.001 * np.ones(14))
    )
    bag, out = recorded(tmp_path / "bag"), tmp_path / "notes.yaml"
    page = out.with_suffix(".md")
    page.write_text("# My notes\n")
    assert main(["sysid", str(bag), "--out", str(out)]) == 2
    assert "notes.md is no report of sysid" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["sysid", str(bag), "--out", str(tmp_path / "file" / "x.yaml")]) == 2
    assert fitted == [] and not out.exists() and page.read_text() == "# My notes\n"
    page.unlink()
    out.write_text("limits: mine\n")
    assert main(["sysid", str(bag), "--out", str(out)]) == 2
    assert "notes.yaml is no file of sysid and would be overwritten" in capsys.readouterr().err
    assert len(fitted) == 0 and out.read_text() == "limits: mine\n"
    out.unlink()
    for _ in range(2):
        assert main(["sysid", str(bag), "--out", str(out)]) == 0
    assert len(fitted) == 2 and page.read_text().startswith("# Dynamics of a robot")
