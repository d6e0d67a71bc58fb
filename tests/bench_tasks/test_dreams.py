"""Dreams in the record: summed up, survive a bag, shown beside what was done."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.reports.report_dreams import dreams
from bench_tasks.verdicts import score_files
from bench_tasks.verdicts.dreams import DREAM, ERRORS, check_dreams, dreams_of
from bench_tasks.vocabulary import Event


def told(horizon_s, **errors):
    return {"horizon_s": horizon_s, **dict.fromkeys(ERRORS, 0.0), **errors}


def event(*compared, missed=0):
    return Event(DREAM, 0, 0, {"compared": list(compared), "missed": missed})


def test_an_episode_is_summed_up_by_horizon():
    found = dreams_of([
        event(), event(told(0.5, pixel=0.01, latent=0.2, still_pixel=0.1, still_latent=0.1)),
        event(told(1.0, latent=0.1, still_latent=0.5),
              told(0.5, pixel=0.03, latent=0.4, own_pixel=0.002, still_latent=0.3), missed=2),
    ])  # fmt: skip
    half, whole = found["horizons"]["0.5"], found["horizons"]["1"]
    assert list(found["horizons"]) == ["0.5", "1"] and found["missed"] == 2
    assert half["pictures"] == 2 and half["psnr_db"] == pytest.approx(-10 * np.log10(0.02))
    assert half["own_psnr_db"] == pytest.approx(30) and half["latent_error"] == pytest.approx(0.3)
    assert half["still_psnr_db"] == pytest.approx(-10 * np.log10(0.05))
    assert whole["psnr_db"] == 99.0 and whole["still_latent_error"] == 0.5
    assert found["right"] is True, "0.7 of error in all against 0.9"
    check_dreams(json.loads(json.dumps(found)))


def test_right_is_better_than_the_picture_that_it_began_with():
    for latent, right in ((0.29, True), (0.3, False), (0.31, False)):
        found = dreams_of([event(told(0.5, latent=latent, still_latent=0.3))])
        assert found["right"] is right


@pytest.mark.parametrize(
    "data",
    [{}, {"compared": 3}, {"compared": [3, {"horizon_s": "a"}]}, {"compared": [told("x")]},
     {"compared": [told(float("nan"))], "missed": "2"}, {"compared": [told(1.0, pixel=True)]}],
)  # fmt: skip
def test_whatever_a_recording_holds_is_no_dream(data):
    found = dreams_of([Event(DREAM, 0, 0, data)])
    assert found == {"horizons": {}, "missed": 0, "right": None}


def test_no_dreams_are_none():
    assert dreams_of([Event("plan", 0, 0, {})]) == {} and dreams([]) == ""


@pytest.mark.parametrize(
    "change",
    [{"right": "yes"}, {"missed": 1.5}, {"horizons": []}, {"horizons": {"1": {}}}, {"more": 1}],
)
def test_a_wrong_result_file_is_refused(change):
    good = dreams_of([event(told(0.5))])
    with pytest.raises(TypeError, match="dreams is"):
        check_dreams({**good, **change})


class Dreamer:
    """Lets the arms be, and says that it dreamt."""

    def __init__(self):
        from bench_tasks.vocabulary import Metadata

        self.metadata = Metadata("dreamer", "1")

    def reset(self, scene, seed):
        self.calls = 0

    def accept(self, plan):
        """Need none."""

    def infer(self, observation):
        from bench_tasks.vocabulary import ActionChunk

        self.calls += 1
        compared = [told(0.5, pixel=0.01, latent=0.5, still_latent=0.2)] if self.calls > 1 else []
        values = np.tile(observation.state.command, (50, 1))
        return ActionChunk(observation.state.seq, values,
                           detail={DREAM: {"compared": compared, "missed": 0}})  # fmt: skip


@pytest.mark.parametrize("execution", ["sync", "async"])
def test_dreams_survive_the_bag_and_stand_beside_the_deeds(tmp_path, monkeypatch, execution):
    import policies
    from bench_tasks import runner
    from bench_tasks.config import RunConfig
    from bench_tasks.reports.report import page

    monkeypatch.setitem(policies.POLICIES, "dreamer", f"{__name__}:Dreamer")
    monkeypatch.setattr(policies, "load", lambda *_: Dreamer)
    monkeypatch.setattr("bench_tasks.tasks.lift_pot.TASK.__class__.time_limit_s", 2.5)
    config = RunConfig(("lift_pot",), policy="dreamer", cameras=(), out=str(tmp_path / "out"),
                       planner="expert", execution=execution)  # fmt: skip
    (live,) = runner.run(config).episodes
    (scored,) = score_files.load_scores(score_files.newest_scores(tmp_path / "out"))
    assert scored.dreams == live.dreams == dreams_of(
        [event(told(0.5, pixel=0.01, latent=0.5, still_latent=0.2))]
        * live.dreams["horizons"]["0.5"]["pictures"]
    )  # fmt: skip
    assert not live.success and live.dreams["right"] is False
    html = page([scored], {}, {}, "")
    assert "Dreaming and acting" in html and "20.0 dB" in html
    table = dreams([scored, replace(scored, success=True, cause="")])
    assert table.count("<td class=r>1</td>") >= 2
