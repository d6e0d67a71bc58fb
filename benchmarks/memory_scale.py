# ruff: noqa: T201
"""What memories cost with 100,000 items: `python benchmarks/memory_scale.py`.

Each memory is filled to all but --timed items by `restore`; those are observed one by one. Bars:
write 5 ms, answer 50 ms (95th percentile each), start 1 s, 1 kB per item beside its embedding.

Times are of the wall clock and, behind the slash, of the processor: where other programs run the
second is what to look at. A write waits for the disk, so it is compared to the same row written to
an SQLite file that has nothing else, in turns with it. Questions are put in every way about what
was said of four people, things and words; half of the items are small talk.

The embedding model's time is that of --real items; with --embed all it is that of all. Else the
other vectors are drawn at random, since what a search costs does not depend on what is in them.
Start is a new process's: to open the file and read what answering needs, after its imports; loading
the embedding model is told apart.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks.probes.stream import Item, Query
from bench_tasks.probes.talk import put, say
from policies.memory import make_memory
from policies.memory.base import SNAPSHOT_VERSION

SPECS = ("window", "rag", "structured", "mma", "notes")
PEOPLE = ("Ana", "Ben", "Cleo", "Dov")
KINDS = ("has", "changed", "told", "lies", "put", "did", "because", "means")
BARS = {"write": 5.0, "answer": 50.0, "start": 1000.0, "bytes": 1000.0}


def slots_of(rng: np.random.Generator) -> dict[str, str]:
    """What a sentence may be about: some common, most rare, as what people talk about is."""
    k = int(rng.zipf(1.3)) % 20_000
    return {
        "attribute": f"favourite sort of thing {k % 40}", "value": f"brand {k}", "word": f"wo{k}",
        "person": str(rng.choice(PEOPLE)), "object": f"small box number {k % 3000}",
        "place": f"on shelf {k % 500}", "event": f"repaired machine {k}", "reason": f"cause {k}",
    }  # fmt: skip


def stream(count: int, seed: int = 0) -> list[Item]:
    """So many items, a session for each hundred."""
    rng = np.random.default_rng(seed)
    chat = [f"word{k}" for k in range(5000)]
    found = []
    for k in range(count):
        if rng.random() < 0.5:
            words = rng.zipf(1.2, int(rng.integers(5, 16))) % len(chat)
            text = " ".join(chat[int(w)] for w in words).capitalize() + "."
        else:
            text = say(str(rng.choice(KINDS)), rng, **slots_of(rng))
        day = k // 100
        stamp = (day * 86_400 + k % 100 * 30) * 10**9
        found.append(Item(f"i{k}", stamp, f"s{day}", str(rng.choice(PEOPLE)), text))
    return found


def questions(count: int, seed: int = 1) -> list[Query]:
    """Questions about what may have been said."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        kind = ("attribute", "place", "place_of_word", "reason", "how_often")[k % 5]
        found.append(Query(f"q{k}", 10**18, put(kind, k % 2, **slots_of(rng))))
    return found


class Times:
    """Wall and processor time of what is done again and again, in ms."""

    def __init__(self) -> None:
        """Nothing has been done."""
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def of(self, what: Callable[[], object]) -> None:
        """Do it once."""
        wall, cpu = time.perf_counter(), time.process_time()
        what()
        self.wall.append(1e3 * (time.perf_counter() - wall))
        self.cpu.append(1e3 * (time.process_time() - cpu))

    def at(self, q: float) -> tuple[float, float]:
        """A percentile of either."""
        return float(np.percentile(self.wall, q)), float(np.percentile(self.cpu, q))

    def __str__(self) -> str:
        """Median and 95th percentile, wall/processor."""
        return ", ".join("{:.2f}/{:.2f}".format(*self.at(q)) for q in (50, 95))


def bare(path: Path) -> sqlite3.Connection:
    """An SQLite file with the memory's settings and one table."""
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        db.execute(f"PRAGMA {pragma}")
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT, text TEXT)")
    return db


def fill(memory, items: list[Item]) -> float:  # noqa: ANN001 - any of ours
    """Restore a memory from items; seconds of the processor."""
    from bench_tasks.probes.stream import step_to_json

    head = json.dumps({"memory_snapshot": SNAPSHOT_VERSION})
    data = "\n".join([head, *map(step_to_json, items), ""]).encode()
    before = time.process_time()
    memory.restore(data)
    return time.process_time() - before


def draw_vectors(memory) -> None:  # noqa: ANN001
    """Give random unit vectors to all items that have none."""
    rng = np.random.default_rng(5)
    while new := memory.store.missing("vectors", 1000):
        rows = rng.standard_normal((len(new), 384), np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        with memory.store.writing():
            memory.vectors.take(new, rows.astype(np.float16))
            memory.store.taken("vectors", new[-1][0])


STARTER = """
import sys, time
sys.path.insert(0, sys.argv[3])
from policies.memory import make_memory
spec, path = sys.argv[1:3]
wall, cpu = time.perf_counter(), time.process_time()
memory = make_memory(spec, path)
memory.settle()
print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu))
"""


def start(spec: str, path: Path) -> tuple[float, float]:
    """Milliseconds that a new process takes to be ready, of the wall clock and the processor."""
    command = [sys.executable, "-c", STARTER, spec, str(path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


def measure(spec: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Print the figures of one memory."""
    path = folder / "memory.db"
    items = stream(arguments.items)
    text_bytes = sum(len(item.text.encode()) for item in items) / len(items)
    memory = make_memory(spec, path)
    filled = fill(memory, items[: -arguments.timed])
    print(f"\n{spec}: {len(items)} items of {text_bytes:.0f} bytes in the mean; "
          f"filled in {1e3 * filled / len(items):.2f} ms of the processor each")  # fmt: skip
    writes, reference = Times(), Times()
    db = bare(folder / "bare.db")
    for item in items[-arguments.timed :]:
        writes.of(lambda one=item: memory.observe(one))
        values = (item.id, item.text)
        reference.of(lambda row=values: db.execute("INSERT INTO t (id, text) VALUES (?, ?)", row))
    db.close()
    ratio = writes.at(50)[0] / reference.at(50)[0]
    print(f"write {writes} ms; the bare row {reference} ms: {ratio:.1f} times (median)")
    bytes_each = memory.size_bytes() / len(items)
    if "vectors" in memory.later:
        embed(memory, len(items), arguments)
    print(f"size {bytes_each:.0f} bytes an item, with vectors "
          f"{memory.size_bytes() / len(items):.0f}")  # fmt: skip
    memory.settle()
    answers = Times()
    memory.answer(questions(1, 9)[0])
    for query in questions(arguments.questions):
        answers.of(lambda one=query: memory.answer(one))
    memory.close()
    started = start(spec, path)
    print(f"answer {answers} ms; start {started[0]:.0f}/{started[1]:.0f} ms")
    forgot = Times()
    memory = make_memory(spec, path)
    forgot.of(lambda: memory.forget([items[7].id]))
    memory.close()
    print(f"to forget one item {forgot.wall[0] / 1e3:.1f}/{forgot.cpu[0] / 1e3:.1f} s")
    for what, value in (("write", writes.at(95)), ("answer", answers.at(95)), ("start", started),
                        ("bytes", (bytes_each, bytes_each))):  # fmt: skip
        met = ["within" if one <= BARS[what] else "over" for one in value]
        print(f"  {what}: bar {BARS[what]:.0f}, wall clock {met[0]}, processor {met[1]}")


def embed(memory, count: int, arguments: argparse.Namespace) -> None:  # noqa: ANN001
    """Embed some or all items, and say what it took."""
    model = Times()
    model.of(lambda: memory.vectors.of([(0, Item("x", 0, "s", "Ana", "Hello."))]))
    some = count if arguments.embed == "all" else arguments.real
    new = memory.store.missing("vectors", some)
    took = Times()
    made = []
    took.of(lambda: made.append(memory.vectors.of(new)))
    with memory.store.writing():
        memory.vectors.take(new, made[0])
        memory.store.taken("vectors", new[-1][0])
    draw_vectors(memory)
    print(f"embedding {took.wall[0] / len(new):.2f}/{took.cpu[0] / len(new):.2f} ms each of "
          f"{len(new)}; its model loads in {model.wall[0] / 1e3:.1f}/{model.cpu[0] / 1e3:.1f} s"
          )  # fmt: skip


def main() -> None:
    """Print what each memory costs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--timed", type=int, default=2000, help="of which so many are timed")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--memories", nargs="+", default=SPECS, help="specifications")
    parser.add_argument("--embed", choices=("some", "all"), default="some")
    parser.add_argument("--real", type=int, default=500, help="items embedded with --embed some")
    parser.add_argument("--folder", type=Path, help="on the disk to measure")
    arguments = parser.parse_args()
    for spec in arguments.memories:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            measure(spec, Path(folder), arguments)


if __name__ == "__main__":
    main()
