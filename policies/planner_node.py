"""The node `planner`: any planner of the registry behind the services plan, ask and reset."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from bench_interfaces.srv import Ask, Plan, ResetAgent

from bench_tasks.bags import cdr
from bench_tasks.errors import UsageError
from bench_tasks.ros.frames_ros import frames_of
from bench_tasks.ros.node_ros import BenchNode, answer, from_message, parameter
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.vocabulary import Observation, PlanRequest, Question, Scene
from policies import make_planner

__all__ = ["PlannerNode", "main"]


class PlannerNode(BenchNode):
    """Asks its planner, one call at a time."""

    def __init__(self) -> None:
        """Load the planner that the parameter `planner` names; UsageError if unknown."""
        super().__init__("planner")
        self._planner = make_planner(parameter(self, "planner", "expert"))
        self.create_service(ResetAgent, "/planner/reset", self._reset)
        self.create_service(Plan, "/planner/plan", self._plan)
        self.create_service(Ask, "/planner/ask", self._ask)

    def _reset(self, request: ResetAgent.Request, response: ResetAgent.Response):
        def work() -> None:
            # An empty scene asks for the metadata alone.
            if request.scene:
                self._planner.reset(Scene.from_json(request.scene), request.seed)
            response.metadata = json.dumps(asdict(self._planner.metadata))

        return answer(response, work)

    def _plan(self, request: Plan.Request, response: Plan.Response):
        def work() -> None:
            seen = _observation(request)
            feedback = json.loads(request.feedback or "{}")
            if request.observe_only:
                heard = tuple(tuple(line) for line in feedback.get("heard", ()))
                self._planner.observe(replace(seen, heard=heard))
                return
            plan = self._planner.plan(
                PlanRequest(request.instruction, seen, request.turn, feedback)
            )
            response.plan = plan.to_json()

        return answer(response, work)

    def _ask(self, request: Ask.Request, response: Ask.Response):
        def work() -> None:
            raw = json.loads(request.question)
            try:
                choices = {item: tuple(values) for item, values in raw["choices"].items()}
                question = Question(raw["name"], raw["text"], choices)
            except (KeyError, TypeError, AttributeError) as error:
                raise UsageError(f"malformed question: {error!r}") from None
            reply = self._planner.ask(question, _observation(request))
            response.answer = reply.to_json()

        return answer(response, work)


def _observation(request: Plan.Request | Ask.Request) -> Observation:
    """State and pictures of a request."""
    state = cdr.decode_state(from_message(request.state))
    return Observation(state, frames_of(request))


def main(args: list[str] | None = None) -> None:
    """Entry point of `planner_node`."""
    run_node(PlannerNode, args)


if __name__ == "__main__":
    main()
