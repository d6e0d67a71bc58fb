"""A one-step student against its teacher, on models small enough to train here."""

from __future__ import annotations

import math
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import made_rows, shaken  # noqa: E402
from torch import nn  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from policies.wam import distill  # noqa: E402
from policies.wam.autoencoder import Autoencoder  # noqa: E402
from policies.wam.checkpoint import Checkpoint, load_checkpoint, save_checkpoint  # noqa: E402
from policies.wam.data import Scaler  # noqa: E402
from policies.wam.distill import AVERAGE, GRID, LEAP, consistency_loss, destination  # noqa: E402
from policies.wam.flow import draw_times, sample, velocity_loss  # noqa: E402
from policies.wam.model import Transformer  # noqa: E402
from policies.wam.shape import Shape  # noqa: E402
from policies.wam.train import Recipe, Trainer  # noqa: E402


class Plane(nn.Module):
    """Velocities of two actions and a video of two numbers, without any observation.

    The other actions stay as they are.
    """

    shape = SimpleNamespace(video=True, chunk=1, frames=1, latent=1, grid=(1, 2),
                            predicts="velocity")  # fmt: skip

    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 4),
        )  # fmt: skip

    def forward(self, latents, states, text, video, actions, times):
        two, others = actions[..., 0, :2], torch.zeros_like(actions[..., 2:])
        y = self.net(torch.cat([two, video.flatten(-4), times], -1))
        return y[..., 2:].view_as(video), torch.cat([y[..., None, :2], others], -1)

    def denoise(self, cache, at, video, actions, times, text):
        got = self(None, None, None, video[:, None], actions[:, None], times[:, None])
        return got[0][:, 0], got[1][:, 0]


class Constant(Plane):
    """The same velocity everywhere, or one for each step in turn."""

    def __init__(self, *along):
        super().__init__(1)
        self.along, self.asked = along, 0

    def denoise(self, cache, at, video, actions, times, text):
        turned = self.along[min(self.asked, len(self.along) - 1)]
        self.asked += 1
        pair = torch.tensor([math.cos(turned), math.sin(turned)])
        move = torch.zeros_like(actions)
        move[..., :2] = pair
        return pair.expand_as(video), move


def corners(count, generator):
    """Four corners of a square in both, the same one."""
    at = torch.randint(2, (count, 1, 2), generator=generator) * 2.0 - 1.0
    actions = torch.zeros(count, 1, 1, 16)
    actions[..., 0, :2] = at
    return {
        "latents": None, "states": torch.zeros(count, 1, 16), "text": None,
        "actions": actions + 0.05 * torch.randn(actions.shape, generator=generator),
        "video": at.view(count, 1, 1, 1, 1, 2),
    }  # fmt: skip


def descend(model, loss, steps, rate, average=None):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for k in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - k / steps)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        if average is not None:
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 1 - AVERAGE)


def drawn(model, steps, seed=5, count=1000):
    got = sample(model, [], 0, torch.zeros(count, 1), steps, torch.Generator().manual_seed(seed))
    return torch.cat([got.actions[:, 0, :2], got.video.flatten(1)], 1)


@pytest.fixture(scope="module")
def teacher():
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Plane()

    def loss():
        times = draw_times("uniform", (256, 1), generator)
        return sum(velocity_loss(model, corners(256, generator), times, generator))

    descend(model, loss, 600, 5e-3)
    return model.requires_grad_(False)


@pytest.mark.parametrize("advantage", [0.0, 0.5])
def test_one_step_of_a_student_lands_where_sixteen_of_its_teacher_do(teacher, advantage):
    student, generator = deepcopy(teacher).requires_grad_(True), torch.Generator().manual_seed(1)
    average = deepcopy(teacher)

    def loss():
        batch = corners(256, generator)
        return sum(consistency_loss(student, average, teacher, batch, generator, advantage))

    descend(student, loss, 600, 3e-3, average)
    aim = drawn(teacher, 16)
    before, after = ((drawn(m, 1) - aim).abs().mean().item() for m in (teacher, average))
    assert before > 0.6
    assert after < before / 3


def test_the_answer_at_the_end_of_the_way_is_the_point_itself():
    x, v = torch.randn(2, 3, 4, 16), 1e6 * torch.randn(2, 3, 4, 16)
    t = torch.tensor([[0.0, 0.25, 1.0], [1.0, 0.5, 0.75]])
    got = destination(x, v, t)
    assert torch.equal(got[0, 2], x[0, 2])
    assert torch.equal(got[1, 0], x[1, 0])
    assert torch.equal(got[0, 0], (x + v)[0, 0])
    assert torch.allclose(got[1, 2], x[1, 2] + 0.25 * v[1, 2])


def test_on_a_straight_way_there_is_nothing_left_to_learn():
    """One point of data: x_hat is right everywhere, so answers and targets agree to rounding."""
    class Straight(Plane):
        def forward(self, latents, states, text, video, actions, times):
            t = times[..., :1, None]
            far = 1 / (1 - t).clamp_min(1e-9)  # the velocity at the end itself is never asked for
            return (1 - video) * far[..., None, None], (1 - actions) * far

    batch = {
        "latents": None, "states": torch.zeros(64, 1, 16), "text": None,
        "actions": torch.ones(64, 1, 1, 16), "video": torch.ones(64, 1, 1, 1, 1, 2),
    }  # fmt: skip
    model, other, generator = Straight(), Plane(), torch.Generator().manual_seed(0)
    right = consistency_loss(model, model, model, batch, generator)
    wrong = consistency_loss(other, model, model, batch, generator)
    assert max(right).item() < 1e-9
    assert min(wrong).item() > 0.1


def test_gradients_reach_the_student_alone():
    torch.manual_seed(0)
    models = [Plane() for _ in range(3)]
    generator = torch.Generator().manual_seed(0)
    losses = consistency_loss(*models, corners(8, generator), generator, 0.5)
    sum(losses).backward()
    student, *others = models
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in student.parameters())
    assert all(p.grad is None for model in others for p in model.parameters())


def test_advantages_are_those_of_the_formula_within_each_group():
    reward = torch.tensor([[1.0, 2.0, 3.0, 10.0], [5.0, 5.0, 7.0, -2.0]])
    group = torch.tensor([[0, 0, 0, 1], [2, 2, 3, 1]])
    alpha, beta = distill.advantage_weights(reward, group, 0.5)
    # Group 0: mean 2, deviation sqrt(2/3), so -1.22, 0, 1.22, cut to 1. Group 1: mean 4, deviation
    # 6, so 1 and -1. Group 2: no deviation. Group 3: one alone.
    expected = torch.tensor([[0.5, 1.0, 1.5, 1.5], [1.0, 1.0, 1.0, 0.5]])
    assert torch.allclose(alpha, expected, atol=1e-5)
    assert torch.allclose(beta, 2 - expected, atol=1e-5)
    inside, _ = distill.advantage_weights(torch.tensor([0.0, 0.0, 0.0, 1.0]), torch.zeros(4), 1.0)
    # Mean 1/4, deviation sqrt(3)/4: -1/sqrt(3) and sqrt(3), the latter cut.
    assert torch.allclose(inside, torch.tensor([1 - 1 / math.sqrt(3)] * 3 + [2.0]), atol=1e-5)


def test_a_bad_answer_of_the_teacher_counts_for_less():
    """Of two chunks at the same time, one is led away from its demonstration."""
    class Led(Plane):
        def forward(self, latents, states, text, video, actions, times):
            wrong = torch.zeros_like(actions)
            wrong[1] = 100.0
            return torch.zeros_like(video), wrong

    def leaps(seed):
        """The times that the loss will draw first."""
        return torch.randint(GRID // LEAP, (2, 1), generator=torch.Generator().manual_seed(seed))

    # The same for both, and not the last one, whose answer is the point itself.
    seed = next(k for k in range(100) if leaps(k)[0] == leaps(k)[1] < GRID // LEAP - 1)
    torch.manual_seed(0)
    student = Plane()

    def pull(advantage):
        generator = torch.Generator().manual_seed(seed)
        batch = corners(2, torch.Generator().manual_seed(0))
        _, loss = consistency_loss(student, Led(), Led(), batch, generator, advantage)
        return loss.item()

    assert pull(1.0) < 0.2 * pull(0.0)
    assert pull(0.5) == pytest.approx((pull(0.0) + pull(1.0)) / 2, rel=1e-3)


def test_a_seed_gives_the_same_chunk_and_another_seed_another(teacher):
    assert torch.equal(drawn(teacher, 1), drawn(teacher, 1))
    assert not torch.allclose(drawn(teacher, 1), drawn(teacher, 1, seed=6))


def test_one_step_begins_at_noise_and_asks_once_at_time_zero(teacher):
    asked = []

    class Asked(Plane):
        def denoise(self, cache, at, video, actions, times, text):
            asked.append((video, actions, times))
            return teacher.denoise(cache, at, video, actions, times, text)

    got = sample(Asked(), [], 0, torch.zeros(4000, 1), 1, torch.Generator().manual_seed(0))
    ((video, actions, times),) = asked
    assert got.calls == 1
    assert not times.any()
    for x in (video, actions):
        assert abs(x.mean().item()) < 0.05
        assert abs(x.std().item() - 1) < 0.05
    zero = torch.zeros(4000, 1)
    moved = destination(actions, teacher.denoise([], 0, video, actions, times, None)[1], zero[:, 0])
    assert torch.equal(got.actions, moved)


# -- velocities used again -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "reuse", "calls"),
    # Two to compare, then four of five without a call, see REUSED.
    [(16, 0.93, 4), (16, 0.99, 6), (16, 1.0, 16), (4, 0.93, 2), (2, 0.93, 2), (1, 0.93, 1)],
)
def test_a_constant_velocity_is_asked_for_less_often_with_the_same_result(steps, reuse, calls):
    model = Constant(0.3)
    got = sample(model, [], 0, torch.zeros(3, 1), steps, torch.Generator().manual_seed(0), reuse)
    noise = torch.randn(3, 1, 16, generator=torch.Generator().manual_seed(0))
    moved = noise[..., :2] + torch.tensor([math.cos(0.3), math.sin(0.3)])
    assert got.calls == calls == model.asked
    assert torch.allclose(got.actions[..., :2], moved, atol=1e-5)
    assert torch.equal(got.actions[..., 2:], noise[..., 2:])


@pytest.mark.parametrize(
    ("turn", "calls"), [(math.acos(0.96), 2), (math.acos(0.94), 3), (math.acos(0.92), 5)]
)
def test_similar_enough_is_a_matter_of_the_angle(turn, calls):
    """Of five steps the second serves for all others, for two, or for itself alone."""
    model = Constant(0.0, turn, 2 * turn, 3 * turn, 4 * turn)
    got = sample(model, [], 0, torch.zeros(1, 1), 5, torch.Generator().manual_seed(0), 0.93)
    assert got.calls == calls


def test_actions_that_turn_are_not_drowned_by_a_video_that_does_not():
    class Turning(Plane):
        def denoise(self, cache, at, video, actions, times, text):
            move = torch.zeros_like(actions)
            move[..., int(16 * times[0, 1].item())] = 1.0
            return torch.full_like(video, 100.0), move

    got = sample(Turning(), [], 0, torch.zeros(1, 1), 16, torch.Generator().manual_seed(0), 0.5)
    assert got.calls == 16


# -- training --------------------------------------------------------------------------------------

TINY = Shape(stride=1, frames=1, history=1, dim=16, layers=1, heads=2, latent=2)


def rows():
    return made_rows((4, 4, 4), ["lift_pot"] * 3)


def a_checkpoint(path, shape=TINY, **recipe):
    torch.manual_seed(3)
    scaler = Scaler(*(np.stack([-np.ones(16), np.ones(16)]) for _ in range(2)))
    model = shaken(Transformer(shape))
    made = {"recipe": {"schedule": "uniform", **recipe}, "steps": 7}
    save_checkpoint(path, Checkpoint(model, Autoencoder(shape.latent), scaler, made))
    return str(path)


def test_training_with_a_teacher_begins_as_the_teacher_and_keeps_its_average(
    tmp_path, no_weights, monkeypatch
):
    monkeypatch.setattr("policies.wam.train.WARM_UP", 1)
    path = a_checkpoint(tmp_path / "teacher.safetensors")
    first = load_checkpoint(tmp_path / "teacher.safetensors").model.state_dict()
    recipe = Recipe(steps=2, batch=2, rate=1e-2, teacher=path).checked()
    kept = []
    step = Trainer._step

    def watched(self, model, average, *rest):
        kept.append({k: v.clone() for k, v in model.state_dict().items()})
        return step(self, model, average, *rest)

    monkeypatch.setattr(Trainer, "_step", watched)
    (tmp_path / "out").mkdir()
    trainer = Trainer(rows(), TINY, recipe, tmp_path / "out", lambda text: None)
    result = trainer.run()
    state = torch.load(tmp_path / "out/training.pt", weights_only=True)
    assert all(torch.equal(kept[0][k], v) for k, v in first.items())
    for name, last in state["model"].items():
        one = AVERAGE * first[name] + (1 - AVERAGE) * kept[1][name]
        two = AVERAGE * one + (1 - AVERAGE) * last
        assert torch.allclose(result.model.state_dict()[name], two, atol=1e-6), name
    moved = [k for k, v in state["model"].items() if not torch.equal(v, first[k])]
    assert "action_out.weight" in moved and "video_out.weight" in moved
    assert all(torch.equal(v, first[k]) for k, v in trainer.teacher.state_dict().items())
    made = load_checkpoint(tmp_path / "out/checkpoint.safetensors").made
    assert made["teacher"]["steps"] == 7 and made["recipe"]["teacher"] == path
    # It was checked as it will be used: in one step.
    assert trainer.check(result.model, result.scaler, 1)["held_out_rad"] == pytest.approx(
        trainer.history[-1]["held_out_rad"]
    )


def test_a_stopped_distillation_goes_on_to_the_same_weights(tmp_path, no_weights, monkeypatch):
    path = a_checkpoint(tmp_path / "teacher.safetensors")
    monkeypatch.setattr("policies.wam.train.SAVE_EVERY", 1)
    monkeypatch.setattr("policies.wam.train.WARM_UP", 1)
    recipe = Recipe(steps=3, batch=2, teacher=path, advantage=0.5)

    class Stopped(Exception):
        pass

    def trained(name, stop=False):
        (tmp_path / name).mkdir(exist_ok=True)
        trainer = Trainer(rows(), TINY, recipe, tmp_path / name, lambda text: None)
        step, done = trainer._step, []

        def stopping(*arguments):
            if stop and len(done) == 2:
                raise Stopped
            done.append(1)
            return step(*arguments)

        trainer._step = stopping
        if stop:
            with pytest.raises(Stopped):
                trainer.run()
            return None
        return trainer.run().model.state_dict()

    whole = trained("whole")
    trained("halves", stop=True)
    again = trained("halves")
    assert all(torch.equal(whole[k], v) for k, v in again.items())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"advantage": 1.5, "teacher": "t"}, "advantage must be from 0 to 1, got 1.5"),
        ({"advantage": float("nan"), "teacher": "t"}, "advantage must be from 0 to 1, got nan"),
        ({"advantage": 0.5}, "advantage 0.5 is of no use without a teacher"),
        ({"teacher": "t", "init": "i"}, "init must be the teacher t, got i"),
        ({"video_weight": -1.0}, "video_weight must be from 0 on, got -1.0"),
        ({"teacher": "t", "schedule": "direct"}, "schedule direct learns from demonstrations"),
        ({"action_weight": math.inf}, "action_weight must be from 0 on, got inf"),
    ],
)
def test_a_wrong_recipe_says_what_is_wrong(given, said):
    with pytest.raises(UsageError, match=said):
        Recipe(**given).checked()
    Recipe(teacher="t", advantage=0.5, video_weight=0.0).checked()


def test_a_teacher_of_another_shape_or_schedule_is_refused(tmp_path):
    from dataclasses import replace

    path = tmp_path / "teacher.safetensors"
    a_checkpoint(path, schedule="flash")
    with pytest.raises(UsageError, match="schedule flash"):
        distill.load_teacher(path, TINY)
    a_checkpoint(path)
    with pytest.raises(UsageError, match="has dim 16, not 32, heads 2, not 4"):
        distill.load_teacher(path, replace(TINY, dim=32, heads=4))
    model, made = distill.load_teacher(path, TINY)
    assert made["steps"] == 7
    assert not any(p.requires_grad for p in model.parameters())
    # Without a video, the schedule makes no difference to what the actions were learnt at.
    still = replace(TINY, video=False)
    a_checkpoint(path, still, schedule="flash")
    distill.load_teacher(path, still)
    a_checkpoint(path, still, schedule="direct")
    with pytest.raises(UsageError, match="schedule direct"):
        distill.load_teacher(path, still)
