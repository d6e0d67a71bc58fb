"""What every node needs of rclpy: start and stop, parameters, services with deadlines, QoS.

A node runs its callbacks on one executor thread while the main thread waits for a signal, so that
Ctrl-C or SIGTERM ends it at once and without a traceback, whatever the callbacks are doing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rclpy
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.signals import SignalHandlerOptions

from bench_tasks.bags.bag_writer import RecordingError
from bench_tasks.errors import (
    BenchError,
    BrokenOff,
    Crash,
    GoneNode,
    LateInput,
    LostNode,
    MemoryRaised,
    UsageError,
)
from bench_tasks.ros.presence import ASKED_TOO_S, Presence, Watch

__all__ = [
    "BUTTON", "LATCHED", "LATEST", "PERIODIC", "TRACK", "BenchNode", "Caller", "LostNode",
    "Pending", "Stopped", "Unwatched", "answer", "from_message", "main", "message_type",
    "parameter", "serve_now", "steady_timer", "take_all", "to_message", "unwatched",
    "wait_for_listeners",
]  # fmt: skip

# rclpy.experimental.EventsExecutor was tried: with calls made from a second thread, as the task
# node makes them, its service responses do not arrive (rclpy 9.1.2).

TRACK = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=5000,
    reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE,
)  # fmt: skip
"""For the record: deep enough for a whole episode (100 s), and its readers count what they get.
Keep-all would block the world behind a reader that was killed."""

LATEST = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1,
    reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE,
)  # fmt: skip
"""For a reader that only wants the newest message."""

LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1,
    reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL,
)  # fmt: skip
"""For what a late reader must still get."""

BUTTON = (
    QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=10,
        reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE,
    ),
    QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=10,
        reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE,
    ),
    QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=10,
        reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL,
    ),
)  # fmt: skip
"""How a stop button is heard, each by a subscription of its own: DDS connects only a publisher that
promises at least what the reader asks for. The first hears everybody, the second whoever is
reliable even over a bad network, the third what was said before this node was there."""

PERIODIC = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=500,
    reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE,
)  # fmt: skip
"""For pictures and other standard topics."""


class Stopped(BaseException):
    """The node was told to stop; not an Exception, so that no error handling holds it up."""


class BenchNode(Node):
    """A node that can be stopped from any thread. `status` becomes the exit status."""

    def __init__(self, name: str) -> None:
        """Create the node; `stopping` is set once it must end."""
        # Parameters are read once, at the start; seven services less to wait on at each turn.
        super().__init__(name, start_parameter_services=False)
        self.stopping = threading.Event()
        self.status = 0
        self._wake: int | None = None
        self.presence, self.watch = Presence(name), Watch()

    def stop(self, status: int = 0) -> None:
        """End the process with this exit status. May be called from any thread."""
        self.status = self.status or status
        if self._wake is not None:
            os.write(self._wake, b"x")

    def start(self) -> None:
        """Called when callbacks are being executed."""

    def interrupt(self) -> None:
        """Called when a signal has come; what must still be saved is saved in `close`."""

    def close(self) -> None:
        """Called last, when callbacks are no longer executed."""


def main(make: Callable[[], BenchNode], args: list[str] | None = None) -> None:
    """Run the node that `make` returns, then end the process with its exit status.

    A BenchError of `make` is a user's mistake: one line and status 2. An exception in a callback
    ends the node with its traceback and status 1. SIGINT and SIGTERM end it quietly: status 0, or
    what the node says.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # the wake-up byte is what matters
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = make()
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        _leave(2)
    except InvalidParameterTypeException as error:
        sys.stderr.write(f"{error}\n")
        _leave(2)
    node._wake = write_end
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=_spin, args=(node, executor), daemon=True)
    thread.start()
    node.start()
    if os.read(read_end, 1) != b"x":
        node.interrupt()
    node.stopping.set()
    executor.shutdown(timeout_sec=0.0)
    thread.join(timeout=1.0)
    node.close()
    if node.status in (0, 130):
        node.presence.farewell()
    _leave(node.status)


def _spin(node: BenchNode, executor: SingleThreadedExecutor) -> None:
    try:
        executor.spin()
    except ExternalShutdownException:
        pass
    except BaseException:  # noqa: BLE001 - the process must end, and say why
        if not node.stopping.is_set():
            traceback.print_exc()
            node.stop(1)


def _leave(status: int) -> None:
    """End the process now. The middleware's own teardown can hang on threads that still work."""
    with contextlib.suppress(Exception):
        rclpy.try_shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def parameter(node: Node, name: str, default: Any) -> Any:
    """Declare a parameter of the type of `default` and return its value."""
    return node.declare_parameter(name, default).value


def steady_timer(node: Node, period_s: float, callback: Callable[[], None]):
    """A timer on wall time, whatever the node's clock: simulated time may stand still."""
    return node.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class Unwatched(CallbackGroup):
    """Subscriptions of this group are read by hand, with `take_all`; the executor passes them by.

    Waking the executor costs 0.2 ms, ten times as much as taking a message that is there: a node
    that gets each of a thousand states a second is better off looking when it needs them.
    """

    def can_execute(self, entity: Any) -> bool:
        """Never."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Never."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """It was not begun."""


def take_all(subscription: Any) -> Iterator[Any]:
    """What has come on a subscription since it was last read, in order."""
    while True:
        with subscription.handle:
            got = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if got is None:
            return
        yield got[0]


def serve_now(service: Any) -> None:
    """Answer the requests that have come, on the executor's thread, not waiting for its turn.

    For a callback that works on: the executor takes half a millisecond and more from the end of
    one callback to the next, and does not mind that what it was woken for is done.
    """
    while True:
        with service.handle:
            request, header = service.handle.service_take_request(service.srv_type.Request)
        if header is None:
            return
        response = service.callback(request, service.srv_type.Response())
        service.send_response(response, header)


def _unused(_: Any) -> None:
    """The callback of a subscription that is read by hand."""


def unwatched(node: Node, kind: type, topic: str, qos: QoSProfile, group: CallbackGroup) -> Any:
    """A raw subscription to be read with `take_all`. `group` is an `Unwatched` that is kept."""
    return node.create_subscription(kind, topic, _unused, qos, raw=True, callback_group=group)


def message_type(name: str) -> type:
    """The class of a message type such as `std_msgs/msg/Header`."""
    package, _, rest = name.partition("/")
    return getattr(importlib.import_module(f"{package}.msg"), rest.removeprefix("msg/"))


def to_message(data: bytes, message_type: type) -> Any:
    """The message that CDR bytes hold."""
    return deserialize_message(data, message_type)


def from_message(message: Any) -> bytes:
    """CDR bytes of a message; uninitialised bytes may trail."""
    return serialize_message(message)


def wait_for_listeners(publishers: Iterable[tuple[Any, int]], timeout_s: float) -> None:
    """Wait until each publisher is connected to so many subscriptions.

    What a publisher sends before it knows of a subscription is lost to it, so this comes before
    an episode's first message. BenchError names the topic that lacks one.
    """
    end = time.monotonic() + timeout_s
    for publisher, count in publishers:
        while (found := publisher.get_subscription_count()) < count:
            if time.monotonic() > end:
                raise BenchError(
                    f"{found} of {count} nodes that must listen to {publisher.topic_name} "
                    f"did so within {timeout_s:g} s"
                )
            time.sleep(0.005)


def answer(response: Any, work: Callable[[], None]) -> Any:
    """Do a service's work and say in its response whether that went well.

    An error travels as JSON, so that `Caller` can raise the same kind with all it carries.
    """
    fault: dict[str, Any]
    try:
        work()
        response.ok = True
        return response
    except BenchError as error:
        kind = next(c.__name__ for c in type(error).__mro__ if c.__name__ in _KINDS)
        fault = {"kind": kind, "text": str(error), "transcript": getattr(error, "transcript", {})}
    except Exception as error:  # noqa: BLE001 - a crash costs this call, never the node
        fault = {"kind": "Crash", "text": repr(error), "traceback": traceback.format_exc()}
    response.ok, response.error = False, json.dumps(fault, default=str)
    return response


_KINDS = {k.__name__: k for k in (
    RecordingError, LateInput, BrokenOff, MemoryRaised, UsageError, BenchError,
)}  # fmt: skip
"""Kinds of error that keep their kind between nodes."""


def _raised(text: str) -> Exception:
    """The error that another node's `answer` has put down."""
    fault = json.loads(text)
    if fault["kind"] == "Crash":
        return Crash(fault["text"], fault["traceback"])
    error = _KINDS[fault["kind"]](fault["text"])
    error.transcript = fault["transcript"]
    return error


class Caller:
    """Calls one service with a deadline, from any thread but the executor's."""

    def __init__(self, node: BenchNode, kind: type, name: str, deadline_s: float) -> None:
        """Prepare to call `name`."""
        self.name, self.node, self.deadline_s = name, node, deadline_s
        self.client = node.create_client(kind, name)
        self.owner = name.split("/")[1]

    @property
    def ready(self) -> bool:
        """Whether some node offers the service."""
        return self.client.service_is_ready()

    def call(self, request: Any, deadline_s: float | None = None) -> Any:
        """Send a request and return the response; see `Pending.result` for what is raised."""
        return self.begin(request).result(deadline_s)

    def begin(self, request: Any) -> Pending:
        """Send a request, to wait for its response later."""
        return Pending(self, request)


class Pending:
    """A call under way."""

    def __init__(self, caller: Caller, request: Any) -> None:
        """Send the request."""
        self._caller, self._was_ready = caller, caller.ready
        self._done = threading.Event()
        self._future = caller.client.call_async(request)
        self._future.add_done_callback(lambda _: self._done.set())

    def result(self, deadline_s: float | None = None) -> Any:
        """Wait for the response, from now on, and return it.

        BenchError, of the kind that the other node raised; Crash when it crashed; LostNode when
        no answer came in time, GoneNode when none will; Stopped when this node has to end.
        """
        caller, seen = self._caller, time.monotonic()
        limit_s = deadline_s or caller.deadline_s
        end = time.monotonic() + limit_s
        while not self._done.wait(min(0.2, max(0.0, end - time.monotonic()))):
            if caller.node.stopping.is_set():
                raise Stopped
            caller.node.watch.check(caller.owner)
            if caller.ready or not self._was_ready:
                seen = time.monotonic()
            elif time.monotonic() - seen > ASKED_TOO_S:
                raise GoneNode(f"node /{caller.owner} is gone")
            if time.monotonic() >= end:
                caller.client.remove_pending_request(self._future)
                raise LostNode(f"{caller.name} did not answer within {limit_s:g} s")
        response = self._future.result()
        if not getattr(response, "ok", True):
            raise _raised(response.error)
        return response
