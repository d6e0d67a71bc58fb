"""Start and end the whole graph N times in a row: does one hang, is a process left?

Usage: python benchmarks/launches.py [N] [launch arguments]. Prints one line per launch and exits 1
if any of them failed, hung or left a process behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from launched import MARK, ROOT, free_domain, processes

LIMIT_S = 180.0


def one(number: int, arguments: list[str], folder: Path) -> tuple[bool, str]:
    """Launch once; whether it went well, and a line that says how."""
    mark = f"{os.getpid()}-{number}"
    env = {**os.environ, MARK: mark, "ROS_DOMAIN_ID": str(free_domain())}
    command = [
        str(ROOT / "ros_ws" / "ros2"), "launch", "bench_tasks", "bimanual.launch.py",
        f"out:={folder / str(number)}", *arguments,
    ]  # fmt: skip
    begun = time.monotonic()
    log = folder / f"{number}.log"
    with open(log, "wb") as file:
        process = subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT)
        try:
            status = str(process.wait(LIMIT_S))
        except subprocess.TimeoutExpired:
            status = "hung"
            process.kill()
            process.wait()
    wall_s = time.monotonic() - begun
    left = sorted(processes(mark))
    good = status == "0" and not left
    note = f", left {left}" if left else ""
    return good, f"launch {number}: status {status}, {wall_s:.1f} s{note}" + (
        "" if good else f", see {log}"
    )


def main() -> int:
    """Run the benchmark."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    arguments = sys.argv[2:] or ["tasks:=spatial_sparse"]
    folder = Path(tempfile.mkdtemp(prefix="launches_"))
    failed = 0
    for number in range(count):
        good, line = one(number, arguments, folder)
        failed += not good
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"{count - failed} of {count} launches ended well\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
