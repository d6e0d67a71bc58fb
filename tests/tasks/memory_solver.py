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
    put = [words.split("put the ")[1] for words in seen(lines) if "put the " in words]
    return " -> ".join(letters[words.split()[0]] for words in put)


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


def last_mat(lines: list[Line], question: str) -> str:
    thing = next(words for words in question.split("the ") if "before" in words).split(" before")[0]
    return next(at for at in reversed(places(lines)[thing]) if at != "on the gray mat")


def last_open(lines: list[Line], question: str) -> str:
    return [words for words in seen(lines) if words.endswith(" is open")][-1].split()[1] + " drawer"


def on_the_yellow_mat(lines: list[Line], question: str) -> str:
    return str(sum(words.endswith("the red block on the yellow mat") for words in seen(lines)))


def taken_off(lines: list[Line], question: str) -> str:
    letters = {"red": "A", "green": "B", "blue": "C"}
    took = [words.split("took the ")[1] for words in seen(lines) if "took the " in words]
    return " -> ".join(letters[words.split()[0]] for words in took)


def first_tried(lines: list[Line], question: str) -> str:
    told = [words for _, words in lines if words.endswith((" is right.", " is wrong."))]
    return told[0].removeprefix("The ").rpartition(" is ")[0]


def still_covered(lines: list[Line], question: str) -> str:
    return places(lines)[question.removeprefix("Where is the ").rstrip("?")][0]


AFTER: dict[str, Callable[[list[Line], str], str]] = {
    "cover_blocks": still_covered, "put_back_block": last_mat, "moved_while_away": last_mat,
    "reopen_drawer": last_open, "press_button": on_the_yellow_mat,
    "watch_then_repeat": taken_off, "battery_try": first_tried, "blocks_ranking_try": first_tried,
}  # fmt: skip
"""Memory probe -> what it asks in the end, given the sentences and the question."""


def belongs(lines: list[Line], instruction: str) -> str:
    said = "From now on the red block belongs "
    told = [words for speaker, words in lines if speaker == "Ana" and words.startswith(said)]
    if not told:
        return put_back_block(lines, instruction)
    return told[-1].removeprefix(said).rstrip(".")


def right_by_ana(lines: list[Line], instruction: str) -> str:
    told = [words for speaker, words in lines if speaker == "Ana" and words.endswith(" is right.")]
    known = ("The green mat", "The blue mat", "The yellow mat", "The purple mat", "The order red",
             "The order green red", "The order green blue")  # fmt: skip
    return [w for w in told if w.startswith(known)][-1].removeprefix("The ").removesuffix(
        " is right."
    )


def amid_rumours(name: str) -> Callable[[list[Line], str], str]:
    """The same where Ana may overrule what was seen or tried."""
    others = {"put_back_block": belongs, "battery_try": right_by_ana,
              "blocks_ranking_try": right_by_ana}  # fmt: skip
    return others.get(name, SOLVERS[name])
