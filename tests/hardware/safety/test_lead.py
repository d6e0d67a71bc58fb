"""How late a robot does what it is sent is learnt, whatever that lateness does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.vocabulary import ARM_COLUMNS, ActionChunk
from hardware.safety import sent
from hardware.safety.command import at_rest_after
from hardware.safety.motion import Moving, breach
from hardware.safety.plan import Plan
from tests.hardware.safety.ideal import HOME, LIMITS
from tests.hardware.safety.test_plan import state

ACTIONS = 10


class Course:
    """A robot that takes what it is sent some periods late, told something new all the time."""

    def __init__(self, late, lead=0, every=1, seed=0):
        """`late(seq)`: by how many periods; a chunk comes `every` so many."""
        self.plan = Plan(replace(LIMITS, lead_periods=lead), True)
        self.late, self.every, self.rng = late, every, np.random.default_rng(seed)
        self.seq, self.mail, self.active = 0, [], None
        self.executed = [HOME.copy()]
        self.interrupted, self.leads = [], []
        self.plan.see(state(0, HOME), False)

    def send(self, chunk):
        if chunk is not None:
            last = self.mail[-1][0] if self.mail else 0  # none overtakes the one before
            self.mail.append((max(last, self.seq + self.late(self.seq)), chunk))

    def ask(self):
        """Somebody's chunk, other than the one before, within the limits and with its stop."""
        done, period_s = self.plan, LIMITS.period_s
        if not done.settled:
            return
        coming = done.coming()
        moving = done.moving(coming)
        away = moving.position[0] - HOME[0]
        wish = np.clip(self.rng.uniform(-0.6, 0.6) - 2.0 * away, -0.8, 0.8)
        speed = moving.velocity[0] + np.clip(
            wish - moving.velocity[0], -4.0 * period_s * np.arange(1, ACTIONS + 1),
            4.0 * period_s * np.arange(1, ACTIONS + 1),
        )  # fmt: skip
        passed = np.tile(done.begin(coming), (ACTIONS, 1))
        passed[:, 0] += np.cumsum(speed) * period_s
        if breach(LIMITS, moving, passed[:, ARM_COLUMNS]) is not None:
            return  # as the supervisor would refuse it
        end = done.moving(np.concatenate([coming, passed]))
        rows = np.concatenate([coming, passed, at_rest_after(LIMITS, end, passed)])
        chunk = ActionChunk(self.seq, rows)
        done.go(chunk, rows)
        self.send(chunk)

    def step(self, ask=True):
        if ask and self.seq % self.every == 0:
            self.ask()
        for come in [item for item in self.mail if item[0] <= self.seq]:
            self.mail.remove(come)
            self.active = come[1]
        action = self.executed[-1]
        if self.active is not None:
            values = self.active.values
            action = values[min(self.seq - self.active.seq, len(values) - 1)]
        self.executed.append(action.copy())
        self.seq += 1
        self.plan.see(state(self.seq, action), False)
        if self.plan.astray() is not None:
            self.interrupted.append(self.seq)
            self.send(self.plan.halt(False))
        self.leads.append(self.plan.lead)

    def go(self, periods):
        for _ in range(periods):
            self.step()
        return self

    def smooth(self):
        """Whether all that was done is within the limits."""
        rows = np.array(self.executed)[:, ARM_COLUMNS]
        start = Moving.after([rows[0]], LIMITS.period_s)
        return breach(LIMITS, start, rows[1:]) is None


def between(low, high, share=1.0, seed=1):
    """Some of the time `high`, or anything from `low` to it, otherwise `low`."""
    rng = np.random.default_rng(seed)
    late = rng.integers(low, high + 1, 5000)
    if share < 1.0:
        late = np.where(rng.random(5000) < share, high, low)
    return lambda seq: int(late[seq])


@pytest.mark.parametrize("late", [lambda _: 0, lambda _: 3, between(0, 3), between(0, 3, 0.05)])
@pytest.mark.parametrize("every", [1, 4])
def test_whatever_lateness_is_within_the_lead_the_arms_do_not_notice(late, every):
    course = Course(late, lead=3, every=every).go(400)
    assert course.interrupted == [] and set(course.leads) == {3} and course.smooth()
    assert np.ptp(np.array(course.executed)[:, 0]) > 0.1


def test_and_would_if_it_were_not():
    course = Course(between(0, 3), lead=2).go(40)
    assert course.interrupted and not course.smooth()


@pytest.mark.parametrize("late", range(1, 5))
@pytest.mark.parametrize("every", [1, 5])
def test_a_fixed_lateness_is_learnt_at_once(late, every):
    course = Course(lambda _: late, every=every).go(300)
    assert course.leads[-1] == late
    assert len(course.interrupted) <= 6 and max(course.interrupted, default=0) < 60


@pytest.mark.parametrize("every", [1, 5])
def test_a_lateness_that_grows_is_followed_step_by_step(every):
    course = Course(lambda seq: min(4, 2 * (seq // 150)), every=every).go(500)
    assert course.leads[-1] == 4 and course.leads[140] == 0
    assert all(150 <= seq < 210 or 300 <= seq < 360 for seq in course.interrupted)
    assert len(course.interrupted) <= 12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "most"), [(1.0, 8), (0.02, 8)])
def test_a_lateness_that_varies_settles_at_its_greatest(share, most, seed):
    """When only two misses running counted there were up to 74, with 50 in a row."""
    course = Course(between(1, 3, share, seed + 1), seed=seed).go(450)
    assert course.leads[-1] == 3 and len(course.interrupted) <= most


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("latest", "most"), [(7, 12), (9, 14)])
def test_orders_later_than_can_be_learnt_do_not_throw_the_arms_about(latest, most, seed):
    """Bursts of them. With orders sent on while the arms were astray: up to 40 and 46 times."""
    rng, late = np.random.default_rng(seed), np.ones(800, int)
    for begin in range(100, 700, 150):
        count = int(rng.integers(5, 20))
        late[begin : begin + count] = rng.integers(2, latest + 1, count)
    course = Course(lambda seq: int(late[seq]), lead=1, seed=seed).go(700)
    assert len(course.interrupted) <= most
    assert np.ptp(np.array(course.executed)[-100:, 0]) > 0.05, "it goes on in between"


def test_a_lateness_that_was_once_is_forgotten_and_one_that_was_not_ever_later(monkeypatch):
    monkeypatch.setattr(sent, "QUIET_PERIODS", 50)
    once = Course(lambda seq: 4 if seq == 60 else 1, lead=1).go(900)
    assert max(once.leads) > 2 and once.leads[-1] == 1
    assert all(60 <= seq < 70 for seq in once.interrupted)
    always = Course(lambda _: 2, lead=1).go(900)
    tried = [k for k in range(1, 900) if always.leads[k] < always.leads[k - 1]]
    assert len(tried) >= 3 and (np.diff(np.diff(tried)) > 0).all(), tried
    assert len(always.interrupted) <= 2 * (len(tried) + 2)


def test_a_robot_at_rest_says_nothing_of_its_lateness(monkeypatch):
    monkeypatch.setattr(sent, "QUIET_PERIODS", 60)
    course = Course(lambda _: 2, lead=1).go(15)
    assert course.leads[-1] == 2
    for _ in range(200):
        course.step(ask=False)
    assert course.plan.lead == 2
