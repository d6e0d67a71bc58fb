"""Where joints are told to be: followed, refused, held, let go of."""

import numpy as np
import pytest

from bench_tasks.robots import g1
from hardware.unitree.motion import BRAKE_RAD_S2, TORQUE_NM_S, Follower, Limits

DT = 0.005
NAMES = g1.JOINT_NAMES[12:]
HOME = g1.HOME_RAD.copy()


def follower(damps=False, **changes):
    settings = {
        "names": NAMES, "range_rad": g1.LIMITS_RAD[12:], "speed": np.full(17, 2.0),
        "jump_rad": 0.3, "stale_s": 0.1, "release_s": 1.0, "ramp_s": 1.0, "damps": damps,
    }  # fmt: skip
    return Follower(Limits(**{**settings, **changes}))


def run(joints, seconds, now=0.0, wish=None, every=4):
    """Step for so long, commanding wish(t) at 50 Hz; the trace of (q, v, weight, mode)."""
    trace = []
    for k in range(round(seconds / DT)):
        t = now + k * DT
        if wish is not None and k % every == 0:
            assert joints.command(k, wish(t), np.zeros(17), t + 0.03, t) == ""
        joints.step(t, DT)
        trace.append((joints.q.copy(), joints.v.copy(), joints.weight, joints.mode))
    return trace


def engaged(**changes):
    joints = follower(**changes)
    joints.engage(HOME, 0.0)
    run(joints, 1.1, wish=lambda _: HOME)
    return joints


def test_the_weight_goes_up_while_the_arms_are_held():
    joints = follower()
    assert run(joints, 0.1)[-1][3] == "idle"
    joints.engage(HOME, 0.0)
    trace = run(joints, 1.1, wish=lambda _: HOME + 0.2)
    weights = [weight for _, _, weight, _ in trace]
    assert np.diff(weights).max() <= DT + 1e-9 and weights[-1] == 1.0
    held = [q for q, _, weight, _ in trace if weight < 1.0]
    assert np.abs(np.array(held) - HOME).max() == 0.0


def test_a_motion_is_followed_within_its_delay_and_speed():
    joints = engaged()

    def wish(t):
        return HOME + 0.3 * np.sin(2.0 * (t - 1.1))

    trace = run(joints, 3.0, 1.1, wish)
    late = [q - wish(1.1 + k * DT - 0.03) for k, (q, *_) in enumerate(trace)][20:]
    assert np.abs(late).max() < 0.01
    assert max(np.abs(v).max() for _, v, *_ in trace) < 0.75


def test_speed_is_limited():
    joints = engaged(speed=np.full(17, 0.5))
    trace = run(joints, 0.1, 1.1, lambda _: HOME + 0.25)
    assert max(np.abs(v).max() for _, v, *_ in trace) == 0.5
    assert trace[-1][0] - HOME == pytest.approx(np.full(17, 0.05), abs=0.01)


@pytest.mark.parametrize(
    ("q", "tau", "why"),
    [
        (HOME[:16], np.zeros(17), "16 positions for 17 joints"),
        (HOME, np.zeros(3), "3 torques for 17 joints"),
        (np.where(np.arange(17) == 4, np.nan, HOME), np.zeros(17),
         "position nan of left_shoulder_roll_joint"),
        (HOME, np.full(17, np.inf), "torque inf of waist_yaw_joint"),
        (np.where(np.arange(17) == 1, 0.6, HOME), np.zeros(17),
         "0.600 rad of waist_roll_joint, whose range is -0.520 to 0.520"),
        (np.where(np.arange(17) == 6, HOME + 0.8, HOME + 0.199), np.zeros(17),
         "left_elbow_joint is told to be 0.6"),
        (["a"] * 17, np.zeros(17), "position a of waist_yaw_joint"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_the_joints_stop(q, tau, why):
    joints = engaged()
    run(joints, 0.5, 1.1, lambda t: HOME + 0.2 * np.sin(3 * (t - 1.1)))
    assert np.abs(joints.v).max() > 0.1
    assert joints.command(9, q, tau, 1.7, 1.6).startswith(why)
    speeds = [np.abs(v).max() for _, v, *_ in run(joints, 0.08, 1.6)]
    assert speeds[-1] == 0.0 and max(np.diff(speeds)) <= 0.0
    assert -min(np.diff(speeds)) <= BRAKE_RAD_S2 * DT + 1e-9


def test_silence_holds_then_lets_go_then_nothing_is_sent():
    joints = engaged()
    run(joints, 0.4, 1.1, lambda t: HOME + 0.2 * np.sin(3 * (t - 1.1)))
    trace = run(joints, 2.5, 1.5)
    still = [k for k, (_, v, *_) in enumerate(trace) if not v.any()]
    assert still[0] * DT < 0.25, "braked after 0.1 s of silence"
    held = trace[still[0]][0]
    assert all((q == held).all() for q, *_ in trace[still[0] :])
    modes = [mode for *_, mode in trace]
    assert modes.index("releasing") * DT == pytest.approx(1.0, abs=0.03)
    weights = np.array([weight for _, _, weight, _ in trace])
    assert np.diff(weights).min() >= -DT - 1e-9 and weights[-1] == 0.0 and modes[-1] == "idle"
    assert joints.command(1, HOME, np.zeros(17), 4.0, 4.0) == (
        "the joints are not under control: idle"
    )
    joints.engage(HOME + 0.1, 5.0)
    assert joints.mode == "engaging" and joints.weight == 0.0 and (joints.q == HOME + 0.1).all()


def test_motors_that_nobody_commands_are_damped():
    joints = engaged(damps=True)
    assert joints.mode == "following"
    assert run(joints, 0.2, 1.1)[-1][3] == "damping"
    joints.engage(HOME, 2.0)
    assert joints.mode == "following"
    joints.release()
    assert joints.mode == "damping"


def test_what_another_left_in_control_is_let_go_of_from_where_it_is():
    joints = follower()
    joints.take_over(HOME + 0.4, np.zeros(17), 0.0)
    assert joints.weight == 1.0 and joints.mode == "releasing"
    trace = run(joints, 1.1)
    assert trace[-1][3] == "idle" and all((q == HOME + 0.4).all() for q, *_ in trace)


def test_a_joint_found_beyond_its_range_is_held_there():
    joints = follower()
    outside = HOME.copy()
    outside[1] = 0.55
    joints.engage(outside, 0.0)
    assert (run(joints, 0.05)[-1][0] == outside).all()


@pytest.mark.parametrize(("ago_s", "said"), [(0.5, "0.500 s ago"), (-3.0, "-3.000 s ago")])
def test_a_command_of_another_time_is_refused(ago_s, said):
    joints, now = engaged(), 1.1
    refused = joints.command(1, HOME + 0.1, np.zeros(17), now - ago_s, now)
    assert said in refused and joints.at_rest
    assert said in joints.hold(2, None, now - ago_s, now) and joints.seq not in (1, 2)
    assert joints.command(3, HOME + 0.1, np.zeros(17), now - 0.05, now) == ""


def test_to_hold_brakes_and_never_turns_round():
    joints, end = engaged(), 1.1 + 1.2
    run(joints, 1.2, 1.1, lambda t: HOME + 1.0 * (t - 1.1) * (np.arange(17) == 6))
    speed = joints.v[6]
    assert speed > 0.9
    trace = []
    for k in range(60):
        if k % 4 == 0:
            assert joints.hold(-7, None, end + k * DT, end + k * DT) == ""
        joints.step(end + k * DT, DT)
        trace.append(joints.v[6])
    changes = np.diff([speed, *trace])
    assert min(trace) == 0.0 and max(changes) <= 0.0
    assert -min(changes) <= BRAKE_RAD_S2 * DT + 1e-9
    assert joints.at_rest and joints.seq == -7 and joints.mode == "following"
    run(joints, 0.9, end + 0.3)  # a hold counts as a command, and its end as silence
    assert joints.mode == "following"
    run(joints, 0.2, end + 1.2)
    assert joints.mode == "releasing"


def test_a_torque_comes_and_goes_gently_and_to_hold_keeps_it():
    joints, weighs = engaged(), np.full(17, 5.0)
    steps = [joints.tau]
    for k in range(40):
        t = 1.1 + k * DT
        assert joints.command(k, HOME, weighs, t, t) == ""
        joints.step(t, DT)
        steps.append(joints.tau)
    assert (joints.tau == weighs).all()
    assert np.abs(np.diff(steps, axis=0)).max() <= TORQUE_NM_S * DT + 1e-9
    assert joints.hold(1, None, 1.4, 1.4) == ""
    joints.step(1.4, DT)
    assert (joints.tau == weighs).all()
    assert joints.hold(1, [np.nan] * 17, 1.4, 1.4).startswith("torque nan")
    other = follower()
    other.take_over(HOME, weighs, 0.0)
    other.step(0.0, DT)
    assert (other.tau == weighs).all()


def test_where_a_joint_is_told_to_be_is_a_number():
    joints = engaged()
    joints.q[3] = np.nan
    assert "left_shoulder_pitch_joint" in joints.command(1, HOME, np.zeros(17), 1.1, 1.1)
