"""Two agents: what each knows, what each does, and what an odd partner changes."""

from __future__ import annotations

import re
from dataclasses import replace

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, steady_checkpoint  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from bench_tasks.robots.fr3 import HOME_RAD, MAX_VELOCITY  # noqa: E402
from bench_tasks.verdicts.teamwork import PARTNER  # noqa: E402
from bench_tasks.vocabulary import CameraFrame, Observation, Scene, WorldState  # noqa: E402
from policies.pair import PairOptions, PairPolicy, paced  # noqa: E402
from policies.wam.policy import WamOptions, WamPolicy  # noqa: E402

SCENE = Scene("lift_pot", 1, 0, "Lift the pot.", (), (), (), {})
LEFT, RIGHT = slice(0, 8), slice(8, 16)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return str(steady_checkpoint(tmp_path_factory.mktemp("pair") / "tiny.safetensors", apart=0.5))


def look(seq=0, left=0.0, right=0.0, pictures=0, changed=(), opening=0.08) -> Observation:
    """A state at home, each arm's joints moved by so much; pictures of noise, some changed."""
    joints = np.tile(HOME_RAD, 2) + np.repeat([left, right], 7)
    command = np.concatenate([np.append(part, opening) for part in joints.reshape(2, 7)])
    hands = np.tile([0.4, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0], (2, 1)) + right
    state = WorldState(
        seq, seq * 20_000_000, joints, np.full(14, right), np.full(14, right),
        np.full(2, opening), hands, command, np.zeros((1, 7)), np.full((1, 6), right),
        np.zeros((0, 2), np.uint16), np.zeros(0),
    )
    frames = []
    for k, camera in enumerate(("head", "left_wrist", "right_wrist")):
        rng = np.random.default_rng([pictures, k, camera in changed])
        _, data = cv2.imencode(".png", rng.integers(0, 256, (48, 64, 3), np.uint8))
        frames.append(CameraFrame(camera, seq, 0, 64, 48, "png", data.tobytes()))
    return Observation(state, tuple(frames))


def answers(policy, *looks) -> list[np.ndarray]:
    policy.reset(SCENE, 0)
    return [policy.infer(one).values for one in looks]


def made(checkpoint, **options) -> PairPolicy:
    return PairPolicy(PairOptions(checkpoint, **{"steps": 1, **options}))


def test_an_agent_knows_nothing_of_the_partners_wrist_or_present(no_weights, checkpoint):
    pair = made(checkpoint)
    told = answers(pair, look(), look(10))
    # What only the right arm's agent sees, and where the right arm is now.
    other = answers(pair, look(), look(10, right=0.3, changed=("right_wrist",)))
    assert np.array_equal(told[1][:, LEFT], other[1][:, LEFT])
    assert not np.array_equal(told[1][:, RIGHT], other[1][:, RIGHT])
    # At the next look it is told where the partner was.
    told = answers(pair, look(), look(10), look(20))
    other = answers(pair, look(), look(10, right=0.3), look(20))
    assert not np.array_equal(told[2][:, LEFT], other[2][:, LEFT])
    # It does see its own wrist camera and that of the head, and where its own arm is.
    for now in (look(10, changed=("left_wrist",)), look(10, changed=("head",)),
                look(10, left=0.1)):  # fmt: skip
        assert not np.array_equal(answers(pair, look(), now)[1][:, LEFT], told[1][:, LEFT])


def test_agents_are_the_network_shown_a_grey_picture(no_weights, checkpoint):
    """Also that grey is the same in training and here, and each executes its own half only."""
    from policies.wam.apart import blanked
    from policies.wam.policy import _pixels

    pair, seen = made(checkpoint), look()
    found = answers(pair, seen)[0]
    for k, own in enumerate((LEFT, RIGHT)):
        agent = WamPolicy(WamOptions(checkpoint, steps=1))
        agent.reset(SCENE, k)
        grey = np.full((48, 64, 3), 128, np.uint8)
        frames = [
            replace(f, data=cv2.imencode(".png", grey)[1].tobytes())
            if f.camera == ("right_wrist", "left_wrist")[k] else f for f in seen.frames
        ]
        alone = agent.infer(Observation(seen.state, tuple(frames))).values
        assert np.array_equal(found[:, own], alone[:, own])
        shown = _pixels(Observation(seen.state, tuple(frames)))[0].permute(1, 2, 0).numpy()
        whole = _pixels(seen)[0].permute(1, 2, 0).numpy()
        assert np.array_equal(shown, blanked(whole[None], k)[0])


def test_agents_draw_their_own_noise_and_the_seed_repeats_it(no_weights, checkpoint, monkeypatch):
    drawn = []
    from policies.wam import policy as module

    sample = module.sample
    monkeypatch.setattr(module, "sample", lambda *args: drawn.append(
        args[5].get_state().sum().item()) or sample(*args))  # fmt: skip
    pair = made(checkpoint)
    first, again = answers(pair, look()), answers(pair, look())
    assert drawn[0] != drawn[1] and drawn[:2] == drawn[2:]
    assert np.array_equal(first, again)


def test_a_path_is_followed_at_another_pace():
    path = np.zeros((4, 8))
    path[:, 0] = [0.01, 0.02, 0.03, 0.04]
    path[:, 7] = 0.05
    start = np.append(np.zeros(7), 0.05)
    halved = paced(start, path, 0.5, 0.02)
    assert halved[:, 0] == pytest.approx(np.arange(1, 9) * 0.005) and (halved[:, 7] == 0.05).all()
    assert paced(start, path, 2.0, 0.02)[:, 0] == pytest.approx([0.02, 0.04])
    third = paced(start, path, 1 / 3, 0.02)
    assert third[:, 0] == pytest.approx(np.arange(1, 13) / 300)
    assert paced(start, path, 1.0, 0.02)[:, 0] == pytest.approx(path[:, 0])


def test_a_fast_arm_is_no_faster_than_its_joints():
    top = MAX_VELOCITY[0] * 0.02
    path = np.zeros((3, 8))
    path[:, 0] = np.array([0.75, 1.5, 2.0]) * top  # 3/4 and 1/2 of the greatest speed
    got = paced(np.zeros(8), path, 2.0, 0.02)
    assert got[:, 0] == pytest.approx(np.array([1.0, 2.0]) * top)
    # What is beyond it already is not made slower than it was asked for.
    path[:, 0] = np.array([2.0, 4.0, 6.0]) * top
    assert paced(np.zeros(8), path, 2.0, 0.02)[:, 0] == pytest.approx(path[:, 0])


@pytest.mark.parametrize(("partner", "factor"), [("slow", 0.5), ("fast", 2.0)])
def test_only_the_odd_arm_is_slow_or_fast(no_weights, checkpoint, partner, factor):
    usual = answers(made(checkpoint), look())[0]
    whole = answers(made(checkpoint, execute=TINY.chunk), look())[0]
    for odd, own, other in (("left", LEFT, RIGHT), ("right", RIGHT, LEFT)):
        pair = made(checkpoint, partner=partner, odd=odd)
        got = answers(pair, look())[0]
        assert len(got) == len(usual) == 10  # two rows of five periods
        assert np.array_equal(got[:, other], usual[:, other])
        want = paced(look().state.command[own], whole[:, own], factor, 0.02)[:10]
        assert np.array_equal(got[:, own], want) and not np.allclose(want, usual[:, own])
        # Which model it is, is part of the name, as of the joint policy's.
        model = WamPolicy(WamOptions(checkpoint, 1)).metadata.name.removeprefix("wam ")
        assert pair.metadata.name == f"pair {model}, {odd} {partner}, x{factor:g}"


def test_a_stranger_sees_all_and_drives_one_arm(no_weights, checkpoint):
    usual = answers(made(checkpoint), look())[0]
    pair = made(checkpoint, partner="stranger", odd="left", stranger="random")
    got = answers(pair, look())[0]
    assert np.array_equal(got[:, RIGHT], usual[:, RIGHT])
    assert not np.allclose(got[:, LEFT], usual[:, LEFT])
    assert re.fullmatch("pair [0-9a-f]{8} steps=1, left a stranger, random", pair.metadata.name)
    joint = made(checkpoint, partner="stranger", stranger=f"wam:checkpoint={checkpoint}")
    plain, changed = (answers(joint, one)[0] for one in (look(), look(changed=("left_wrist",))))
    assert not np.array_equal(plain[:, RIGHT], changed[:, RIGHT])


def test_surprise_is_how_far_the_partner_was_from_where_it_was_expected(no_weights, checkpoint):
    pair = made(checkpoint)
    pair.reset(SCENE, 0)
    first = pair.infer(look())
    assert first.detail[PARTNER] == {
        "partner": "normal", "odd": "right", "factor": 1.0, "stranger": "", "surprise": {},
    }  # fmt: skip
    expected = pair._expected["left"][9, :7]  # of the right arm, when ten periods have passed
    told = pair.infer(look(10, right=0.2)).detail[PARTNER]["surprise"]
    assert told["left"]["rad"] == pytest.approx(np.abs(HOME_RAD + 0.2 - expected).mean())
    assert told["left"]["still_rad"] == pytest.approx(0.2)
    assert told["right"]["still_rad"] == 0.0 and told["right"]["rad"] > 0
    # Nothing was foretold of a look that comes after the chunk's end.
    late = 10 + 5 * TINY.chunk + 1
    assert pair.infer(look(late)).detail[PARTNER]["surprise"] == {}


@pytest.mark.parametrize("execution", ["sync", "async"])
def test_a_run_of_two_agents_is_told_in_its_record(
    no_weights, checkpoint, tmp_path, monkeypatch, execution
):
    from bench_tasks import runner
    from bench_tasks.config import RunConfig
    from bench_tasks.reports.report import page
    from bench_tasks.verdicts import score_files

    monkeypatch.setattr("bench_tasks.tasks.lift_pot.TASK.__class__.time_limit_s", 1.0)
    config = RunConfig(
        ("lift_pot",), policy=f"pair:checkpoint={checkpoint},steps=1,partner=slow,odd=left",
        cameras=(), out=str(tmp_path / "out"), image_size="64x48", execution=execution,
    )  # fmt: skip
    (live,) = runner.run(config).episodes
    (scored,) = score_files.load_scores(score_files.newest_scores(tmp_path / "out"))
    assert scored.teamwork == live.teamwork
    assert re.fullmatch("pair [0-9a-f]{8} steps=1, left slow, x0.5", scored.policy)
    partner = scored.teamwork["partner"]
    assert (partner["kind"], partner["odd"], partner["factor"]) == ("slow", "left", 0.5)
    looks = 5  # every 0.2 s for 1 s, the first of which has nothing to compare with
    assert [partner["agents"][arm]["looks"] for arm in ("left", "right")] == [looks - 1] * 2
    assert scored.teamwork["acted_s"] == pytest.approx(1.0)
    unrecorded = runner.run(replace(config, record=False, out=str(tmp_path / "none"))).episodes[0]
    assert unrecorded.teamwork == scored.teamwork
    assert "Two arms, two agents" in page([scored], {}, {}, "")


def test_wrong_options_are_named(checkpoint, tmp_path):
    joint = str(steady_checkpoint(tmp_path / "joint.safetensors"))
    for options, message in (
        ({"partner": "odd"}, "unknown partner 'odd': choose from fast, normal, slow, str"),
        ({"odd": "both"}, "unknown odd 'both'"),
        ({"execute": 9}, "execute must be from 0 to 4, got 9"),
        ({"partner": "slow", "factor": 2}, "factor of a slow partner must be from 0.05 to 1, got"),
        ({"partner": "fast", "factor": 0.5}, "factor of a fast partner must be from 1 to 10, got"),
        ({"factor": 2}, "factor 2 is of no use with a normal partner"),
        ({"partner": "stranger"}, "stranger names the policy of partner=stranger, got ''"),
        ({"stranger": "hold"}, "got 'hold' with partner=normal"),
        ({"partner": "stranger", "stranger": "nobody"}, "unknown policy 'nobody'"),
        ({"partner": "stranger", "stranger": "humanoid"}, "humanoid cannot move one arm of an fr3"),
        ({"checkpoint": joint}, "was not trained with --apart"),
    ):
        with pytest.raises(UsageError, match=message):
            made(options.pop("checkpoint", checkpoint), **options)
