# ruff: noqa: T201
"""Kills the writer of a memory again and again: `python benchmarks/memory_kill.py`.

Each round a process of its own opens the file, observes items and says of each when it was
acknowledged; after 1 to 39 of these and up to 20 ms more it is killed (SIGKILL). Then the file is
opened again: it must be whole, hold every acknowledged item, and at most one item more; and what
was derived of the items must be as if they had been told to a new memory. One file for each back
end, which grows from round to round. Every tenth item is forgotten again, which is acknowledged
likewise.

A kill takes nothing from the operating system's cache: that a power failure loses nothing either
rests on SQLite's synchronous=FULL.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.probes.stream import Item, Query
from bench_tasks.probes.talk import put
from policies.memory import make_memory

SPECS = ("full", "rag:by=words", "structured", "notes")
EVERY = 10


def item_of(k: int) -> Item:
    """The k-th item: every one different, so that one that is mixed up is seen."""
    text = put("changed", k % 2, attribute=f"size {k % 7}", value=f"number {k}")
    return Item(f"i{k}", k * 10**9, f"s{k // 50}", ("Ana", "Ben")[k % 2], text)


def write(spec: str, path: Path, start: int, pipe: int) -> None:
    """Observe items for ever; a line with its number for each that was acknowledged."""
    memory = make_memory(spec, path)
    k = start
    while True:
        memory.observe(item_of(k))
        os.write(pipe, b"+%d\n" % k)
        if k % EVERY == 0:
            memory.forget([f"i{k}"])
            os.write(pipe, b"-%d\n" % k)
        k += 1


def killed(spec: str, path: Path, start: int, count: int, wait_s: float) -> list[str]:
    """Let a process write, kill it so long after `count` acknowledgements; all of them."""
    read, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            write(spec, path, start, pipe)
        finally:
            os._exit(1)
    os.close(pipe)
    told = b""
    try:
        while told.count(b"\n") < count:
            if not select.select([read], [], [], 120)[0]:
                raise SystemExit(f"{spec}: no write within 120 s")
            if not (more := os.read(read, 65536)):
                break
            told += more
        time.sleep(wait_s)
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as rest:
        lines = (told + rest.read()).decode().split("\n")[:-1]
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"{spec}: the writer ended by itself after {lines[-1:]}")
    return lines


def check(spec: str, path: Path, acknowledged: dict[int, bool]) -> tuple[int, list[str]]:
    """The number to go on with, and what is wrong. `acknowledged`: item -> whether it is kept."""
    wrong = []
    memory = make_memory(spec, path)
    if (found := memory.store.one("PRAGMA integrity_check")) != "ok":
        wrong.append(f"integrity: {found}")
    kept = {int(item.id[1:]): item for item in memory.store.items()}
    lost = [k for k, there in acknowledged.items() if there and k not in kept and k % EVERY]
    wrong += [f"lost item {k}" for k in lost]
    wrong += [f"forgotten item {k} is back" for k, there in acknowledged.items()
              if not there and k in kept]  # fmt: skip
    wrong += [f"item {k} is another" for k, item in kept.items() if item != item_of(k)]
    last = max(acknowledged)
    wrong += [f"item {k} was never told" for k in kept if k > last + 1]
    fresh = make_memory(spec)
    fresh.restore(memory.snapshot())
    for k in range(7):
        query = Query("q", 10**18, put("attribute", 0, person="Ana", attribute=f"size {k}"))
        if memory.answer(query) != fresh.answer(query):
            wrong.append(f"what was derived is not whole: {memory.answer(query)}")
    memory.close()
    return max(last, *kept) + 1 if kept else last + 1, wrong


def main() -> None:
    """Exit status 1 when anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--memories", nargs="+", default=SPECS, help="specifications")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    specs = arguments.memories
    rng = np.random.default_rng(arguments.seed)
    state: dict[str, tuple[int, dict[int, bool]]] = {spec: (0, {}) for spec in specs}
    faults, ended_within = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            spec = specs[number % len(specs)]
            path = Path(folder) / f"{specs.index(spec)}.db"
            start, acknowledged = state[spec]
            count, wait_s = int(rng.integers(1, 40)), float(rng.uniform(0, 0.02))
            lines = killed(spec, path, start, count, wait_s)
            for line in lines:
                acknowledged[int(line[1:])] = line[0] == "+"
            following, wrong = check(spec, path, acknowledged)
            ended_within += following > max(acknowledged) + 1
            faults += [f"round {number}, {spec}: {text}" for text in wrong]
            state[spec] = following, acknowledged
        for spec, (_, acknowledged) in state.items():
            kept = sum(acknowledged.values())
            print(f"{spec}: {len(acknowledged)} items acknowledged, {kept} of them to be kept")
    print(f"{arguments.rounds} kills, {ended_within} between a commit and its acknowledgement; "
          f"{len(faults)} faults")  # fmt: skip
    for text in faults[:20]:
        print(text)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
