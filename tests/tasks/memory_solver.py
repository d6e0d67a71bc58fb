"""What is right in the memory probes, worked out from what was seen and told alone.

Another way than the tasks': of the sentences as they came, by hand, without their parameters.
"""

from __future__ import annotations

from collections.abc import Callable

Line = tuple[str, str]
"""Who said it ("" where it was seen), and one sentence."""


def seen(lines: list[Line]) -> list[str]:
    """The sentences about what was seen, in their order, without their full stop."""
    return [words.rstrip(".") for speaker, words in lines if not speaker]


def places(lines: list[Line]) -> dict[str, list[str]]:
    """Thing -> where it was seen, one after the other."""
    found: dict[str, list[str]] = {}
    for words in seen(lines):
        thing, _, place = words.removeprefix("The ").partition(" is ")
        found.setdefault(thing, []).append(place)
    return found


def cover_blocks(lines: list[Line], instruction: str) -> str:
    colour = instruction.split("Uncover the ")[1].split()[0]
    return places(lines)[f"{colour} block"][0]


def put_back_block(lines: list[Line], instruction: str) -> str:
    return places(lines)["red block"][0]


def moved_while_away(lines: list[Line], instruction: str) -> str:
    moved = [thing for thing, at in places(lines).items() if len(set(at)) > 1]
    assert len(moved) < 2
    return moved[0] if moved else "nothing"


def reopen_drawer(lines: list[Line], instruction: str) -> str:
    (drawer,) = [thing for thing, at in places(lines).items() if at == ["open"]]
    return drawer


def press_button(lines: list[Line], instruction: str) -> str:
    return str(sum(words == "I saw that somebody put the red block on the gray mat"
                   for words in seen(lines)))  # fmt: skip


def watch_then_repeat(lines: list[Line], instruction: str) -> str:
    letters = {"red": "A", "green": "B", "blue": "C"}
    return " -> ".join(letters[words.split("put the ")[1].split()[0]] for words in seen(lines))


def found_right(lines: list[Line], instruction: str) -> str:
    (said,) = [words for speaker, words in lines if speaker and words.endswith(" is right.")]
    return said.removeprefix("The ").removesuffix(" is right.")


SOLVERS: dict[str, Callable[[list[Line], str], str]] = {
    "cover_blocks": cover_blocks, "put_back_block": put_back_block,
    "moved_while_away": moved_while_away, "reopen_drawer": reopen_drawer,
    "press_button": press_button, "watch_then_repeat": watch_then_repeat,
    "battery_try": found_right, "blocks_ranking_try": found_right,
}  # fmt: skip
"""Memory probe -> what it asks, given the sentences and the instruction of an episode."""
