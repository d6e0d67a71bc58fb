"""Generated conversations in the layout of H2HMem, for whoever's program reads that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.probes.h2hmem import EXTRA
from bench_tasks.probes.stream import Asked, Item, Step

__all__ = ["NAMES", "write_dialogue"]

NAMES = {
    "UPR": ("Memory Recall", "Unimodal Precise Recall"),
    "CRR": ("Memory Recall", "Cross-modal Related Retrieval"),
    "KR": ("Memory Recall", "Knowledge Resolution"),
    "TR": ("Memory Reasoning", "Temporal Reasoning"),
    "MCR": ("Memory Reasoning", "Multimodal Causal Inference"),
    "RET": ("Memory Reasoning", "Reference & Evolution Tracking"),
    "TTL": ("Memory Application", "Test-Time Learning"),
    "CD": ("Memory Application", "Conflict Detection"),
    "AR": ("Memory Application", "Answer Refusal"),
}
"""Type of question -> what the layout calls its group, and the type itself."""


def write_dialogue(steps: Iterable[Step], folder: Path) -> int:
    """Write `folder`/scenes/sessionK/...; returns the number of sessions.

    A question goes to the session after which it is asked. What the layout has no place for (ids,
    stamps, choices, evidence) is under a key of our own, which others pass over. UsageError when
    the folder is there already or cannot be written.
    """
    sessions: list[tuple[list[Item], list[Asked]]] = []
    for step in steps:
        if isinstance(step, Asked):
            sessions[-1][1].append(step)
        elif sessions and sessions[-1][0][-1].session == step.session:
            sessions[-1][0].append(step)
        else:
            sessions.append(([step], []))
    number = {said[0].session: k + 1 for k, (said, _) in enumerate(sessions)}
    session_of = {i.id: f"session{number[i.session]}" for said, _ in sessions for i in said}
    try:
        folder.mkdir(parents=True)
        for k, (said, asked) in enumerate(sessions, 1):
            path = folder / "scenes" / f"session{k}"
            (path / "image").mkdir(parents=True)
            turns = [_turn(item, path / "image", n) for n, item in enumerate(said, 1)]
            day = datetime.fromtimestamp(said[0].stamp_ns // 10**9, timezone.utc)
            _write(path / "session.json", {
                "session_id": said[0].session, "session_title": f"Session {k}",
                "theme": "talk in front of a robot", "timeline_date": f"{day:%Y-%m-%d}",
                "dialogue": turns,
            })  # fmt: skip
            questions = [_question(one, session_of, k, folder.name) for one in asked]
            _write(path / "questions.json", {"questions": questions})
    except FileExistsError:
        raise UsageError(f"{folder} exists already: choose another folder") from None
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from None
    return len(sessions)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _turn(item: Item, images: Path, number: int) -> dict[str, Any]:
    content: dict[str, Any] = {"image": "", "text": item.text}
    if item.picture is not None:
        if item.picture.data:
            content["image"] = f"{number}.jpg" if item.picture.format == "jpeg" else (
                f"{number}.{item.picture.format}")  # fmt: skip
            (images / content["image"]).write_bytes(item.picture.data)
        if item.picture.caption:
            content["caption"] = item.picture.caption
    return {
        "role": item.speaker, "content": content,
        EXTRA: {"id": item.id, "stamp_ns": item.stamp_ns},
    }  # fmt: skip


def _question(asked: Asked, session_of: dict[str, str], now: int, dialogue: str) -> dict[str, Any]:
    main, sub = NAMES.get(asked.kind, ("Memory Recall", asked.kind))
    sessions = list(dict.fromkeys(session_of[one] for one in asked.evidence))
    return {
        "question": {"image": "", "text": asked.query.text},
        "original_answer": asked.gold,
        "answer_session": sessions or [f"session{now}"],
        "answer_dialogue": dialogue,
        "question_type": {"main_type": main, "sub_type": sub},
        "difficulty": ("easy", "easy", "medium", "hard")[min(len(asked.evidence), 3)],
        "validated": True,
        EXTRA: {
            "id": asked.query.id, "stamp_ns": asked.query.stamp_ns, "chance": asked.chance,
            "choices": list(asked.query.choices), "evidence": list(asked.evidence),
            "tags": asked.tags,
        },
    }  # fmt: skip
