"""What `test_workers` has done in processes, which must be able to import it."""

import os
import signal
import time
from functools import partial

from bench_tasks.errors import BenchError, UsageError


def make(places=None):
    """Notes down, one line each, in whose process it was made."""
    if places is not None:
        with open(places, "a") as file:
            file.write(f"{os.getpid()}\n")
    return partial(work, [0])


def work(count, item, note):
    """Do the item: a number is waited for and returned with what this process knows."""
    count[0] += 1
    note(f"item {item}", 0.5)
    if item == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "exit":
        os._exit(7)
    if item == "refuse":
        raise UsageError("this item is wrong")
    if item == "bug":
        raise ZeroDivisionError("oops")
    if item == "wait":
        time.sleep(60)
    time.sleep(item)
    return os.getpid(), count[0], os.environ.get("OMP_NUM_THREADS")


def make_none():
    """Dies before there is anything to work with."""
    os.kill(os.getpid(), signal.SIGKILL)


def make_wrong():
    """Cannot be made, and says why."""
    raise BenchError("no renderer found")
