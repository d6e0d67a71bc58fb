"""What the nodes share that conduct a run: `task` one of episodes, `probe` one of probes."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence

from bench_interfaces.srv import Record

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.ros.node_ros import BenchNode, Caller, LostNode, Stopped

__all__ = ["Conductor", "finish_recording", "wait_for_services"]

FINISH_WAIT_S = 10.0
"""How long the recorder may take to get the rest of the messages."""


class Conductor(BenchNode):
    """Conducts one run on a thread of its own, and ends when that is over."""

    def __init__(self, name: str) -> None:
        """The run begins with `start`."""
        super().__init__(name)
        self.died = ""
        self._thread = threading.Thread(target=self._work, daemon=True)

    def conduct(self) -> int:
        """The whole run; returns the exit status. Stopped when the node was told to stop."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin the run on its thread."""
        self._thread.start()

    def interrupt(self) -> None:
        """A signal came: end with status 130 unless the run was over.

        A launch that ends because a node died sends one, too: then that is the cause.
        """
        self.died = self.watch.died()
        self.status = self.status or (1 if self.died else 130)

    def _work(self) -> None:
        status = 1
        try:
            status = self.conduct()
        except Stopped:
            status = 130
        except UsageError as error:
            sys.stderr.write(f"{error}\n")
            status = 2
        except BenchError as error:
            sys.stderr.write(f"{error}\n")
        except Exception:  # noqa: BLE001 - the thread must not die silently
            traceback.print_exc()
        finally:
            self.stop(status)


def wait_for_services(
    node: BenchNode, needed: Mapping[str, Sequence[Caller]], timeout_s: float
) -> None:
    """Wait for each node's services, and watch the node from then on.

    LostNode names the nodes that do not offer theirs in time.
    """
    end = time.monotonic() + timeout_s
    while True:
        node.watch.check(*needed)
        missing = {
            name: [call.name for call in calls if not call.ready] for name, calls in needed.items()
        }
        missing = {name: names for name, names in missing.items() if names}
        if not missing:
            for name in needed:
                node.watch.add(name)
            return
        if node.stopping.wait(0.02):
            raise Stopped
        if time.monotonic() > end:
            lacking = "; ".join(f"{k} ({', '.join(v)})" for k, v in missing.items())
            raise LostNode(f"not there after {timeout_s:g} s: {lacking}")


def finish_recording(recorder: Caller, request: Record.Request) -> None:
    """Have a bag closed once everything has arrived; errors as of `Caller.call`."""
    end = time.monotonic() + FINISH_WAIT_S
    while recorder.call(request).waiting:
        request.force = time.monotonic() > end
        time.sleep(0.01)
