"""The command `train`: what it refuses, what it writes, and that a killed one goes on as if not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from tiny_wam import TINY, made_rows  # noqa: E402

from bench_tasks import runner  # noqa: E402
from bench_tasks.bags.demonstrations import Demonstration, data_hash  # noqa: E402
from bench_tasks.cli import main  # noqa: E402
from bench_tasks.commands.collect import CollectConfig  # noqa: E402
from bench_tasks.errors import UsageError  # noqa: E402
from bench_tasks.robots import embodiments  # noqa: E402
from policies.wam import train as trainer  # noqa: E402
from policies.wam import training  # noqa: E402
from policies.wam.checkpoint import load_checkpoint  # noqa: E402
from policies.wam.model import Transformer  # noqa: E402
from policies.wam.rows_cache import CACHE, load_rows  # noqa: E402
from policies.wam.shape import Shape  # noqa: E402
from policies.wam.train import Recipe, Trainer  # noqa: E402

SHAPE = "dim=32,layers=1,heads=2,history=2"


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """Three small demonstrations, recorded here."""
    from sim.world import SimWorld

    out = tmp_path_factory.mktemp("demos") / "lift"
    config = CollectConfig(("lift_pot",), episodes=3, out=str(out))
    result = runner.run(config, SimWorld(width=64, height=48))
    assert result.evaluated and all(e.success for e in result.episodes)
    return out


@pytest.fixture
def quick(monkeypatch, no_weights):
    """Log, check and save more often than a long training does."""
    for name, value in (("LOG_EVERY", 1), ("CHECK_EVERY", 4), ("SAVE_EVERY", 2), ("WARM_UP", 5)):
        monkeypatch.setattr(trainer, name, value)
    monkeypatch.setattr("policies.wam.train_report.STARTS", 4)
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))


RECIPE = Recipe(steps=7, batch=2, autoencoder_steps=2, autoencoder_batch=2, seed=3)


class Killed(BaseException):
    """What no code of the training catches."""


def trained(out, stop_at: str = "") -> Trainer:
    """Train on made-up rows; killed when a line that begins so is said."""
    def say(text):
        if stop_at and text.startswith(stop_at):
            raise Killed

    out.mkdir(exist_ok=True)
    one = Trainer(made_rows((12, 11)), TINY, RECIPE, out, say)
    try:
        one.run()
    except Killed:
        return one
    assert not stop_at, "it was to be killed"
    return one


def test_the_help_says_what_the_recipe_takes_by_default(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    usual = Recipe()
    for option in ("steps", "batch", "rate", "autoencoder_steps", "seed", "apart", "advantage",
                   "video_weight", "action_weight"):  # fmt: skip
        flag = f" --{option.replace('_', '-')} "
        said = told.rpartition(flag)[2].partition("(default: ")[2].partition(")")[0]
        assert float(said) == getattr(usual, option), option
    shape = told.rpartition(" --shape ")[2].partition(" --cache ")[0]
    assert all(field.name in shape for field in fields(Shape) if field.name != "video")


@pytest.mark.parametrize("stop_at", ["autoencoder 0", "23 pictures", "step 5", "step 6", "step 7"])
def test_a_killed_training_goes_on_as_if_it_were_not(quick, tmp_path, whole, stop_at):
    out = tmp_path / "out"
    trained(out, stop_at)
    again = trained(out)
    kept = torch.load(out / "training.pt", weights_only=True)
    straight = torch.load(whole / "training.pt", weights_only=True)
    for part in ("model", "average"):
        for name, value in straight[part].items():
            assert torch.equal(value, kept[part][name]), f"{part} {name}"
    files = [load_checkpoint(folder / "checkpoint.safetensors") for folder in (out, whole)]
    for a, b in zip(*(file.model.state_dict().values() for file in files), strict=True):
        assert torch.equal(a, b)
    logs = [[{k: v for k, v in json.loads(line).items() if k != "wall_s"}
             for line in (folder / "log.jsonl").read_text().splitlines()]
            for folder in (out, whole)]  # fmt: skip
    assert logs[0] == logs[1] and [e["step"] for e in logs[0] if "gradient" in e] == [*range(1, 8)]
    assert again.made["steps"] == 7


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of the same training without a stop."""
    from tiny_wam import fake_embed

    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policies.wam.data.embed", fake_embed)
        patch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
        for name, value in (("LOG_EVERY", 1), ("CHECK_EVERY", 4), ("SAVE_EVERY", 2),
                            ("WARM_UP", 5)):  # fmt: skip
            patch.setattr(trainer, name, value)
        trained(out)
    return out


def test_one_demonstration_of_each_task_is_kept_from_training(no_weights, tmp_path):
    rows = made_rows((5, 6, 7, 8, 9), ("a", "b", "a", "c", "b"))
    one = Trainer(rows, TINY, RECIPE, tmp_path, print)
    assert sorted(rows.tasks[k] for k in one.held_demos) == ["a", "b"]  # the only c is learnt
    assert len(one.held) + len(one.learnt) == len(rows) and not set(one.held) & set(one.learnt)
    # A layout that was recorded twice is not learnt from one of them and checked with the other.
    for seed in range(8):
        twice = Trainer(made_rows((5, 6, 7, 8), ["a"] * 4), TINY, replace(RECIPE, seed=seed),
                        tmp_path, print, seeds=[7, 8, 7, 8])  # fmt: skip
        assert twice.held_demos in ([0, 2], [1, 3])
    with pytest.raises(UsageError, match="no task has two demonstrations of different seeds"):
        Trainer(made_rows((5, 6), ("a", "a")), TINY, RECIPE, tmp_path, print, seeds=[4, 4])
    with pytest.raises(UsageError, match="no task has two demonstrations"):
        Trainer(made_rows((5, 6), ("a", "b")), TINY, RECIPE, tmp_path, print)


def test_tasks_are_drawn_by_weight_however_long_their_demonstrations_are(no_weights, tmp_path):
    rows = made_rows((5, 6, 20, 30), ("a", "a", "b", "b"))

    def share(weights):
        one = Trainer(rows, TINY, replace(RECIPE, task_weights=weights), tmp_path, print)
        of_a = one.chance[np.repeat(rows.tasks, rows.lengths)[one.learnt] == "a"]
        assert len(set(of_a)) == 1 and one.chance.sum() == pytest.approx(1.0)
        return of_a.sum()

    assert share("") == pytest.approx(0.5)
    assert share("a=3") == pytest.approx(0.75)
    assert share("b=4,a=1") == pytest.approx(0.2)
    with pytest.raises(UsageError, match="unknown task 'c': choose from a, b"):
        share("c=2")


@pytest.mark.parametrize("asked,count", [("3", 3), ("", 5), ("4,2", 5), ("0", 5), ("many", 5)])
def test_threads_are_as_many_as_asked_for_or_as_cores(no_weights, tmp_path, monkeypatch, asked,
                                                      count):  # fmt: skip
    told: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    Trainer(made_rows(), TINY, RECIPE, tmp_path, print)
    assert told == [count]


def test_nothing_of_what_is_held_out_is_learnt_not_even_the_scaling(no_weights, tmp_path):
    found = []
    for k, far in enumerate((0.0, 100.0)):
        rows, out = made_rows((12, 11)), tmp_path / str(k)
        out.mkdir()
        one = Trainer(rows, TINY, RECIPE, out, print)
        for array in (rows.state, rows.action, rows.pixels):
            array[one.held] += np.asarray(far, array.dtype)
        found.append(one.autoencoder())
    (a, first), (b, second) = found
    assert np.array_equal(first.state, second.state) and first.state.max() < 10
    assert np.array_equal(first.action, second.action)
    weights = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    assert all(torch.equal(x, y) for x, y in weights)


def test_training_learns_more_than_the_mean_action(quick, demos, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trainer, "LOG_EVERY", 50)
    monkeypatch.setattr(trainer, "SAVE_EVERY", 1000)
    monkeypatch.setattr(trainer, "CHECK_EVERY", 1000)
    out = tmp_path / "out"
    arguments = ["train", "--data", str(demos), "--out", str(out), "--steps", "150", "--batch", "8",
                 "--rate", "5e-3", "--autoencoder-steps", "5", "--shape", "dim=64,heads=2,layers=1,"
                 "history=2"]  # fmt: skip
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    loaded = load_rows([demos], TINY, print)
    checked = Trainer(loaded.rows, load_checkpoint(out / "checkpoint.safetensors").model.shape,
                      Recipe(seed=0), out, print)  # fmt: skip
    checked.rows.latents = torch.zeros(len(loaded.rows), 8, *TINY.grid).half()
    mean = checked.mean_action_errors()
    assert found["held_out"]["held_out_rad"] < mean["held_out_rad"]

    made = load_checkpoint(out / "checkpoint.safetensors").made
    assert made["data"] == [{"hash": data_hash(demos), "demonstrations": 3,
                             "rows": sum(loaded.rows.lengths)}]  # fmt: skip
    assert made["seed"] == 0 and made["tasks"] == ["lift_pot"] and made["steps"] == 150
    assert made["wall_s"] > 0 and made["command"] and "commit" in made["git"]
    page = (out / "report.html").read_text()
    for text in ("<svg", "the mean action", "data:image/jpeg;base64,", "present repeated",
                 "lift_pot seed", made["data"][0]["hash"][:16]):  # fmt: skip
        assert text in page, text
    assert not any(text in page for text in ("<script", "<link", 'src="http', "url("))


def run(demos, out, *more) -> int:
    return main(["train", "--data", str(demos), "--out", str(out), "--batch", "2", "--steps", "2",
                 "--autoencoder-steps", "1", "--shape", SHAPE, *more])  # fmt: skip


def test_the_same_goes_on_and_another_is_refused(quick, demos, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(demos, out) == 0
    before = (out / "checkpoint.safetensors").read_bytes()
    assert run(demos, out) == 0  # nothing is left to do
    assert (out / "checkpoint.safetensors").read_bytes() == before
    said = capsys.readouterr()
    assert "goes on at step 2" in said.err
    assert "run --tasks lift_pot --policy wam:checkpoint=" in said.out
    for more, told in (
        (("--seed", "1"), "seed was 0, is 1"),
        (("--steps", "3"), "steps was 2, is 3"),
        (("--kind", "bc"), "kind was wam, is bc"),
        (("--schedule", "flash", "--rate", "0.01"), ", is 0.01; schedule was uniform, is flash"),
        (("--init", str(out / "checkpoint.safetensors")), "init was none, is "),
    ):
        assert run(demos, out, *more) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert told in error and "choose a new folder" in error
    assert (out / "checkpoint.safetensors").read_bytes() == before
    # The cloning policy can begin with the other's autoencoder, scaling and what fits.
    init = out / "checkpoint.safetensors"
    assert run(demos, tmp_path / "bc", "--kind", "bc", "--init", str(init)) == 0
    cloned, model = load_checkpoint(tmp_path / "bc/checkpoint.safetensors"), load_checkpoint(init)
    assert not cloned.model.shape.video
    assert np.array_equal(cloned.scaler.action, model.scaler.action)
    assert all(torch.equal(a, b) for a, b in zip(
        cloned.autoencoder.state_dict().values(), model.autoencoder.state_dict().values(),
        strict=True,
    ))  # fmt: skip
    assert "Predicted video" not in (tmp_path / "bc/report.html").read_text()
    # Weights that were learnt with another seed may know what is held out now; a clone has none.
    for name, more, warned in (("more", (), False), ("other", ("--seed", "1"), True)):
        assert run(demos, tmp_path / name, "--init", str(init), *more) == 0
        told = "demonstrations that are held out here: their errors may be too small"
        assert (told in capsys.readouterr().err) is warned
        assert (told in (tmp_path / name / "report.html").read_text()) is warned
        caution = load_checkpoint(tmp_path / name / "checkpoint.safetensors").made["caution"]
        assert (told in caution) is warned
    assert not cloned.made["caution"]
    # And a student learns from it, in its shape and with its autoencoder.
    assert run(demos, tmp_path / "one", "--teacher", str(init)) == 0
    student = load_checkpoint(tmp_path / "one/checkpoint.safetensors")
    assert student.model.shape == model.model.shape and student.made["teacher"]
    assert "Sampled in 1 step." in (tmp_path / "one/report.html").read_text()
    assert run(demos, tmp_path / "direct", "--init", str(init), "--schedule", "direct") == 0
    assert "Sampled in 1 step." in (tmp_path / "direct/report.html").read_text()
    assert run(demos, tmp_path / "one") == 2
    assert "teacher was " in capsys.readouterr().err


def test_a_training_that_goes_astray_stops_and_saves_none_of_it(quick, tmp_path, monkeypatch):
    out = tmp_path / "out"
    trained(out, "step 5")
    before = (out / "checkpoint.safetensors").read_bytes()
    lost = trainer.velocity_loss

    def astray(*args):
        video, action = lost(*args)
        return video, action * torch.inf

    monkeypatch.setattr(trainer, "velocity_loss", astray)
    with pytest.raises(UsageError, match="its gradient is nan; choose a smaller --rate than 0.002"):
        trained(out)
    assert (out / "checkpoint.safetensors").read_bytes() == before
    monkeypatch.setattr(trainer, "velocity_loss", lost)
    assert trained(out).made["steps"] == 7


def test_a_model_of_the_other_kind_gives_no_weights(no_weights, tmp_path):
    # What was learnt with video would be no baseline.
    recipe = Recipe(steps=1)
    for kind, taken in ((True, True), (False, False)):
        own = Trainer(made_rows(), replace(TINY, video=kind), recipe, tmp_path, print)
        torch.manual_seed(1)
        model = Transformer(own.shape)
        torch.manual_seed(2)
        given = Transformer(replace(TINY, video=True))
        own._take_over(model, given)
        same = torch.equal(model.state_in[0].weight, given.state_in[0].weight)
        assert same is taken


def test_how_much_is_taken_over_is_said_and_direct_wants_all_of_it(no_weights, tmp_path):
    given, said = Transformer(TINY), []
    same, wide = TINY.dim, 2 * TINY.dim
    for dim, schedule in ((same, "direct"), (wide, "uniform"), (wide, "direct")):
        recipe = Recipe(steps=1, schedule=schedule, init="a.safetensors")
        own = Trainer(made_rows(), replace(TINY, dim=dim), recipe, tmp_path, said.append)
        if dim == wide and schedule == "direct":
            with pytest.raises(UsageError, match="direct goes on from .* are of another shape"):
                own._take_over(Transformer(own.shape), given)
        else:
            own._take_over(Transformer(own.shape), given)
    count = len(given.state_dict())
    taken = [int(line.split(" of ")[0]) for line in said]
    assert taken[0] == count and taken[1] == taken[2] < count / 2
    assert said[0] == f"{count} of {count} weights taken over from a.safetensors"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": -1}, "seed must be from 0 to 9223372036854775807, got -1"),
        ({"seed": 2**63}, "seed must be from 0 to 9223372036854775807, got 9223372036854775808"),
        ({"autoencoder_steps": 0}, "autoencoder_steps must be at least 1, got 0"),
        ({"video_weight": 0.0, "action_weight": 0.0}, "are both 0: nothing would be learnt"),
    ],
)
def test_a_recipe_names_its_wrong_numbers(wrong, message):
    with pytest.raises(UsageError, match=message):
        Recipe(**wrong).checked()


def broken(out, name, how):
    """The training in `out` with one of its files empty, cut, of something else, or a folder."""
    file = out / name
    content = {"empty": b"", "cut": file.read_bytes()[:1000], "garbage": b"x" * 4000}.get(how)
    file.unlink()
    if how == "other":
        torch.save({"weights": [1, 2]}, file)
    elif how == "folder":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)


@pytest.mark.parametrize("how", ["empty", "cut", "garbage", "other", "folder"])
@pytest.mark.parametrize("name", ["training.pt", "autoencoder.pt"])
def test_what_is_gone_on_from_is_named_when_it_is_broken(quick, tmp_path, whole, name, how):
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    broken(out, name, how)
    with pytest.raises(UsageError, match=f"cannot go on from {out / name}, which is broken"):
        trained(out)


def test_an_autoencoder_that_was_lost_is_not_made_up(quick, tmp_path, whole):
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    broken(out, "autoencoder.pt", "gone")
    with pytest.raises(UsageError, match="cannot go on in .*out: autoencoder.pt is missing"):
        trained(out)


def test_a_checkpoint_that_was_moved_away_is_written_again(quick, tmp_path, whole):
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    broken(out, "checkpoint.safetensors", "gone")
    trained(out)
    name = "checkpoint.safetensors"
    assert (out / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("frames=40", "stride x frames is 200: no demonstration has more than"),
        ("history=40", r"stride x \(history - 1\) is 195: no demonstration has more than"),
    ],
)
def test_nothing_is_predicted_that_is_further_away_than_demonstrations_go(
    quick, demos, tmp_path, shape, message
):
    with pytest.raises(UsageError, match=message):
        training.train([str(demos)], str(tmp_path), "wam", f"{SHAPE},{shape}", RECIPE, "", print)
    assert not (tmp_path / "train.json").exists()


@pytest.mark.parametrize("error", [MemoryError("x"), RuntimeError("can't allocate memory: 9 GB")])
def test_too_large_for_the_memory_is_one_line(quick, demos, tmp_path, monkeypatch, capsys, error):
    def full(*_):
        raise error

    monkeypatch.setattr(trainer, "velocity_loss", full)
    assert run(demos, tmp_path / "out") == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "there is not enough memory for --batch 2 of this --shape" in told


@pytest.mark.parametrize("key", ["command", "git", "asked"])
def test_a_training_that_does_not_say_what_it_is_does_not_go_on(demos, tmp_path, capsys, key):
    value = {"format_version": 1, "asked": {}, "command": [], "git": {}}
    del value[key]
    (tmp_path / "train.json").write_text(json.dumps(value))
    assert run(demos, tmp_path) == 2
    assert f"train.json does not say {key}: choose a new folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--kind", "act"), "unknown kind 'act': choose from bc, wam"),
        (("--schedule", "cosine"), "unknown schedule 'cosine': choose from direct, flash, uniform"),
        (("--steps", "0"), "--steps: must be at least 1, got 0"),
        (("--rate", "nan"), "--rate: must be between 0 and 1, got 'nan'"),
        (("--shape", "depth=3"), "unknown shape 'depth': choose from attention, dim"),
        (("--shape", "dim=99999999"), "--shape dim must be from 1 to 4096, got '99999999'"),
        (("--shape", "rows_hz=11"), "rows_hz must be one of 1, 2, 5, 10, 25, 50, got 11"),
        (("--shape", "rows_hz=200"), "rows_hz must be one of 1, 2, 5, 10, 25, 50, got 200"),
        (("--shape", "dim=-3"), "--shape dim must be from 1 to 4096, got '-3'"),
        (("--shape", "dim=30"), "dim must be a multiple of heads and 8"),
        (("--shape", "dim"), "--shape takes key=value,..., got 'dim'"),
        (("--shape", "attention=full"), "unknown attention 'full'"),
        (("--init", "nowhere.safetensors"), "cannot read the checkpoint nowhere.safetensors"),
        (("--teacher", "nowhere"), "cannot read the checkpoint nowhere"),
        (("--init", ""), "--init names no file"),
        (("--teacher", ""), "--teacher names no file"),
        (("--advantage", "0.5"), "advantage 0.5 is of no use without a teacher"),
        (("--video-weight", "-1"), "video_weight must be from 0 on, got -1"),
        (("--kind", "bc", "--action-weight", "0"), "action_weight must be above 0 for bc"),
        (("--task-weights", "lift_pot"), "takes TASK=WEIGHT,.. above 0, got 'lift_pot'"),
        (("--task-weights", "lift_pot=0"), "takes TASK=WEIGHT,.. above 0, got 'lift_pot=0'"),
        (("--data", ","), "--data names no folder"),
        (("--data", "nowhere"), "nowhere is not a folder"),
        (("--data", "{d},{d}"), "names a folder twice"),
    ],
)
def test_nonsense_is_refused_in_one_line(quick, demos, tmp_path, capsys, more, message):
    out = tmp_path / "out"
    assert run(demos, out, *(word.format(d=demos) for word in more)) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1 and not out.exists()


def test_a_folder_with_something_else_or_without_demonstrations(quick, demos, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("x")
    assert run(demos, tmp_path / "mine") == 2
    assert "holds something else: choose a new folder" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty", tmp_path / "out") == 2
    assert "no recordings in" in capsys.readouterr().err
    shutil.copytree(demos / "lift_pot" / "1000000", tmp_path / "one/lift_pot/1000000")
    assert run(tmp_path / "one", tmp_path / "out") == 2
    assert "no task has two demonstrations" in capsys.readouterr().err
    assert not (tmp_path / "out/train.json").exists()


def test_decoded_demonstrations_are_kept_until_they_change(quick, demos, tmp_path, monkeypatch):
    data = tmp_path / "data"
    shutil.copytree(demos, data, ignore=shutil.ignore_patterns(CACHE))
    told: list[str] = []
    first = load_rows([data], TINY, told.append)
    assert "reading" in told[0]
    assert first.folders[0]["hash"] == data_hash(data) == data_hash(demos)
    with monkeypatch.context() as patch:
        patch.setattr("policies.wam.rows_cache.read_demonstrations", None)
        (data / "run.json").write_text("{}")  # no demonstration is in that
        again = load_rows([data], TINY, told.append)
    assert "decoded before" in told[-1] and again.folders == first.folders
    at = np.array([0, 3, len(first.rows) - 1])
    assert np.array_equal(first.rows.pixels[at], again.rows.pixels[at])
    assert np.array_equal(first.rows.action, again.rows.action)
    # Two folders are one after the other.
    both = load_rows([demos, data], TINY, told.append)
    count = len(first.rows)
    assert len(both.rows) == 2 * count and both.seeds == first.seeds * 2
    order = np.array([count + 1, 1, count - 1, 2 * count - 1])
    assert np.array_equal(both.rows.pixels[order], first.rows.pixels[order % count])
    # Another demonstration, or a broken cache: read again.
    shutil.rmtree(data / "lift_pot" / "1000001")
    fewer = load_rows([data], TINY, told.append)
    assert fewer.folders[0]["demonstrations"] == 2 and fewer.seeds == [1000000, 1000002]
    for file in ("pixels.u8", "rows.npz", "rows.json"):
        for content in (b"half", b"", b"{}"):
            (data / CACHE / file).write_bytes(content)
            assert load_rows([data], TINY, told.append).folders == fewer.folders
            assert "reading the demonstrations, once" in told[-2]
    elsewhere = load_rows([data], TINY, told.append, tmp_path / "cache")
    assert elsewhere.folders == fewer.folders and len(list((tmp_path / "cache").iterdir())) == 1
    with pytest.raises(UsageError, match="choose another place with --cache"):
        load_rows([demos], TINY, told.append, data / CACHE / "pixels.u8")


def item(seed, every=5):
    """A demonstration of half a second."""
    at = np.arange(0, 26, every)
    pictures = [np.zeros((24, 32, 3), np.uint8)] * len(at)
    home = np.tile(embodiments.get("fr3_pair").home, (26, 1))
    return Demonstration(
        "lift_pot", seed, "Lift.", True, 20_000_000, home, home[1:].copy(), home[1:],
        dict.fromkeys(TINY.cameras, (at, pictures)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "column", "value", "message"),
    [
        ("state", 3, -135.0, "state number 4 of row 2 is -135, that of fr3_pair is from -3.042"),
        ("action", 7, 1.0, "action number 8 of row 2 is 1, that of fr3_pair is from 0 to 0.08"),
        ("state", 12, 1e300, "state number 13 of row 2 is 1e+300"),
    ],
)
def test_numbers_of_another_robot_are_not_learnt_from(
    quick, tmp_path, monkeypatch, what, column, value, message
):
    found, said = [item(1_000_000), item(1_000_001)], []
    getattr(found[1], what)[2, column] = value
    monkeypatch.setattr("policies.wam.rows_cache.read_demonstrations", lambda *_: iter(found))
    assert load_rows([tmp_path], TINY, said.append).seeds == [1_000_000]
    assert any(f"left out: lift_pot seed 1000001: {message}" in line for line in said)


def test_a_demonstration_that_does_not_fit_is_left_out_and_named(quick, tmp_path, monkeypatch):
    found, said = [item(1_000_000), item(1_000_001, every=10), item(1_000_002)], []
    monkeypatch.setattr("policies.wam.rows_cache.read_demonstrations", lambda *_: iter(found))
    for _ in range(2):  # also when it was decoded before
        assert load_rows([tmp_path], TINY, said.append).seeds == [1_000_000, 1_000_002]
        why = "lift_pot seed 1000001 has pictures at 5 Hz, not every 5 control periods"
        assert f"left out: {why}" in said
        said.clear()
    found[:] = [item(1_000_001, every=10)]
    with pytest.raises(UsageError, match=f"no demonstration to learn from: left out: {why}"):
        load_rows([tmp_path], TINY, print, tmp_path / "cache")


@pytest.mark.parametrize("seed", [0, 999_999, 2_000_000])
def test_what_is_evaluated_is_not_learnt_from(quick, tmp_path, monkeypatch, seed):
    # A dataset of others', whose seeds nobody knows, has negative ones.
    found = [item(1_000_000), item(1_999_999), item(-1)]
    monkeypatch.setattr("policies.wam.rows_cache.read_demonstrations", lambda *_: iter(found))
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    assert load_rows([good], TINY, print).seeds == [1_000_000, 1_999_999, -1]
    found.append(item(seed))
    for _ in range(2):  # also when it was decoded before
        with pytest.raises(UsageError, match=f"lift_pot seed {seed}, which is evaluated: learn"):
            load_rows([good, bad], TINY, print)


def test_two_trainings_that_begin_together_decode_once(quick, demos, tmp_path, monkeypatch):
    from policies.wam import rows_cache

    data, decoded, read = tmp_path / "data", [], rows_cache._decode
    shutil.copytree(demos, data, ignore=shutil.ignore_patterns(CACHE))
    monkeypatch.setattr(
        rows_cache, "_decode", lambda *args: decoded.append(time.sleep(0.5)) or read(*args)
    )
    with ThreadPoolExecutor(2) as both:
        parts = list(both.map(lambda _: load_rows([data], TINY, print), range(2)))
    assert len(decoded) == 1 and parts[0].folders == parts[1].folders
    assert np.array_equal(parts[0].rows.state, parts[1].rows.state)


def test_without_torch_one_line_says_what_to_install(tmp_path):
    code = f"""
import sys
from bench_tasks.cli import main

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Without())
sys.exit(main(["train", "--data", ".", "--out", {str(tmp_path / "o")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "training needs torch: pip install -r requirements/policies.txt" in done.stderr
