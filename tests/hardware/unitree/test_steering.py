"""What waist and arms are told: followed, kept, braked."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments
from hardware.unitree.steering import Steering

ROBOT = embodiments.get("g1")
HOME, COLUMNS = ROBOT.home, ROBOT.joint_columns


class Driver:
    """Records what it is told."""

    def __init__(self):
        self.mode, self.told, self.hears = "following", [], True
        self.state_ = SimpleNamespace(
            quaternion=np.array([1.0, 0, 0, 0]), told=HOME[COLUMNS], rests=False, seq=0
        )

    def state(self):
        if not self.hears:
            raise BenchError("no state of the robot")
        return self.state_

    def move(self, seq, q, tau, due_ns):
        self.told.append(("move", seq, np.array(q), np.array(tau), due_ns))

    def hold(self, seq=-1, tau=None):
        self.told.append(("hold", seq, None, tau, 0))

    def kinds(self):
        return [what for what, *_ in self.told]


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def steering(driver):
    made = Steering(driver, 0.15, gravity=True)
    made.take(HOME)
    return made


def ahead(rad):
    action = HOME.copy()
    action[3] += rad
    return action


def test_an_action_is_followed_unless_it_begins_far_away(steering, driver):
    assert steering.follow(ahead(-0.1)) == ""
    steering.tell(5, 10.0)
    what, seq, q, tau, due_ns = driver.told[-1]
    assert (what, seq, due_ns) == ("move", 5, 10_030_000_000)
    assert q[3] == pytest.approx(HOME[3] - 0.1) and np.abs(tau).max() > 1.0
    refused = steering.follow(ahead(-0.3))
    assert "0.200 rad away at left_shoulder_pitch_joint, more than 0.15" in refused
    steering.tell(6, 10.02)
    assert (driver.told[-1][2] == q).all()


def test_a_stop_is_the_buss_and_what_it_said_of_before_is_not_commanded(steering, driver):
    steering.follow(ahead(-0.1))
    steering.tell(5, 10.0)
    driver.state_.told = (HOME + 0.07)[COLUMNS]  # some periods old, and at rest for all it says
    driver.state_.rests = True
    steering.stay()
    assert driver.kinds()[-1] == "hold"
    assert steering.follow(ahead(-0.12)) == ""
    for _ in range(5):
        steering.tell(0, 0.0)
    assert set(driver.kinds()[-6:]) == {"hold"}
    assert np.abs(driver.told[-1][3]).max() > 1.0, "what they weigh is held up"
    driver.hears = False
    steering.tell(0, 0.0)
    assert driver.kinds()[-1] == "hold"
    driver.hears = True
    driver.state_.seq, driver.state_.told = driver.told[-1][1], ahead(-0.11)[COLUMNS]
    steering.tell(8, 20.0)
    what, seq, q, *_ = driver.told[-1]
    assert (what, seq) == ("move", 8) and (q == ahead(-0.11)[COLUMNS]).all()
    # Another stop is another one: that the first one rests says nothing of it.
    steering.stay()
    steering.tell(0, 0.0)
    assert driver.kinds()[-2:] == ["hold", "hold"]


def test_nothing_is_told_once_they_are_not_under_control(steering, driver):
    driver.mode = "idle"
    for _ in range(100):
        steering.tell(0, 0.0)
    steering.stay()
    assert driver.told == [] and not steering.engaged
    driver.mode = "following"
    steering.tell(0, 0.0)
    assert driver.told == [], "they are had again when somebody takes them"


def test_gravity_may_be_left_out(driver):
    assert Steering(driver, 0.15, gravity=False).torque(HOME[COLUMNS]) == [0.0] * 17
