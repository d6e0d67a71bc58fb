"""APGD finds the best of what is allowed, and it goes the whole way to answers and commands."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench_tasks.errors import UsageError  # noqa: E402
from bench_tasks.probes.stream import Item, Picture, Query  # noqa: E402
from bench_tasks.probes.words import COLOURS  # noqa: E402
from bench_tasks.robots.kinematics import dual_arm  # noqa: E402
from bench_tasks.vocabulary import ARM_COLUMNS, Observation  # noqa: E402
from policies.apgd import apgd, checkpoints, noise  # noqa: E402
from policies.memory import make_memory  # noqa: E402
from policies.memory.learned_eye import LearnedEye, pixels_of  # noqa: E402
from policies.memory.reader import RuleReader  # noqa: E402
from policies.wam.policy import WamPolicy  # noqa: E402
from policies.wam.white_box import Looks, WhiteBox, frames_of, pictures_of  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_checkpoints_are_the_papers():
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert checkpoints(1) == [1]


def test_what_is_linear_is_pushed_to_the_corner():
    picture = torch.tensor([[0, 3, 128], [250, 255, 7]], dtype=torch.uint8)
    slope = torch.tensor([[1.0, -1, 1], [1, 1, -1]])
    found = apgd(lambda x: (slope * x).sum(), picture, 8, 20, generator())
    assert found.picture.tolist() == [[8, 0, 136], [255, 255, 0]]
    assert found.picture.dtype == torch.uint8


@pytest.mark.parametrize("eps", [0.5, 2.0, 7.6])
def test_it_stays_within_eps_in_whole_numbers_and_never_gets_worse(eps):
    picture = torch.randint(0, 256, (3, 9, 7), generator=generator(1)).to(torch.uint8)
    aim = torch.randn(3, 9, 7, generator=generator(2))
    found = apgd(lambda x: (aim * torch.sin(x / 3)).sum(), picture, eps, 30, generator())
    assert (found.picture.int() - picture.int()).abs().max() <= int(eps)
    assert list(found.values) == sorted(found.values)


def test_its_step_gets_smaller_where_one_of_a_fixed_size_jumps_to_and_fro():
    picture = torch.full((4,), 100, dtype=torch.uint8)
    aim = torch.tensor([101.3, 98.6, 104.45, 100.15])
    found = apgd(lambda x: -((x - aim) ** 2).sum(), picture, 8, 60)
    assert found.values[-1] > -0.01 > found.values[0]
    assert found.picture.tolist() == [101, 99, 104, 100]


def test_noise_is_as_strong_as_the_attack():
    picture = torch.full((3, 50, 50), 128, dtype=torch.uint8)
    off = noise(picture, 8.0, generator()).int() - 128
    assert set(off.unique().tolist()) == {-8, 8} and abs(off.float().mean()) < 1


@pytest.mark.parametrize(("eps", "steps"), [(8, 0), (0, 5), (float("nan"), 5)])
def test_wrong_numbers_are_refused(eps, steps):
    with pytest.raises(UsageError, match="steps of 1 or more and eps above 0"):
        apgd(lambda x: x.sum(), torch.zeros(2), eps, steps)


# -- from picture to answer ------------------------------------------------------------------------

BGR = {"red": (40, 40, 200), "green": (40, 170, 40), "blue": (200, 60, 40),
       "yellow": (30, 200, 220)}  # fmt: skip


def shown(colour, rng):
    """A thing of this colour before a mottled wall, and a small one of another."""
    pixels = rng.integers(90, 150, (96, 128, 3), dtype=np.uint8)
    other = rng.choice([c for c in BGR if c != colour])
    x, y = rng.integers(8, 60), rng.integers(8, 30)
    cv2.rectangle(pixels, (int(x), int(y)), (int(x) + 44, int(y) + 44), BGR[colour], -1)
    cv2.rectangle(pixels, (4, 70), (22, 88), BGR[str(other)], -1)
    return cv2.imencode(".png", pixels)[1].tobytes()


def png(pixels):
    return cv2.imencode(".png", cv2.cvtColor(pixels.permute(1, 2, 0).numpy(),
                                             cv2.COLOR_RGB2BGR))[1].tobytes()  # fmt: skip


def test_a_picture_changes_what_is_remembered_and_nothing_else():
    rng = np.random.default_rng(0)
    colours = [str(c) for c in rng.choice(list(BGR), 40)]
    eye = LearnedEye(WamPolicy()._made.autoencoder)
    assert eye.fit([pixels_of(shown(c, rng)) for c in colours], colours, 150) > 0.9
    hits = {"adversarial": 0, "noise": 0}
    names = [("Pip", "red", "green"), ("Momo", "blue", "yellow"), ("Tiko", "green", "red")]
    for name, true, target in names:
        plain, beside = shown(true, rng), shown("blue", rng)
        pixels = pixels_of(plain)
        attacked = apgd(lambda x, t=target: eye.gain(t, x), pixels, 8, 15, generator()).picture
        assert (attacked.int() - pixels.int()).abs().max() <= 8
        sent = {"plain": plain, "noise": png(noise(pixels, 8, generator())),
                "adversarial": png(attacked)}  # fmt: skip
        for kind, data in sent.items():
            memory = make_memory("structured", reader=RuleReader(eye))
            for k, (called, picture) in enumerate([(name, data), ("Zuzu", beside)]):
                memory.observe(Item(f"i{k}", k, "s", "Ana", f"This one is called {called}.",
                                    Picture(f"{k}.png", picture, "png")))  # fmt: skip
            said = {n: memory.answer(Query("q", 9, f"Which colour is the one called {n}?",
                                           COLOURS)).text for n in (name, "Zuzu")}  # fmt: skip
            assert said["Zuzu"] == eye(Picture("z.png", beside))[0]
            if kind == "plain":
                assert said[name] == true
            else:
                hits[kind] += said[name] == target
    assert hits["adversarial"] >= 2 and hits["noise"] == 0


# -- from picture to command -----------------------------------------------------------------------


def test_pictures_that_nobody_sees_are_changed_lead_the_hands_down():
    from sim.world import SimWorld

    world, policy, kinematics = SimWorld(width=128, height=96), WamPolicy(), dual_arm()
    scene, _ = world.reset("lift_pot", 0)
    policy.reset(scene, 0)
    seen = Observation(world.state, world.capture(policy.metadata.cameras))
    box, pictures = WhiteBox(policy), pictures_of(seen)

    def told(x):
        return box.commands(Looks((0,), (world.state.measured,), (x,)))[0]

    def does(x, quality):
        policy.reset(scene, 0)
        return policy.infer(Observation(world.state, frames_of(x, seen.frames, quality)))

    def height(chunk):
        return np.mean([kinematics.forward("left", chunk.values[-1, :7])[2],
                        kinematics.forward("right", chunk.values[-1, 8:15])[2]])  # fmt: skip

    plain = does(pictures, 0)
    with torch.no_grad():
        inside = told(pictures.float()).numpy()
    inside[:, ARM_COLUMNS] += world.state.measured[ARM_COLUMNS]
    per = len(plain.values) // policy.shape.stride
    assert np.allclose(inside[: policy.shape.stride], plain.values[per - 1 :: per], atol=1e-3)
    down = torch.from_numpy(inside)
    down[:, ARM_COLUMNS] -= torch.from_numpy(world.state.measured[ARM_COLUMNS])
    for arm in (0, 8):
        end = plain.values[-1, arm : arm + 7]
        name = "right" if arm else "left"
        pose = kinematics.forward(name, end) - np.array([0, 0, 0.1, 0, 0, 0, 0])
        joints = kinematics.inverse(name, pose, end, restarts=0)
        down[:, arm : arm + 7] += torch.from_numpy(joints - end)
    found = apgd(lambda x: -(told(x) - down)[:, ARM_COLUMNS].square().mean().float(),
                 pictures, 8, 6, generator())  # fmt: skip
    base = height(plain)
    for quality in (0, 90):
        sunk = base - height(does(found.picture, quality))
        shaken = base - height(does(noise(pictures, 8, generator()), quality))
        assert sunk > 0.01 > 10 * abs(shaken), (quality, sunk, shaken)
