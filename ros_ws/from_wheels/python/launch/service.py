"""Runs a launch description: one loop over processes, their output, timers and signals."""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from launch.context import LaunchContext
from launch.entity import LaunchDescription, entities
from launch.errors import LaunchError
from launch.events import ProcessExited, ProcessStarted, Shutdown
from launch.process import Process

__all__ = ["LaunchService"]

POLL_S = 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class LaunchService:
    """Visits a description and stays until its processes are gone.

    The launch ends when nothing runs and no timer waits, on a Shutdown event, or on SIGINT or
    SIGTERM. Its exit status is that of the first process that failed by itself, else 128 plus the
    signal that ended the launch, else 0.
    """

    def __init__(self) -> None:
        """Prepare to run."""
        self.context = LaunchContext(self)
        self.handlers: list[Any] = []
        self.processes: list[Process] = []
        self.timers: list[tuple[float, int, list[Any]]] = []
        self.count = itertools.count(1)
        self.shutting_down = False
        self.status = 0
        self.signals: list[int] = []
        self.selector = selectors.DefaultSelector()
        self.log_file: Any = None
        self.temporary: list[str] = []
        """Files to remove at the end."""

    # What actions call

    def log(self, level: str, name: str, message: str) -> None:
        """Print a line about the launch."""
        self.write(f"[{level}] [{name}]: {message}")

    def write(self, line: str) -> None:
        """Print a line; a reader that has gone away must not stop the launch from ending well."""
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    def start(
        self, action: Any, label: str, command: list[str], env: dict[str, str], cwd: str | None,
        shell: bool, output: str,
    ) -> None:
        """Start a process, unless the launch is ending."""
        if self.shutting_down:
            return
        name = f"{label}-{next(self.count)}"
        process = Process(action, name, command, env, cwd, shell, output)
        self.processes.append(process)
        for pipe in (process.popen.stdout, process.popen.stderr):
            self.selector.register(pipe, selectors.EVENT_READ, process)
        self.log("INFO", name, f"process started with pid [{process.pid}]")
        self.emit(ProcessStarted(action, name, command, process.pid))

    def after(self, seconds: float, actions: list[Any]) -> None:
        """Visit `actions` in `seconds`."""
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.count), actions))

    def emit(self, event: Any) -> None:
        """Let an event happen and visit what its handlers answer."""
        if isinstance(event, Shutdown):
            if self.shutting_down:
                return
            self.log("INFO", "launch", f"shutting down: {event.reason}")
            self.shutting_down = True
            self.timers.clear()
        for handler in list(self.handlers):
            if handler.matches(event):
                self.visit(handler.handle(event, self.context))

    def visit(self, found: list[Any]) -> None:
        """Visit entities; a mistake found while running ends the launch with status 2."""
        try:
            for entity in found:
                entity.visit(self.context)
        except LaunchError as error:
            self.log("ERROR", "launch", str(error))
            self.status = self.status or 2
            self.emit(Shutdown(reason="the launch file is wrong"))

    # The loop

    def run(self, description: LaunchDescription, arguments: dict[str, str]) -> int:
        """Run to the end and return the exit status.

        LaunchError when the description is wrong; nothing is left running then.
        """
        self.context.launch_configurations.update(arguments)
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self.selector.register(reader, selectors.EVENT_READ, None)
        numbers = (*SIGNALS, signal.SIGCHLD)
        old_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        old = {number: signal.signal(number, self.note) for number in numbers}
        mistake: LaunchError | None = None
        try:
            try:
                description.visit(self.context)
            except LaunchError as error:
                mistake = error
                self.emit(Shutdown(reason="the launch file is wrong"))
            while self.turn():
                pass
        finally:
            for process in self.processes:
                if process.alive():
                    process.asked_at = 0.0
                    process.sent = 2
                    process.end()
            signal.set_wakeup_fd(old_fd)
            for number, handler in old.items():
                signal.signal(number, handler)
            for path in self.temporary:
                Path(path).unlink(missing_ok=True)
            self.selector.close()
            reader.close()
            writer.close()
        if mistake is not None:
            raise mistake
        return self.status

    def note(self, number: int, frame: Any) -> None:
        """Remember a signal; the wake-up socket ends the wait."""
        if number in SIGNALS:
            self.signals.append(number)

    def turn(self) -> bool:
        """Wait for the next thing to happen and treat it; False when all is over."""
        while self.signals:
            number = self.signals.pop()
            if not self.shutting_down:
                self.status = self.status or 128 + number
            self.emit(Shutdown(signal.Signals(number).name, number == signal.SIGINT))
        for process in self.processes:
            if process.poll():
                self.exited(process)
        if self.shutting_down:
            for process in self.processes:
                process.end()
        else:
            for process in self.processes:
                if process.returncode is not None:
                    process.end()
        self.processes = [process for process in self.processes if process.alive()]
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            self.visit(heapq.heappop(self.timers)[2])
        if not self.processes and not self.timers:
            return False
        wait = POLL_S
        if self.timers:
            wait = min(wait, max(0.0, self.timers[0][0] - time.monotonic()))
        for key, _ in self.selector.select(wait):
            if key.data is None:
                self.drain(key.fileobj)
            else:
                self.show(key.data, key.fileobj)
        return True

    @staticmethod
    def drain(sock: Any) -> None:
        """Empty the wake-up socket."""
        try:
            while sock.recv(4096):
                pass
        except BlockingIOError:
            pass

    def show(self, process: Process, pipe: Any, last: bool = False) -> None:
        """Pass on what a process has printed."""
        lines, is_open = process.read(pipe)
        for line in lines:
            line = f"[{process.name}] {line}"
            if process.output != "log" or pipe is process.popen.stderr:
                self.write(line)
            if process.output != "screen":
                self.keep(line)
        if last or not is_open:
            self.selector.unregister(pipe)
            pipe.close()

    def keep(self, line: str) -> None:
        """Append a line to the log file."""
        if self.log_file is None:
            home = os.environ.get("ROS_HOME") or str(Path.home() / ".ros")
            folder = Path(os.environ.get("ROS_LOG_DIR") or os.path.join(home, "log"))
            folder.mkdir(parents=True, exist_ok=True)
            name = f"launch-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
            self.log_file = (folder / name).open("a", buffering=1)
        self.log_file.write(line + "\n")

    def exited(self, process: Process) -> None:
        """Show the rest of a process's output and react to its end."""
        for pipe in (process.popen.stdout, process.popen.stderr):
            if not pipe.closed:
                self.show(process, pipe, last=True)
        code = process.returncode
        if code == 0:
            self.log("INFO", process.name, f"process has finished cleanly [pid {process.pid}]")
        else:
            self.log(
                "ERROR", process.name,
                f"process has died [pid {process.pid}, exit code {code},"
                f" cmd '{' '.join(process.cmd)}'].",
            )
            if not self.shutting_down:
                self.status = self.status or (code if code > 0 else 128 - code)
        event = ProcessExited(process.action, process.name, process.cmd, process.pid, code)
        reaction = process.action.on_exit
        if reaction is not None:
            self.visit(entities(
                reaction(event, self.context) if callable(reaction) else reaction
            ))
        self.emit(event)
