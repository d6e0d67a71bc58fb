"""Executes the chunks of a policy: synchronously, asynchronously, or with real-time chunking.

A call made at state s, whose answer takes d control periods, answers s: its action i was meant
for the state s + i.

- `sync`: the arms hold their last command for d periods, then the answer is executed from its
  first action on. Nothing moved meanwhile, so nothing of it is stale.
- `async`: the chunk before goes on for the d periods, then the answer takes over from its action
  d on; the d before that are stale and are dropped. An action is thus executed at the state that
  it was meant for, or never.
- `rtc`: as `async`, and where both chunks have actions after the first d, they are blended, with
  the weights of real-time chunking (Black, Galliker and Levine 2025, arXiv 2506.07339, eq. 5).

Of that paper are the d frozen actions, the decaying weights, d <= execute, and the greatest of the
latest delays as the delay to expect. Its point is that the policy *inpaints*: the denoising is
guided to a new chunk that continues the old. A policy that can has the method
`infer_with_prefix(observation, prefix, weights)` and is asked by it: prefix (k, 16) is what the
arms do from this state on, weights (k,) how binding that is, 1 for what cannot be changed. For any
other policy the two chunks' commands are averaged with the same weights, which is smooth, but lies
between two ways round an obstacle when the chunks took one each.

When no answer comes by the deadline, or all of it is stale, what is left of the chunk before is
executed, then the arms hold, and after `HOLD_S` of that the episode ends with the reason. A late
answer is on record and is never executed; a new call is made once the policy is free again.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.execution import CALL, HOLD_S, Execution, periods
from bench_tasks.protocols import Policy
from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    CONTROL_PERIOD_NS,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
    WorldState,
)

__all__ = ["ExecutedPolicy", "executed", "overlap_weights"]

LATEST_DELAYS = 10


def executed(policy: Policy, execution: Execution, realtime: bool = False) -> Policy:
    """The policy, its chunks executed like that; itself when nothing is to be done."""
    return ExecutedPolicy(policy, execution, realtime) if execution.active else policy


def overlap_weights(count: int, delay: int) -> np.ndarray:
    """How binding each of the next `count` actions of the chunk before is, (count,) in [0, 1].

    1 for the first `delay`, which run while the answer is computed; then c (e^c - 1) / (e - 1)
    with c falling in equal steps from almost 1 to almost 0.
    """
    index = np.arange(count)
    c = (count - index) / max(1, count - delay + 1)
    return np.where(index < delay, 1.0, c * np.expm1(c) / np.expm1(1.0))


class ExecutedPolicy:
    """A `Policy` around another one. Each call of it is one call of the other.

    The chunk it returns is what the arms do until the next call; with `realtime` also what they
    would do after that. Its `detail` says under "policy_call", for the record: `answers`, the
    state; `latency_ns` charged and `wall_ns` taken; `delay` in periods; `actions` of the answer
    and how many of them were `dropped`; periods `held` and `blended` in this chunk, `inpainted` if
    the policy did that; `late`, why the answer was not used; `until_next` call, in periods.

    A policy that takes plans hands out one motion in parts, which do not replace each other: once
    it has asked for a plan, its chunks are passed on as they are.
    """

    def __init__(self, policy: Policy, execution: Execution, realtime: bool = False) -> None:
        """Wrap `policy`; UsageError when `execution` is wrong."""
        self._policy, self._execution = policy, execution.checked()
        self._realtime = realtime
        self._thread: threading.Thread | None = None
        self._begin(CONTROL_PERIOD_NS)

    @property
    def metadata(self) -> Metadata:
        """The policy's own."""
        return self._policy.metadata

    def _begin(self, period_ns: int, size: int = ACTION_SIZE) -> None:
        self._period_ns = period_ns
        self._rows, self._from = np.zeros((0, size)), 0
        """What the arms do, from state `_from` on."""
        self._takes_plans = False
        self._delays: deque[int] = deque(maxlen=LATEST_DELAYS)
        self._late, self._idle, self._stopped = "", 0, ""
        """Why there is no action in time, for how many periods the arms have held, the end."""

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode; BenchError when the policy is still busy with the last one."""
        if self._thread is not None and self._thread.is_alive():
            raise BenchError("the policy is still busy with a call of an earlier episode")
        self._begin(scene.control_period_ns, embodiments.get(scene.embodiment).action_size)
        self._policy.reset(scene, seed)

    def accept(self, plan: Plan) -> None:
        """Hand on a plan."""
        self._policy.accept(plan)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return what the arms do until the next call; BenchError when they held too long."""
        if self._stopped:
            raise BenchError(self._stopped)
        if self._takes_plans:
            return self._policy.infer(observation)
        state = observation.state
        ahead = self._rows[state.seq - self._from :] if state.seq >= self._from else self._rows[:0]
        chunk, wall_ns, inpainted = self._ask(observation, ahead)
        if chunk is not None and chunk.needs_plan:
            self._takes_plans = True
            return chunk
        return self._follow(state, ahead, chunk, wall_ns, inpainted)

    # -- the call --------------------------------------------------------------------------------

    def _ask(
        self, observation: Observation, ahead: np.ndarray
    ) -> tuple[ActionChunk | None, int, bool]:
        """The answer (None when there is none yet), the wall time in ns, whether it inpainted."""
        inpaint = getattr(self._policy, "infer_with_prefix", None)
        inpaints = self._execution.mode == "rtc" and inpaint is not None and len(ahead) > 0

        def call() -> ActionChunk:
            if not inpaints:
                chunk = self._policy.infer(observation)
            else:
                weights = overlap_weights(len(ahead), self._expected_delay())
                chunk = inpaint(observation, ahead.copy(), weights)  # type: ignore[misc]
            return chunk.checked(observation.state.seq, len(observation.state.command))

        begun = time.perf_counter_ns()
        measured = self._execution.latency == "measured"
        chunk = self._in_time(call) if measured else call()
        return chunk, time.perf_counter_ns() - begun, inpaints

    def _expected_delay(self) -> int:
        if self._execution.latency == "measured":
            return max(self._delays, default=0)
        return periods(self._execution.charged_ns(0), self._period_ns)

    def _in_time(self, call: Callable[[], ActionChunk]) -> ActionChunk | None:
        """What the call gives; None when the time is over by which the episode must have ended."""
        done: list[Any] = []

        def work() -> None:
            try:
                done.append(call())
            except BaseException as error:  # noqa: BLE001 - raised again, where it was called
                done.append(error)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        self._thread.join(self._execution.deadline_s + HOLD_S)
        if not done:
            return None
        if isinstance(done[0], BaseException):
            raise done[0]
        return done[0]

    # -- what is made of the answer --------------------------------------------------------------

    def _follow(
        self, state: WorldState, ahead: np.ndarray, chunk: ActionChunk | None, wall_ns: int,
        inpainted: bool,
    ) -> ActionChunk:
        execution = self._execution
        latency_ns = execution.charged_ns(wall_ns)
        delay = periods(latency_ns, self._period_ns)
        self._delays.append(delay)
        values = self._rows[:0] if chunk is None else chunk.values
        late = self._why_late(state.seq, chunk, latency_ns, delay)
        last = ahead[-1] if len(ahead) else state.command
        held = np.tile(last, (max(0, delay - len(ahead)), 1))
        waiting = np.concatenate([ahead[:delay], held])[: self._patience(delay, len(ahead), late)]
        dropped, blended = len(values), 0
        if self._stopped:
            rows, until_next = waiting, len(waiting)
        elif late:
            rows, until_next = np.concatenate([waiting, ahead[delay:]]), delay
        elif execution.mode == "sync":
            rows, dropped = np.concatenate([waiting, values[: execution.execute or None]]), 0
            until_next = len(rows)
        else:
            fresh, dropped = values[delay:], delay
            if execution.mode == "rtc":
                blended = max(0, min(len(ahead), len(values)) - delay)
            if blended and not inpainted:
                weight = overlap_weights(len(ahead), delay)[delay : delay + blended, None]
                new, rest = fresh[:blended], fresh[blended:]
                # In this form two chunks that agree are left as they are, to the bit.
                new = new + weight * (ahead[delay : delay + blended] - new)
                fresh = np.concatenate([new, rest])
            rows, until_next = np.concatenate([waiting, fresh]), self._horizon(len(values), delay)
        if chunk is None and not self._stopped:
            self._stopped = late
        self._rows, self._from = rows, state.seq
        detail = {
            "answers": state.seq, "latency_ns": latency_ns, "wall_ns": wall_ns, "delay": delay,
            "actions": len(values), "dropped": dropped, "blended": blended,
            "inpainted": inpainted, "held": max(0, min(delay, len(waiting)) - len(ahead)),
            "late": late, "until_next": until_next,
        }  # fmt: skip
        now = rows if self._realtime else rows[:until_next]
        told = chunk.detail if chunk is not None else {}
        return ActionChunk(state.seq, now, detail={**told, CALL: detail})

    def _why_late(
        self, seq: int, chunk: ActionChunk | None, latency_ns: int, delay: int
    ) -> str:
        """Why the answer must not be executed; "" when it may."""
        limit_s, took_s = self._execution.deadline_s, latency_ns / 1e9
        if chunk is None:
            return f"no answer to state {seq} within {took_s:.1f} s, the deadline is {limit_s:g} s"
        if took_s > limit_s:
            return f"the answer to state {seq} took {took_s:.3f} s, the deadline is {limit_s:g} s"
        if self._execution.mode != "sync" and delay >= len(chunk.values):
            return (f"all {len(chunk.values)} actions answering state {seq} were stale after "
                    f"{delay} periods")  # fmt: skip
        return ""

    def _patience(self, delay: int, ahead: int, late: str) -> int:
        """How many of the periods until the answer the arms wait; fewer than all ends the episode.

        Waiting within the deadline is no fault, unless the answer before was late already.
        """
        deadline = periods(round(self._execution.deadline_s * 1e9), self._period_ns)
        since = 0 if self._late else min(delay, deadline) if late else delay
        idle = self._idle + max(0, delay - max(since, ahead))
        over = idle - periods(round(HOLD_S * 1e9), self._period_ns)
        if over >= 0 and idle > self._idle:
            self._stopped = f"no action for {HOLD_S:g} s: {late or self._late}"
            return delay - over
        self._late, self._idle = late, idle if late else 0
        return delay

    def _horizon(self, actions: int, delay: int) -> int:
        """Periods from this call to the next: at least until its answer is there."""
        wanted = self._execution.execute
        if not wanted:
            # Enough must be left to run, or to blend, during the next call.
            wanted = actions - delay if self._execution.mode == "async" else actions // 2
        return min(actions, max(wanted, delay, 1))
