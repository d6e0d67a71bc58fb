"""A model behind any OpenAI-compatible HTTP server: a vendor's, vLLM, SGLang, llama.cpp, Ollama.

The key comes from an environment variable at each call and goes nowhere but into the request's
header: whatever comes back is searched for it before it is shown or kept.
"""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import CameraFrame
from policies.planners.chat import ChatOptions, ChatPlanner, Completion, Message, PlannerError
from policies.planners.http_json import Endpoint, HttpFailure, post_json

__all__ = ["OpenAIOptions", "OpenAIPlanner"]

STRUCTURED = ("auto", "schema", "none")
HIDDEN = "[key]"
REFUSED_STATUS = frozenset({400, 413, 422})
"""With these a server says that there is something about the request, as its length."""


@dataclass(frozen=True)
class OpenAIOptions(ChatOptions):
    """Options besides those of every model planner.

    api_key_env: the environment variable with the key (none is sent when it is not set).
    timeout_s: of one try; deadline_s: of all tries and waits of one call. retries: after the first
    try, backoff_s * 2^n apart, or what the server asks for. structured: schema asks for answers by
    JSON schema; auto asks and does without where the server refuses. price_in, price_out: US
    dollars for a million tokens, 0 when unknown.
    """

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    timeout_s: float = 90.0
    deadline_s: float = 240.0
    retries: int = 4
    backoff_s: float = 1.0
    structured: str = "auto"
    price_in: float = 0.0
    price_out: float = 0.0


class OpenAIPlanner(ChatPlanner):
    """Chat completions over HTTP."""

    name = "openai"
    Options = OpenAIOptions
    options: OpenAIOptions

    def __init__(self, options: OpenAIOptions | None = None) -> None:
        """Nothing is connected to yet. UsageError when an option is wrong."""
        super().__init__(options)
        if self.options.structured not in STRUCTURED:
            raise unknown("structured", self.options.structured, STRUCTURED)
        for key in ("timeout_s", "deadline_s"):
            if getattr(self.options, key) <= 0.0:
                raise UsageError(f"planner openai: {key} must be above 0")
        self._endpoint = Endpoint.of(self.options.base_url)
        self._left_out: set[str] = set()

    def identity(self) -> dict[str, Any]:
        """As for every model, with the server."""
        return {**super().identity(), "base_url": self.options.base_url,
                "structured": self.options.structured}  # fmt: skip

    def served(self, done: Completion) -> dict[str, Any]:
        """The model as the server calls it, and what it did not let us ask for."""
        return {"model": done.details["served_model"], "left_out": sorted(self._left_out)}

    def _complete(self, messages: list[Message], schema: dict[str, Any]) -> Completion:
        """The server's answer; PlannerError with the attempts made when there is none."""
        key = self._key()
        tries: list[dict[str, Any]] = []
        deadline = time.monotonic() + self.options.deadline_s
        try:
            raw = self._try(messages, schema, key, deadline, tries)
            return self._read(_hide(raw, key), tries)
        except HttpFailure as failure:
            reason = _hide(str(failure), key)
            count = f" ({len(tries)} tries)" if len(tries) > 1 else ""
            raise PlannerError(
                f"model server {self._endpoint}: {reason}{count}", {"attempts": tries},
                refused=failure.status in REFUSED_STATUS,
            ) from None

    def _try(
        self, messages: list[Message], schema: dict[str, Any], key: str, deadline: float,
        tries: list[dict[str, Any]],
    ) -> Any:
        """Ask until there is an answer; HttpFailure when no further try may help or fits in."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        failed = 0
        while True:
            body = self._body(messages, schema)
            timeout = min(self.options.timeout_s, deadline - time.monotonic())
            begun = time.monotonic()
            try:
                value = post_json(
                    self._endpoint, "/chat/completions", body, headers, max(timeout, 1e-3)
                )
                tries.append({"latency_s": time.monotonic() - begun})
                return value
            except HttpFailure as failure:
                entry: dict[str, Any] = {
                    "latency_s": time.monotonic() - begun, "status": failure.status,
                    "error": _hide(str(failure), key),
                }
                tries.append(entry)
                field = self._refused_field(failure, body)
                if field:
                    self._left_out.add(field)
                    entry["left_out"] = field
                    continue
                if not failure.again or failed >= self.options.retries:
                    raise
                wait = self.options.backoff_s * 2.0**failed
                if failure.wait_s is not None:
                    wait = failure.wait_s
                failed += 1
                if time.monotonic() + wait >= deadline:
                    raise HttpFailure(
                        f"{failure}; no time for another try in {self.options.deadline_s:g} s",
                        False, failure.status,
                    ) from None
                entry["wait_s"] = wait
                time.sleep(wait)

    def _body(self, messages: list[Message], schema: dict[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.options.model, "messages": [_wire(m) for m in messages],
            "max_tokens": self.options.max_tokens, "temperature": self.options.temperature,
            "seed": self._seed,
        }  # fmt: skip
        if schema and self.options.structured != "none":
            body["response_format"] = {
                "type": "json_schema", "json_schema": {"name": "answer", "schema": schema},
            }  # fmt: skip
        for field in self._left_out:
            value = body.pop(field, None)
            if field == "max_tokens" and value is not None:
                body["max_completion_tokens"] = value
        return body

    def _refused_field(self, failure: HttpFailure, body: dict[str, Any]) -> str:
        """The optional field that a server says it does not know; "" when it says nothing such."""
        if failure.status not in (400, 422):
            return ""
        candidates = ["response_format", "max_tokens", "seed", "temperature"]
        if self.options.structured == "schema":
            candidates.remove("response_format")
        return next((f for f in candidates if f in body and f in failure.body), "")

    def _read(self, raw: Any, tries: list[dict[str, Any]]) -> Completion:
        """The answer's text and counts; HttpFailure when the JSON is not a chat completion."""
        choices = raw.get("choices") if isinstance(raw, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            raise HttpFailure("its JSON is no chat completion: there are no choices", False)
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
        text = content if isinstance(content, str) else str(message.get("refusal") or "")
        usage = raw.get("usage") if isinstance(raw.get("usage"), dict) else {}
        counts = [_count(usage.get(k)) for k in ("prompt_tokens", "completion_tokens")]
        prices = (self.options.price_in, self.options.price_out)
        cost = None
        if any(prices) and None not in counts:
            cost = sum((n or 0) * p / 1e6 for n, p in zip(counts, prices, strict=True))
        return Completion(
            text, counts[0], counts[1], cost, choice.get("finish_reason") == "length",
            {"attempts": tries, "served_model": str(raw.get("model", ""))},
        )  # fmt: skip

    def _key(self) -> str:
        key = os.environ.get(self.options.api_key_env, "").strip()
        if not key.isascii() or not key.isprintable():
            raise PlannerError(
                f"the key in {self.options.api_key_env} holds characters that no header can carry"
            )
        return key


def _wire(message: Message) -> dict[str, Any]:
    """A message in the server's format; pictures as data URLs."""
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, CameraFrame):
            data = base64.b64encode(part.data).decode()
            url = f"data:image/{part.format};base64,{data}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            parts.append({"type": "text", "text": part})
    if all(part["type"] == "text" for part in parts):
        # Servers of text models want plain text.
        return {"role": message.role, "content": "\n".join(part["text"] for part in parts)}
    return {"role": message.role, "content": parts}


def _hide(value: Any, key: str) -> Any:
    """The same value with the key taken out of every text in it."""
    if not key:
        return value
    if isinstance(value, str):
        return value.replace(key, HIDDEN)
    if isinstance(value, list):
        return [_hide(item, key) for item in value]
    if isinstance(value, dict):
        return {_hide(k, key): _hide(v, key) for k, v in value.items()}
    return value


def _count(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if good else None
