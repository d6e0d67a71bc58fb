"""A page about the tasks: what each asks for, and how it looks before and after.

With `runner` and `doctor` the only modules of the package that know the simulator and policies.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_tasks import tasks
from bench_tasks.bags.recording import HashSink
from bench_tasks.commands.progress import Progress
from bench_tasks.episode import run_episode
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.tasks.base import Ask, Check, Task
from bench_tasks.vocabulary import Event, Scene, Verdict, WorldState

if TYPE_CHECKING:
    from sim.world import SimWorld

__all__ = ["PAGE", "gallery", "page", "section"]

PAGE, PICTURES = "gallery.md", "pictures"
JPEG_QUALITY = 72
SEEDS_TRIED = 5
_TIERS: dict[int | None, str] = {
    1: "Tier 1: spatial reasoning", 2: "Tier 2: planning with skills",
    3: "Tier 3: end-effector targets", None: "Memory probes",
}  # fmt: skip


class _Plans(HashSink):
    """Keeps the state 0 and the steps that were planned."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[WorldState] = []
        self.plans: list[list[list[dict[str, Any]]]] = []
        self.scenes: list[Scene] = []

    def scene(self, scene: Scene) -> None:
        self.scenes.append(scene)

    def state(self, state: WorldState) -> None:
        self.states = [*self.states[:1], state]

    def event(self, event: Event) -> None:
        if event.kind == "plan" and event.data["steps"]:
            self.plans.append(event.data["steps"])


def gallery(
    out: Path, names: tuple[str, ...], seed: int = 0, progress: Progress | None = None
) -> Path:
    """Write `out`/gallery.md and a picture per task into `out`/pictures; returns the page.

    Each task is shown at the first seed from `seed` on at which its expert succeeds. UsageError on
    an unknown task or a folder that cannot be written; BenchError when an expert never succeeds.
    """
    if not names:
        raise UsageError(f"no task to show: choose from all, {', '.join(tasks.names())}")
    chosen = [tasks.get(name) for name in names]
    from sim.portrait import RENDERED
    from sim.world import SimWorld

    world = SimWorld(True, *RENDERED)
    progress = progress or Progress(len(chosen))
    sections = {}
    for task in chosen:
        scene, expert, picture = _shown(world, task, seed)
        _write(out / PICTURES / f"{task.name}.jpg", picture)
        sections[task.name] = section(task, scene, expert)
        progress.done(f"{task.name} seed {scene.seed}")
    progress.close()
    _write(out / PAGE, page(sections).encode())
    return out / PAGE


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _shown(world: SimWorld, task: Task, first: int) -> tuple[Scene, str, bytes]:
    """The scene, what the expert did in it, and the picture (JPEG): before and after."""
    import cv2

    from policies import make_planner, make_policy
    from sim.portrait import portrait

    planner, policy = make_planner("expert"), make_policy("skills")
    cause = ""
    for seed in range(first, first + SEEDS_TRIED):
        sink = _Plans()
        verdict, _ = run_episode(task, seed, world, planner, policy, sink)
        if verdict.success:
            break
        cause = cause or verdict.cause
    else:
        raise BenchError(
            f"the expert of {task.name} fails with all seeds from {first} to "
            f"{first + SEEDS_TRIED - 1}: {cause}"
        )
    scene, states = sink.scenes[0], tuple(sink.states)
    if task.goal(scene) is None:
        # Nothing moves: what the planner sees says more than the same picture again.
        pictures = [portrait(world, camera, states) for camera in ("third", "head")]
    else:
        after = portrait(world, "third", states)
        world.restart()
        pictures = [portrait(world, "third", states), after]
    gap = np.full((pictures[0].shape[0], 6, 3), 255, np.uint8)
    joined = cv2.cvtColor(np.hstack([pictures[0], gap, pictures[1]]), cv2.COLOR_RGB2BGR)
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    return scene, _expert(sink.plans, verdict), cv2.imencode(".jpg", joined, options)[1].tobytes()


def _expert(plans: list[list[list[dict[str, Any]]]], verdict: Verdict) -> str:
    if not plans:
        return "gives the gold"
    steps = [" + ".join(_call(call) for call in step) for plan in plans for step in plan]
    counted = [(text, len(list(same))) for text, same in groupby(steps)]
    shown = ", ".join(text if n == 1 else f"{text} ({n} times)" for text, n in counted)
    often = "" if len(plans) == 1 else f", in {len(plans)} plans"
    return f"done after {verdict.sim_s:.1f} s{often}: {shown}"


def _call(call: dict[str, Any]) -> str:
    return " ".join(w for w in (call["arm"], call["skill"], call["args"].get("object", "")) if w)


def section(task: Task, scene: Scene, expert: str) -> str:
    """What the page says of one task; `expert` tells what its expert did in this scene."""
    kind = f"tier {task.tier}" if task.tier is not None else "memory probe"
    lines = [f"## {task.name}", "", f"{task.summary[0].upper()}{task.summary[1:]}."]
    lines += [f"{kind.capitalize()}, {task.mode}; at seed {scene.seed} the instruction is:", ""]
    lines += [f"> {scene.instruction}", "", f"![{task.name}]({PICTURES}/{task.name}.jpg)", ""]
    for step in task.prologue(scene):
        if isinstance(step, Ask):
            if step.question.text != scene.instruction:
                lines.append(f"- **Question**: {step.question.text}")
            gold = ", ".join(f"{item} {value}" for item, value in step.gold.items())
            lines.append(f"- **Gold**: {gold}; guessing is right in {step.chance:.0%}")
    goal = task.goal(scene)
    if goal is not None:
        lines.append(f"- **Goal**, for {goal.hold_s:g} s at rest: {_checks(goal.checks)}")
        lines.append(f"- **Stages**: {_checks(task.stages(scene))}")
    if task.invariants(scene):
        lines.append(f"- **Always**: {_checks(task.invariants(scene))}")
    lines.append(f"- **Expert**: {expert}")
    return "\n".join(lines) + "\n"


def _checks(checks: tuple[Check, ...]) -> str:
    """Names of conditions, with those that must have come before."""
    return ", ".join(
        check.name + (f" (after {' and '.join(check.after)})" if check.after else "")
        for check in checks
    )


def page(sections: dict[str, str]) -> str:
    """The whole page from the section of each task, by name, in this order."""
    lines = [
        "# Tasks", "",
        "Each task before and after its scripted expert did it, seen from the front: the robot's",
        "left is on the right. Where only questions are asked, the second picture is what the head",
        "camera shows the planner. `bench_tasks gallery` makes this page, and one of tasks of your",
        "own.", "",
    ]  # fmt: skip
    for tier, title in _TIERS.items():
        links = [f"[{name}](#{name})" for name in sections if tasks.get(name).tier == tier]
        if links:
            lines.append(f"- {title}: {', '.join(links)}")
    return "\n".join(lines) + "\n\n" + "\n".join(sections.values())
