"""Works through a list in several processes; one that dies costs its item, never the rest.

The processes are spawned, not forked: simulator, renderer and torch do not survive a fork.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from bench_tasks.errors import BenchError

__all__ = ["Lost", "Note", "Work", "work_through"]

Note = Callable[[str, float], None]
"""Takes what an item's work is doing, and the part of it in [0, 1] that is done."""
Work = Callable[[Any, Note], Any]
"""Makes a result from an item."""

GRACE_S = 5.0
"""How long a worker may take to end, when told to, before it is killed."""
NOTE_S = 0.2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS")
_SPAWN = get_context("spawn")


@dataclass(frozen=True)
class Lost:
    """In place of the result of an item whose worker died; `why` is a phrase."""

    why: str


def work_through(
    count: int, make: Callable[[], Work], items: Sequence[Any],
    done: Callable[[int, Any], None], note: Callable[[int, str, float], None],
) -> None:
    """Hand the items out to `count` processes, each to the next that is free.

    `make` is called once in each process and gives what works there; it and the items must be
    picklable. `done` takes each item's index and result, or `Lost`, in the order of their ends;
    `note` its index, text and part. A BenchError that the work raises ends everything, and so does
    Ctrl-C; what was done by then has been handed to `done`, and no process is left.
    """
    waiting = deque(range(len(items)))
    team: dict[Connection, _Worker] = {}
    ready = False

    def take(worker: _Worker) -> None:
        """Look at the next message of a worker; give it more to do when it asks."""
        nonlocal ready
        kind, content = worker.receive()
        if kind == "ready":
            ready = True
        elif kind == "note":
            note(worker.item, *content)
        elif kind == "done":
            index = worker.item
            if waiting:
                worker.give(waiting.popleft(), items)
            else:
                worker.dismiss()
            done(index, content)
        elif kind == "lost":
            del team[worker.connection]
            if worker.dismissed:
                return
            if not ready:
                raise BenchError(f"no worker process could be started: the first {content}")
            done(worker.item, Lost(content))
        elif kind == "error":
            error, text = content
            raise error(text)

    resource_tracker.ensure_running()  # starting it would undo the blocking of Ctrl-C below
    try:
        while waiting or team:
            while waiting and len(team) < count:
                worker = _Worker(make, count)
                team[worker.connection] = worker
                worker.give(waiting.popleft(), items)
            for connection in wait(list(team)):
                take(team[connection])  # type: ignore[index]
    except BaseException:
        _end(team.values())
        for worker in team.values():
            while (message := worker.receive())[0] != "lost":
                if message[0] == "done":
                    done(worker.item, message[1])
        raise
    finally:
        _end(team.values())


class _Worker:
    """One process, seen from the one that started it."""

    def __init__(self, make: Callable[[], Work], count: int) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self.item, self.dismissed = -1, False
        self.process: BaseProcess = _SPAWN.Process(target=_serve, args=(make, theirs), daemon=True)
        with _few_threads(count), _no_interrupt():
            self.process.start()
        theirs.close()  # else its end would go unnoticed

    def give(self, index: int, items: Sequence[Any]) -> None:
        """Have it work on an item."""
        self.item = index
        with suppress(OSError):  # it has died, which is noticed when it is listened to
            self.connection.send((items[index],))

    def dismiss(self) -> None:
        """Let it end."""
        self.dismissed = True
        with suppress(OSError):
            self.connection.send(None)

    def receive(self) -> tuple[str, Any]:
        """What it says next; ("lost", why) when it says no more."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(GRACE_S)
            code = self.process.exitcode
            if code is None:
                return "lost", "does not answer"
            if code < 0:
                return "lost", f"was killed by {signal.Signals(-code).name}"
            return "lost", f"ended with status {code}"


def _end(team: Any) -> None:
    """End all processes: gently, then not."""
    for worker in team:
        worker.process.terminate()
    deadline = time.monotonic() + GRACE_S
    for worker in team:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        worker.process.kill()
        worker.process.join()


@contextmanager
def _few_threads(count: int) -> Iterator[None]:
    """What is started within shares the processors with its like, unless the user chose."""
    share = str(max(1, len(os.sched_getaffinity(0)) // count))
    added = {name: share for name in _THREADS if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """What is started within never sees Ctrl-C, which a terminal sends to every process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in the worker ----------------------------------------------------------------------------


def _serve(make: Callable[[], Work], connection: Connection) -> None:
    """Work on what is sent until there is no more."""
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    shown = 0.0

    def note(text: str, part: float) -> None:
        nonlocal shown
        if time.monotonic() - shown > NOTE_S:
            shown = time.monotonic()
            connection.send(("note", (text, part)))

    try:
        try:
            work = make()
            connection.send(("ready", None))
            while (item := connection.recv()) is not None:
                connection.send(("done", work(item[0], note)))
        except BenchError as error:
            connection.send(("error", (type(error), str(error))))
        except Exception as error:  # noqa: BLE001 - told where somebody sees it
            if not isinstance(error, EOFError | BrokenPipeError):
                text = f"in a worker:\n{traceback.format_exc()}"
                connection.send(("error", (RuntimeError, text)))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except (KeyboardInterrupt, OSError):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)  # dies of what it was sent, as anybody would


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Nobody is left to take results: stop as if told to, and surely."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)
