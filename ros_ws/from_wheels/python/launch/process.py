"""Processes: how one is started, what it prints, how it is ended with all it has started."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from launch.context import LaunchContext
from launch.entity import Action, text
from launch.errors import LaunchError

__all__ = ["ExecuteProcess", "Process"]

SIGTERM_AFTER_S = 2.5
SIGKILL_AFTER_S = 4.0
"""After the request to end. Together with the polling this keeps Ctrl-C under 5 s."""

OUTPUTS = ("screen", "log", "both")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


class ExecuteProcess(Action):
    """Start a process."""

    deaf = False
    """Whether SIGINT passes it by until it says what to do at one."""

    def __init__(
        self, *, cmd: Any, name: Any = None, cwd: Any = None, env: dict | None = None,
        additional_env: dict | None = None, shell: bool = False, output: str = "log",
        on_exit: Any = None, prefix: Any = None, respawn: Any = False, emulate_tty: bool = False,
        sigterm_timeout: Any = None, sigkill_timeout: Any = None, condition: Any = None,
    ) -> None:
        """See launch's own reference; respawn, emulate_tty and the timeouts change nothing here.

        `on_exit` holds entities, or a function (event, context) -> entities. With output `log` what
        the process prints goes to a file, its errors to the screen too.
        """
        super().__init__(condition=condition)
        self.cmd, self.name, self.cwd, self.prefix = cmd, name, cwd, prefix
        self.env, self.additional_env = env, additional_env
        self.shell, self.output, self.on_exit = shell, output, on_exit

    def command(self, context: LaunchContext) -> list[str]:
        """The words of the command."""
        return [text(word, context, "cmd") for word in self.cmd]

    def label(self, command: list[str], context: LaunchContext) -> str:
        """The name before every line printed."""
        return text(self.name, context) if self.name else Path(command[0].split()[0]).name

    def execute(self, context: LaunchContext) -> None:
        """Start it."""
        command = self.command(context)
        if self.prefix is not None:
            command = [*shlex.split(text(self.prefix, context)), *command]
        output = text(self.output, context, "output")
        if output not in OUTPUTS:
            raise LaunchError(f"output '{output}' is not valid; choices: {', '.join(OUTPUTS)}")
        chosen = context.environment if self.env is None else self.env
        env = {k: text(v, context) for k, v in {**chosen, **(self.additional_env or {})}.items()}
        cwd = None if self.cwd is None else text(self.cwd, context, "cwd")
        label = self.label(command, context)
        if self.shell:
            command = [" ".join(command)]
        context.service.start(self, label, command, env, cwd, self.shell, output)


def group_runs(group: int) -> bool:
    """Whether a process group has members that are more than zombies.

    Orphans stay zombies for as long as process 1 likes, which in a container can be seconds.
    """
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    for stat in stats:
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            return True
    return not stats


def die_with_parent(parent: int, deaf: bool) -> Any:
    """What a child does before it becomes the command: be killed as soon as `parent` is gone.

    A `deaf` one passes over SIGINT until it says what to do at one.
    """

    def prepare() -> None:
        if deaf:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if LIBC is not None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


class Process:
    """A running command, the leader of a process group of its own."""

    def __init__(
        self, action: Any, name: str, command: list[str], env: dict[str, str], cwd: str | None,
        shell: bool, output: str,
    ) -> None:
        """Start it; LaunchError when the command does not exist."""
        self.action, self.name, self.cmd, self.output = action, name, command, output
        try:
            self.popen = subprocess.Popen(
                command[0] if shell else command, shell=shell, env=env, cwd=cwd,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True, preexec_fn=die_with_parent(os.getpid(), action.deaf),
            )
        except OSError as error:
            raise LaunchError(f"cannot start {command[0]}: {error.strerror}") from None
        self.pid = self.popen.pid
        self.returncode: int | None = None
        self.asked_at: float | None = None
        self.sent = 0
        self.rest: dict[int, bytes] = {}
        for pipe in (self.popen.stdout, self.popen.stderr):
            os.set_blocking(pipe.fileno(), False)

    def read(self, pipe: Any) -> tuple[list[str], bool]:
        """Whole lines that have come in, and whether the pipe is still open."""
        fd = pipe.fileno()
        data, is_open = self.rest.pop(fd, b""), True
        while True:
            try:
                chunk = os.read(fd, 65536)
            except BlockingIOError:
                break
            if not chunk:
                is_open = False
                break
            data += chunk
        *lines, rest = data.split(b"\n")
        if rest and not is_open:
            lines.append(rest)
        elif rest:
            self.rest[fd] = rest
        return [line.decode(errors="replace").rstrip("\r") for line in lines], is_open

    def poll(self) -> bool:
        """Whether the command has ended since the last call."""
        if self.returncode is not None or self.popen.poll() is None:
            return False
        self.returncode = self.popen.returncode
        return True

    def alive(self) -> bool:
        """Whether the command, or anything it started in its group, still runs."""
        if self.returncode is None:
            return True
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return group_runs(self.pid)

    def end(self) -> None:
        """Ask the group to end, and ask harder the longer it takes; call again and again."""
        now = time.monotonic()
        if self.asked_at is None:
            self.asked_at = now
        waited = now - self.asked_at
        due = 1 + (waited >= SIGTERM_AFTER_S) + (waited >= SIGKILL_AFTER_S)
        if due > self.sent:
            self.sent = due
            number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[due - 1]
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass
