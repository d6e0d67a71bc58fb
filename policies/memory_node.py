"""The node `memory`: any memory of the registry, which hears what is said and is asked about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bench_interfaces.srv import Ask, ResetAgent

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.probes.player import storage_bytes
from bench_tasks.probes.stream import checked
from bench_tasks.ros.node_ros import BenchNode, answer, parameter, steady_timer
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.talk_ros import Listener, query_of
from bench_tasks.scratch import Scratch
from policies.memory import make_memory

__all__ = ["MemoryNode", "main"]

LISTEN_EVERY_S = 0.05


class MemoryNode(BenchNode):
    """Observes as it hears, one item after the other, and answers between them.

    Parameter `store` is the file to remember in, from one start to the next; without it each probe
    gets an empty memory, and nothing is left of it.
    """

    def __init__(self) -> None:
        """Open the memory that the parameter `memory` names; UsageError if there is none such."""
        super().__init__("memory")
        self._spec = parameter(self, "memory", "structured")
        self._kept = parameter(self, "store", "")
        self._folder = Scratch("bench_tasks_memory-")
        self._number, self._errors = 0, []
        self._open()
        self._listener = Listener(self)
        steady_timer(self, LISTEN_EVERY_S, self._listen)
        self.create_service(ResetAgent, "/memory/reset", self._reset)
        self.create_service(Ask, "/memory/ask", self._ask)

    def _open(self) -> None:
        self._number += 1
        own = self._folder.path / f"{self._number}.sqlite"
        self._path = Path(self._kept) if self._kept else own
        self._memory = make_memory(self._spec, self._path)

    def _listen(self, until: int | None = None) -> None:
        """Observe what has come, or until so many items have."""
        source = self._listener.take() if until is None else self._listener.take_until(until)
        for item in source:
            try:
                self._memory.observe(item)
            except Exception as error:  # noqa: BLE001 - other people's code: the next is heard
                self._errors.append(f"item {item.id}: {type(error).__name__}: {error}")
                self.get_logger().error(self._errors[-1])
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
            self._errors = []
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
            if self._errors:
                errors, self._errors = self._errors, []
                raise BenchError("; ".join(errors))
            if query is not None:
                response.answer = json.dumps(asdict(checked(self._memory.answer(query))))
            elif raw.get("settle") and hasattr(self._memory, "settle"):
                self._memory.settle()

        return answer(response, work)

    def close(self) -> None:
        """What is kept lies in its file; the rest goes."""
        self._memory.close()
        self._folder.cleanup()


def main(args: list[str] | None = None) -> None:
    """Entry point of `memory_node`."""
    run_node(MemoryNode, args)


if __name__ == "__main__":
    main()
