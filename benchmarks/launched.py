"""A launch of the whole graph as benchmarks see it: its processes, its log, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks.ros.domain import hold_domain
from bench_tasks.ros.middleware import THIS_MACHINE, middleware

__all__ = ["ABORT", "MARK", "ROOT", "Launch", "Onlooker", "environment", "free_domain", "processes"]

MARK = "BENCH_LAUNCHES_ID"
ABORT = "aborting the motion"
"""How a simulated Franka arm ends the line in which it says why it has stopped by itself."""
STOPPED = "[task]: waiting: stopped"


def free_domain() -> int:
    """A ROS domain that no other run on this machine has claimed."""
    for domain in range(1, 101):
        holder = hold_domain(domain)
        if holder is not None:
            holder.close()
            return domain
    raise SystemExit("all ROS domains are taken")


def processes(mark: str) -> dict[int, str]:
    """Pid -> command line of what carries the mark in its environment, dead ones apart."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode(errors="replace")
            except OSError:
                continue
    return found


class Launch:
    """`ros2 launch FILE arguments`, in a domain, with its output in a file."""

    _count = 0

    def __init__(self, file: str | Path, arguments: Sequence[str], domain: int, log: Path) -> None:
        """Start it."""
        Launch._count += 1
        self.mark, self.log, self.released = f"{os.getpid()}-{Launch._count}", log, 0
        command = [ROOT / "ros_ws" / "ros2", "launch", ROOT / "launch" / file, *arguments]
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                command, env=environment(domain, self.mark), stdout=out, stderr=subprocess.STDOUT
            )

    def pids(self, words: str) -> list[int]:
        """Of its processes, those whose command line holds these words; the oldest first."""
        return sorted(pid for pid, line in processes(self.mark).items() if words in line)

    def waits(self) -> int:
        """How often so far it has waited for the safety node to be told to go on after a stop."""
        return self.log.read_text().count(STOPPED)

    def left(self) -> dict[int, str]:
        """What of it still runs."""
        return processes(self.mark)

    def end(self, limit_s: float = 20.0) -> None:
        """As Ctrl-C does; what is left after a while is killed, by its own pid."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        stop = time.monotonic() + limit_s
        while self.left() and time.monotonic() < stop:
            self.process.poll()
            time.sleep(0.1)
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


def environment(domain: int, mark: str = "") -> dict[str, str]:
    """For processes of this source tree in a ROS domain, as the launch files have it."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    own = {
        "ROS_DOMAIN_ID": str(domain), **middleware(THIS_MACHINE), "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path, "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    # For rclpy in this process, too.
    return {**os.environ, **own, **({MARK: mark} if mark else {})}


class Onlooker:
    """A node of this process in the domain of the launches, on a thread of its own."""

    def __init__(self, domain: int) -> None:
        """Begin; the process then has to end by os._exit, for the thread goes on."""
        os.environ.update(environment(domain))
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions
        from std_srvs.srv import Trigger

        rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node("onlooker")
        self._trigger, self._done = Trigger, 0
        self._release = self.node.create_client(Trigger, "/safety/release")
        executor = SingleThreadedExecutor()
        executor.add_node(self.node)
        threading.Thread(target=executor.spin, daemon=True).start()

    def release(self, launch: Launch) -> int:
        """Do what a technician does after a stop, whose episode is over; how often that was."""
        if launch.waits() > launch.released:
            launch.released = launch.waits()
            self._release.call_async(self._trigger.Request())
        return launch.released
