"""The node `memory`: any memory of the registry, which hears what is said and is asked about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bench_interfaces.srv import Ask, ResetAgent

from bench_tasks.errors import BenchError, BrokenOff, MemoryRaised, UsageError
from bench_tasks.probes.player import shown, storage_bytes
from bench_tasks.probes.stream import Query, Reply, checked
from bench_tasks.ros.node_ros import BenchNode, answer, parameter, steady_timer
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.talk_ros import Listener, query_of
from bench_tasks.scratch import Scratch
from policies.memory import make_memory
from policies.memory.model_reader import make_reader

__all__ = ["MemoryNode", "main"]

LISTEN_EVERY_S = 0.05


class MemoryNode(BenchNode):
    """Observes as it hears, one item after the other, and answers between them.

    Parameter `store` is the file to remember in, from one start to the next; without it each probe
    gets an empty memory, and nothing is left of it. `reader` names a model that answers from what
    is recalled; without it rules do.
    """

    def __init__(self) -> None:
        """Open the memory that the parameter `memory` names; UsageError if there is none such."""
        super().__init__("memory")
        self._spec = parameter(self, "memory", "structured")
        self._kept = parameter(self, "store", "")
        self._folder = Scratch("bench_tasks_memory-")
        reader = parameter(self, "reader", "")
        self._reader = make_reader(reader)[1] if reader else None
        self._number, self._errors, self._raised = 0, [], {}
        self._open()
        self._listener = Listener(self)
        steady_timer(self, LISTEN_EVERY_S, self._listen)
        self.create_service(ResetAgent, "/memory/reset", self._reset)
        self.create_service(Ask, "/memory/ask", self._ask)

    def _open(self) -> None:
        self._number += 1
        own = self._folder.path / f"{self._number}.sqlite"
        self._path = Path(self._kept) if self._kept else own
        self._memory = make_memory(self._spec, self._path, reader=self._reader)

    def _listen(self, until: int | None = None) -> None:
        """Observe what has come, or until so many items have."""
        source = self._listener.take() if until is None else self._listener.take_until(until)
        for item in source:
            try:
                self._memory.observe(item)
            except Exception as error:  # noqa: BLE001 - other people's code: the next is heard
                self._raised[item.id] = shown(error)
                self.get_logger().error(f"item {item.id}: {shown(error)}")
        while self._listener.lost:
            self._errors.append(self._listener.lost.pop(0))
            self.get_logger().error(self._errors[-1])

    def _reset(self, request: ResetAgent.Request, response: ResetAgent.Response):
        """With a scene: an empty memory. Without one: close it, and say how large it is."""

        def work() -> None:
            size = storage_bytes(self._memory, self._path)
            if request.scene and self._kept:
                raise UsageError(f"{self._kept} is kept: a probe needs a memory without store")
            if not self._kept:
                for file in self._path.parent.glob(f"{self._path.name}*"):
                    file.unlink()
            self._open()
            self._listener.forget()
            self._errors, self._raised = [], {}
            response.metadata = json.dumps({"memory": self._spec, "storage_bytes": size})

        return answer(response, work)

    def _ask(self, request: Ask.Request, response: Ask.Response):
        def work() -> None:
            try:
                raw = json.loads(request.question)
                self._listen(int(raw.get("after", 0)))
                query = query_of(request, raw["query"]) if "query" in raw else None
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UsageError(f"malformed question: {error!r}") from None
            if self._errors or self._raised and query is not None:
                told = [f"item {name}: {text}" for name, text in self._raised.items()]
                errors, self._errors, self._raised = [*self._errors, *told], [], {}
                raise BenchError("; ".join(errors))
            if query is not None:
                response.answer = json.dumps(asdict(self._reply(query)))
                return
            settling = self._settle() if raw.get("settle") else ""
            response.answer = json.dumps({"raised": self._raised, "settling": settling})
            self._raised = {}

        return answer(response, work)

    def _reply(self, query: Query) -> Reply:
        """The memory's reply; MemoryRaised says what it raised in its place."""
        try:
            return checked(self._memory.answer(query))
        except BrokenOff:
            raise
        except Exception as error:
            raise MemoryRaised(shown(error)) from error

    def _settle(self) -> str:
        """Let the memory do now what the next answer needs; what it raised, "" if nothing."""
        try:
            if hasattr(self._memory, "settle"):
                self._memory.settle()
        except BrokenOff:
            raise
        except Exception as error:  # noqa: BLE001 - other people's code
            return shown(error)
        return ""

    def close(self) -> None:
        """What is kept lies in its file; the rest goes."""
        self._memory.close()
        self._folder.cleanup()


def main(args: list[str] | None = None) -> None:
    """Entry point of `memory_node`."""
    run_node(MemoryNode, args)


if __name__ == "__main__":
    main()
