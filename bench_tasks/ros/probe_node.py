"""The node `probe`: says and shows a probe's items on topics, and asks its questions.

What was said lies in one bag for each seed, with what was replied: `bench_tasks remember score`
scores it again, and the probe `bag:dir=...` plays it to any memory.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from bench_interfaces.msg import EpisodeEvent
from bench_interfaces.srv import Record

from bench_tasks.bags import cdr
from bench_tasks.commands.progress import Progress
from bench_tasks.manifest import environment, writable_folder
from bench_tasks.memory_runs import check_new, renderer, run_path, with_models
from bench_tasks.probes import make_probe
from bench_tasks.probes.bags import EVENTS, OVER, answered
from bench_tasks.probes.messages import SHOWN, TALK
from bench_tasks.probes.player import Record as Step
from bench_tasks.probes.player import play
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import Asked, Item
from bench_tasks.probes.tables import rows_of, save_rows, tables
from bench_tasks.ros.conductor_ros import Conductor, finish_recording, wait_for_services
from bench_tasks.ros.node_ros import (
    TRACK,
    Caller,
    Stopped,
    parameter,
    to_message,
    wait_for_listeners,
)
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.talk_ros import TopicMemory
from bench_tasks.vocabulary import Event

__all__ = ["ProbeNode", "main"]


class ProbeNode(Conductor):
    """Plays one probe to the node `memory`, once for each seed.

    Exit status 0: all was asked and recorded; 1: a node was lost, or the memory raised something;
    2: a parameter is wrong; 130: interrupted.
    """

    def __init__(self) -> None:
        """Read and check the parameters; UsageError names the first wrong one."""
        super().__init__("probe")
        self.spec = parameter(self, "probe", "conversations")
        name, _, user = with_models(parameter(self, "reader", ""), parameter(self, "user", ""))
        self.memory_spec = parameter(self, "memory", "structured") + name
        first = parameter(self, "seed", 0)
        self.seeds = range(first, first + parameter(self, "seeds", 1))
        self.record = parameter(self, "record", True)
        self.out = Path(parameter(self, "out", "results/memory")).absolute()
        pictures = Path(parameter(self, "pictures", "results/stills"))
        self.startup_s = parameter(self, "startup_s", 60.0)
        deadline_s = parameter(self, "deadline_s", 300.0)
        self.kind = make_probe(self.spec, **user)
        self.paths = {s: run_path(self.out, self.spec, self.memory_spec, s) for s in self.seeds}
        check_new(self.paths.values())
        writable_folder(self.out)
        self.render = renderer(pictures, [self.kind])
        self.memory = TopicMemory(self, self.record, deadline_s)
        self._recorder = Caller(self, Record, "/recorder/record", 60.0)
        self._events = self.create_publisher(EpisodeEvent, EVENTS, TRACK)
        self._sent = 0

    def conduct(self) -> int:
        """Play it with each seed, and write down what came of it."""
        needed = dict(self.memory.calls)
        if self.record:
            needed["recorder"] = [self._recorder]
        wait_for_services(self, needed, self.startup_s)
        progress = Progress(len(self.seeds))
        runs = []
        for seed in self.seeds:
            runs.append(self._one(seed))
            found = score(runs[-1].records)
            name = f"{self.spec} seed {seed} {self.memory_spec}"
            progress.done(f"{name}: {found.right}/{found.count}")
        progress.close()
        rows = rows_of(runs)
        saved = save_rows(self.out, rows)
        sys.stdout.write(f"{tables(rows)}written to {saved}\n")
        sys.stdout.flush()
        return 1 if any(row.errors for row in rows) else 0

    def _one(self, seed: int) -> Run:
        """Play it with one seed, into a bag of its own."""
        if self.record:
            head = {"probe": self.spec, "memory": self.memory_spec, "seed": seed, **environment()}
            path = self.paths[seed]
            path.parent.mkdir(parents=True, exist_ok=True)
            self._recorder.call(
                Record.Request(start=True, path=str(path), manifest=json.dumps(head))
            )
            wait_for_listeners([(self._events, 1)], 10.0)
        self._sent = 0
        self.memory.begin()
        waiting_s, stamp_ns, told = 0.0, 0, 0
        raised = self.memory.raised

        def news() -> dict[str, str]:
            nonlocal told
            found = dict(islice(raised.items(), told, None))
            told = len(raised)
            return found

        def keep(record: Step) -> None:
            nonlocal waiting_s, stamp_ns
            if self.stopping.is_set():
                raise Stopped
            self.watch.check("memory", "recorder")
            step = record.step
            if isinstance(step, Asked):
                self._event(answered(record, self.memory.said, waiting_s, news()))
                waiting_s, stamp_ns = 0.0, step.query.stamp_ns
            else:
                if record.error:
                    raised.setdefault(step.id, record.error)
                waiting_s, stamp_ns = waiting_s + record.seconds, step.stamp_ns

        records = play(self.kind.steps(seed, self.render), self.memory, keep)
        size = self.memory.end()
        self._event(Event(OVER, 0, stamp_ns, {
            "after": self.memory.said, "observed_s": waiting_s, "storage_bytes": size,
            "raised": news(),
        }))  # fmt: skip
        if self.record:
            self._finish()
        whole = (
            replace(record, error=raised.get(record.step.id, ""))
            if isinstance(record.step, Item) else record for record in records
        )  # fmt: skip
        return Run(self.spec, self.memory_spec, seed, tuple(whole), size)

    def _event(self, event: Event) -> None:
        self._events.publish(to_message(cdr.encode_event(event), EpisodeEvent))
        self._sent += 1

    def _finish(self) -> None:
        """Close the bag once everything has arrived. BenchError when something did not."""
        expected: dict[str, Any] = {TALK: self.memory.said, EVENTS: self._sent}
        if self.memory.shown:
            expected[SHOWN] = self.memory.shown
        request = Record.Request(manifest=json.dumps({"expected": expected}))
        finish_recording(self._recorder, request)


def main(args: list[str] | None = None) -> None:
    """Entry point of `probe_node`."""
    run_node(ProbeNode, args)


if __name__ == "__main__":
    main()
