"""Simulated results beside real ones: paired by task and agents, unscored episodes kept apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made import scene

from bench_tasks.bags.recording import BagSink
from bench_tasks.cli import main
from bench_tasks.errors import UsageError
from bench_tasks.reports.outcome import results_table
from bench_tasks.reports.paired import Side, compare, results_of
from bench_tasks.reports.paired_page import page, text
from bench_tasks.reports.report import page as report
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.vocabulary import Event

GOLDEN = Path(__file__).parent / "golden"


def episodes(
    task: str, successes: int, failures: int = 0, unscored: int = 0, policy: str = "skills",
    version: int = 1,
) -> list[EpisodeScore]:  # fmt: skip
    """That many of each, of one task and policy."""
    kinds = [(True, True)] * successes + [(False, True)] * failures + [(False, False)] * unscored
    return [
        EpisodeScore(
            task, seed, success, float(success), "" if success else "time limit", "", "", None,
            1.0, planner="expert", policy=policy, scored=scored, task_version=version,
        )
        for seed, (success, scored) in enumerate(kinds)
    ]  # fmt: skip


SIM = [
    *episodes("lift_pot", 2, 8), *episodes("grab_roller", 5, 5),
    *episodes("stack_bowls_three", 8, 2), *episodes("carry_tray", 1),
]  # fmt: skip
REAL = [
    *episodes("lift_pot", 1, 9), *episodes("grab_roller", 6, 4, unscored=10),
    *episodes("stack_bowls_three", 4, 6), *episodes("hanging_mug", 1),
]  # fmt: skip


def test_pairs_by_hand():
    found = compare(SIM, REAL)
    assert [pair.task for pair in found.pairs] == ["grab_roller", "lift_pot", "stack_bowls_three"]
    # Shares 0.5 0.2 0.8 and 0.6 0.1 0.4. About their means 0.5 and 11/30 products sum up to 0.09,
    # squares to 0.18 and 0.126667.
    assert found.r is not None
    assert found.r == pytest.approx((0.09 / (0.18 * 0.12666667) ** 0.5, -1.0, 1.0), abs=1e-6)
    assert found.mmrv == pytest.approx((0.2 + 0.0 + 0.2) / 3)
    assert found.by_task == {}
    assert found.left_out == (
        "carry_tray (expert, skills): simulated only", "hanging_mug (expert, skills): real only",
    )  # fmt: skip


def test_what_has_no_verdict_is_neither_failure_nor_success_but_shown():
    roller = compare(SIM, REAL).pairs[0]
    assert (roller.sim, roller.real) == (Side(5, 10, 0), Side(6, 10, 10))
    assert roller.real.share == 0.6
    assert roller.real.interval == pytest.approx((0.3127, 0.8318), abs=5e-5)
    row = text(compare(SIM, REAL)).splitlines()[1].split()
    assert row[:5] == ["grab_roller", "expert", "skills", "5/10", "24%"]
    assert row[-5:] == ["6/10", "31%", "to", "83%", "10"]


def test_who_was_stopped_by_a_human_has_failed_and_can_be_read_apart():
    real = list(REAL)
    causes = ["/safety/estop said true", "/safety/stop was called", "left_fr3_joint4: 71 Nm"]
    pots = [k for k, e in enumerate(real) if e.task == "lift_pot" and not e.success]
    for k, cause in zip(pots, causes, strict=False):
        real[k] = replace(real[k], cause=f"safety stop: {cause}")
    found = compare(SIM, real)
    assert found.pairs[1].real == Side(1, 10, 0, stopped=2)
    assert found.to_dict()["pairs"][1]["real"]["stopped"] == 2
    (note,) = (line for line in found.left_out if "stopped" in line)
    said = "a human stopped the arms in 2 of 10 real episodes, which count as failures"
    assert note == f"lift_pot (expert, skills): {said}"
    assert f"note: {note}" in text(found)
    assert f"lift_pot: {said.replace('real ', '')}" in results_table(real)
    assert "In 2 episodes a human stopped the arms: they count as" in report(real, {}, {}, "")
    for shown in (results_table(REAL), report(REAL, {}, {}, ""), text(compare(SIM, REAL))):
        assert "stopped the arms" not in shown


def test_a_side_without_any_verdict_pairs_with_nothing():
    real = [e for e in REAL if e.task != "lift_pot"] + episodes("lift_pot", 0, 0, unscored=3)
    found = compare(SIM, real)
    assert found.r is None
    assert found.why_no_r == "it needs 3 pairs with verdicts on both sides, there are 2"
    assert "lift_pot (expert, skills): no real episode has a verdict" in found.left_out
    assert "Pearson's r: none: it needs 3 pairs" in text(found)
    assert found.mmrv == pytest.approx((0.2 + 0.2) / 2)
    row = next(line for line in text(found).splitlines() if line.startswith("lift_pot"))
    assert row.split()[-3:] == ["0/0", "-", "3"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_equal_shares_correlate_with_nothing():
    sim = [e for task in ("lift_pot", "grab_roller", "carry_tray") for e in episodes(task, 2)]
    real = [e for task in ("lift_pot", "grab_roller", "carry_tray") for e in episodes(task, 1, 1)]
    found = compare(sim, real)
    assert (found.r, found.why_no_r) == (None, "all simulated shares are 100%")
    assert found.mmrv == 0.0


def test_policies_are_ranked_task_by_task():
    shares = {"a": (2, 1), "b": (5, 6), "c": (8, 4)}
    sim = [e for p, (k, _) in shares.items() for e in episodes("lift_pot", k, 10 - k, policy=p)]
    real = [e for p, (_, k) in shares.items() for e in episodes("lift_pot", k, 10 - k, policy=p)]
    found = compare(sim + episodes("carry_tray", 1), real + episodes("carry_tray", 1))
    assert found.by_task == {"lift_pot": pytest.approx((0.0 + 0.2 + 0.2) / 3)}
    assert found.r is not None and -1.0 < found.r[1] < found.r[0] < found.r[2] < 1.0
    assert "MMRV of lift_pot: 0.133" in text(found)


def test_nothing_in_common_is_one_line():
    with pytest.raises(UsageError, match="no task is on both sides .*carry_tray .*: simulated o"):
        compare(episodes("carry_tray", 1), episodes("lift_pot", 1))
    with pytest.raises(UsageError, match="there are no episodes"):
        compare([], [])


def test_another_version_of_a_task_is_said():
    found = compare(SIM, [*REAL[:-1], *episodes("carry_tray", 1, version=2)])
    assert "carry_tray: version 1 simulated, 2 real, paired all the same" in found.left_out


def test_another_way_of_execution_or_more_help_is_said():
    def done(mode: str, latency: str) -> dict:
        return {"mode": mode, "latency": latency, "execute": 25, "deadline_s": 10.0}

    sim = [replace(e, execution=done("sync", "free")) for e in episodes("lift_pot", 2)]
    same = [replace(e, execution=done("sync", "free")) for e in episodes("lift_pot", 1, 1)]
    other = [replace(e, execution=done("rtc", "measured"), help="poses") for e in same]
    assert compare(sim, same).left_out == ()
    who = "lift_pot (expert, skills)"
    assert compare(sim, other).left_out == (
        f"{who}: executed sync, latency free, execute 25 simulated, "
        "rtc, latency measured, execute 25 real, paired all the same",
        f"{who}: told help none simulated, help poses real, paired all the same",
    )
    # Recorded before there was a choice, an episode was executed as is usual.
    assert compare(episodes("lift_pot", 1), [replace(e, execution=done("sync", "free") | {
        "execute": 0}) for e in same]).left_out == ()  # fmt: skip


def test_other_versions_of_agents_and_other_worlds_are_said():
    made = {"version of the policy": "1", "vary": "nothing", "dynamics": "its own"}
    sim = [replace(e, conditions=made) for e in episodes("lift_pot", 2)]
    real = [replace(e, conditions=made | {"version of the policy": "2", "vary": "light"})
            for e in episodes("lift_pot", 1, 1)]  # fmt: skip
    who = "lift_pot (expert, skills)"
    assert compare(sim, real).left_out == (
        f"{who}: vary nothing simulated, light real, paired all the same",
        f"{who}: version of the policy 1 simulated, 2 real, paired all the same",
    )
    assert compare(sim, sim).left_out == ()
    # Of results without a recording none of it is known.
    assert compare(sim, episodes("lift_pot", 1)).left_out == ()


def test_a_recording_says_how_it_was_made(tmp_path):
    sink = BagSink(tmp_path / "bag", {"vary": ["light", "clutter"], "dynamics": "0123456789abcdef",
                                      "objects": ""})  # fmt: skip
    sink.scene(scene())
    sink.event(Event("begin", 0, 0, {"planner": {"name": "expert", "version": "3"}, "policy": {}}))
    sink.writer.close("complete")
    assert scoring.score_bag(tmp_path / "bag").conditions == {
        "version of the planner": "3", "vary": "light,clutter", "dynamics": "0123456789ab",
        "objects": "its own",
    }  # fmt: skip
    # An old recording says nothing of it.
    assert scoring.score_bag(GOLDEN / "in_order.mcap").conditions == {}


def test_a_folder_is_not_paired_with_itself(tmp_path, capsys, monkeypatch):
    saved(tmp_path / "sim", SIM)
    (tmp_path / "link").symlink_to(tmp_path / "sim")
    monkeypatch.chdir(tmp_path)
    for real in ("sim", str(tmp_path / "sim"), "link"):
        assert main(["paired", "sim", real]) == 2
        assert "SIM and REAL are the same folder: sim" in capsys.readouterr().err


def test_a_recording_does_not_foretell_itself(tmp_path, capsys):
    """It was copied, or one folder is within the other."""
    sim = [replace(e, bag=f"sim/{e.seed}", wall_s=1.5 + e.seed, state_hash="a") for e in SIM[:3]]
    real = [replace(e, bag=f"real/{e.seed}", wall_s=9.0 + e.seed, state_hash="a") for e in SIM[:3]]
    assert len(compare(sim, real).pairs) == 1
    real[1] = replace(sim[1], bag="real/1")
    with pytest.raises(UsageError, match="same recording is on both sides: sim/1 and real/1"):
        compare(sim, real)


@pytest.mark.parametrize("command", [["paired", "sim", "real"], ["report", "sim"]])
def test_a_page_replaces_pages_alone(tmp_path, capsys, monkeypatch, command):
    saved(tmp_path / "sim", SIM)
    saved(tmp_path / "real", REAL)
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text("{}")
    assert main([*command, "--out", "run.json"]) == 2
    assert "run.json is another kind of file and would be over" in capsys.readouterr().err
    assert Path("run.json").read_text() == "{}"
    for _ in range(2):
        assert main([*command, "--out", "page.html"]) == 0


def test_pairs_on_a_line_are_called_so():
    tasks = ("lift_pot", "grab_roller", "stack_bowls_three", "carry_tray")
    sim = [e for k, task in enumerate(tasks) for e in episodes(task, k, 4 - k)]
    assert "Pearson's r: 1.00, 95 % interval -1.00 to 1.00 (all pairs lie on a line" in text(
        compare(sim, sim)
    )


def test_the_page_shows_every_pair_that_counts():
    html = page(compare(SIM, REAL), "results/<sim>", "results/robot")
    assert html.count("<circle") == 3
    assert "results/&lt;sim&gt;" in html and "<sim>" not in html
    # 0.5 and 0.6 of 360 pixels, from the left and from the top.
    assert 'cx="232.0" cy="156.0"' in html
    assert "hanging_mug (expert, skills): real only." in html
    assert "http" not in html.replace("http-equiv", "")


def saved(folder: Path, found: list[EpisodeScore]) -> Path:
    folder.mkdir()
    score_files.save_scores(folder, found)
    return folder


def test_the_command_reads_folders(tmp_path, capsys):
    sim, real = saved(tmp_path / "sim", SIM), saved(tmp_path / "real", REAL)
    assert main(["paired", str(sim), str(real)]) == 0
    said = capsys.readouterr().out
    assert "pairs: 3" in said and "MMRV: 0.133" in said and "three pairs bound it nowhere" in said
    assert "<circle" in (sim / "paired.html").read_text()
    out = tmp_path / "page.html"
    assert main(["paired", str(sim), str(real), "--out", str(out), "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert given["pearson"]["r"] == pytest.approx(0.5960, abs=1e-4)
    assert given["pairs"][0]["real"] == {
        "successes": 6, "scored": 10, "unscored": 10, "stopped": 0, "share": 0.6,
        "interval": pytest.approx([0.3127, 0.8318], abs=5e-5),
    }  # fmt: skip
    assert out.is_file()


def test_a_folder_with_nothing_in_it_is_named(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    good = str(saved(tmp_path / "good", SIM))
    for where in ("empty", "nowhere"):
        assert main(["paired", good, str(tmp_path / where)]) == 2
        assert where in capsys.readouterr().err


def test_recordings_come_before_result_files(tmp_path):
    folder = tmp_path / "run"
    (folder / "bag").mkdir(parents=True)
    (folder / "bag" / "in_order.mcap").write_bytes((GOLDEN / "in_order.mcap").read_bytes())
    score_files.save_scores(folder, SIM)
    assert [(e.task, e.seed) for e in results_of(folder)] == [
        (e.task, e.seed) for e in scoring.score_folder(folder)
    ]
    assert len(results_of(folder)) == 1
