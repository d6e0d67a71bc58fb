"""The language of generated conversations: what a sentence means, and how it may be put.

A `Meaning` is a kind and its slots. `say` draws one of the kind's sentences, `put` takes a given
one, `meanings` reads them again, whichever it was. Conversations are generated in it, and the
rule-based reader understands it, so that a probe measures what was kept and found again, not how
well a model reads English. Persons have names of one word.
What is not of this language (small talk, a published dialogue) has no meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench_tasks.errors import UsageError, unknown

__all__ = [
    "QUESTIONS", "SEEN", "SENTENCES", "Meaning", "counting", "meanings", "only", "put", "say",
    "state_in_words", "suiting", "variants",
]  # fmt: skip

SENTENCES: dict[str, tuple[str, ...]] = {
    # A person's attribute; the last one said holds.
    "has": (
        "My {attribute} is {value}.", "By the way, my {attribute} is {value}.",
        "You should know that my {attribute} is {value}.",
    ),
    "changed": (
        "My {attribute} is {value} now, no longer what it was.",
        "I have changed my mind: my {attribute} is {value} from today.",
    ),
    "told": (
        "{person}'s {attribute} is {value}, as far as I know.",
        "I heard that {person}'s {attribute} is {value}.",
    ),
    # Where things are.
    "lies": ("The {object} is {place}.", "If you look for the {object}: it is {place}."),
    "put": (
        "I took the {object} and put it {place}.", "I moved the {object}, so it is {place} now.",
    ),
    "put_this": ("I have put this one {place}.", "This one went {place}, I moved it there."),
    "belongs": ("From now on the {object} belongs {place}.",),
    # What was so before something came in between, and what was seen to be done.
    "was": ("Before, the {object} was {place}.",),
    "saw": ("I saw that somebody {event}.",),
    # What somebody did; the reason may be told with it.
    "did": ("Today I {event}.", "Earlier on I {event}."),
    "because": ("I {event} because {reason}.", "The reason why I {event} is that {reason}."),
    # Words of one's own.
    "means": ("When I say {word}, I mean the {object}.", "What I call {word} is the {object}."),
    # Beside a picture.
    "shows": ("Look at this one.", "Here is a picture that I took.", "See what I have got here."),
    "calls": ("I call this one {name}.", "This one is called {name}."),
    "one_of": ("One of these is called {name}.", "Of these, one goes by the name {name}."),
    # What colour something has, by hearsay: nothing is shown.
    "looks": ("I am sure that {name} is {value}.", "Take my word for it: {name} is {value}."),
    "unsure": ("I cannot tell which colour {name} has.", "I do not know what colour {name} is."),
    # What somebody likes to be done how; the last one said holds, in general or in its context.
    "wants": (
        "For {errand} the {aspect} that I like is {value}.",
        "The {aspect} that I want for {errand} is {value}.",
        "Please remember: for {errand} the {aspect} should be {value}.",
    ),
    "wants_when": (
        "When I am {context}, the {aspect} that I like for {errand} is {value}.",
        "The {aspect} that I want for {errand} when I am {context} is {value}.",
        "Please remember: for {errand} the {aspect} should be {value} when I am {context}.",
    ),
    "asks": (
        "I am {context} today, please lay out what I need for {errand}.",
        "Being {context}, I want you to lay out what I need for {errand}.",
    ),
}  # fmt: skip
"""Kind of statement -> the ways to put it. No way of one kind may be read as another kind."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "attribute": (
        "What is {person}'s {attribute}?", "Do you know what {person}'s {attribute} is?",
        "Tell me: what does {person} have as {attribute}?",
    ),
    "place": ("Where is the {object}?", "In which place will I find the {object}?"),
    "place_before": (
        "Where was the {object} before it was {place}?",
        "In which place was the {object}, before it was {place}?",
    ),
    "what_moved": (
        "Which of these has been moved: {things}?", "One may have been moved of {things}. Which?",
    ),
    "what_was": ("Which of these was {place} before: {things}?",
                 "Of {things}: which one was {place} before?"),
    "what_first": (
        "Which of these was tried first: {things}?", "Of {things}: which one was tried first?",
    ),
    "place_of_word": (
        "Where is the thing that {person} calls {word}?",
        "{person} asks for {word}. Where does it lie?",
    ),
    "order": (
        "{person} did three things. A: {a}; B: {b}; C: {c}. In which order?",
        "Put in order what {person} did. A: {a}; B: {b}; C: {c}.",
    ),
    "reason": ("{person} {event}. For what reason?", "Why is it that {person} {event}?"),
    "who": ("Who {event}?", "Which person {event}?"),
    "how_often": ("How often did it happen that {person} {event}?",
                  "Count the times that {person} {event}: how many?"),
    "colour_of_name": (
        "Which colour is the one called {name}?", "What colour does {name} have?",
    ),
    "wager": (
        "Share 100 points between {a}, {b} and {c}: which colour is the one called {name}?",
        "What colour does {name} have? Bet 100 points on {a}, {b} and {c}.",
    ),
    "again": (
        "You said {value}. Think again: which colour is the one called {name}?",
        "Your answer was {value}. What colour does {name} have, now that you think of it again?",
    ),
    "colour_put": (
        "Which colour is the thing that {person} put {place}?",
        "{person} put something {place}. What colour does it have?",
    ),
    "contradicts": (
        "{person} says that their {attribute} has always been {value}. Does this contradict "
        "what they said before?",
        "Would it be against what {person} said before if their {attribute} had always been "
        "{value}?",
    ),
    "which": (
        "Which {aspect} does {person} like for {errand} when {context}?",
        "For {errand}: which {aspect} is it that {person} wants, being {context}?",
    ),
    # By its other end, and led to where it was said.
    "whose": (
        "Whose {attribute} is {value}?", "Who of them has {value} as {attribute}?",
    ),
    "cloze": (
        "Complete what {person} said: {start}", "How does it go on, when {person} says: {start}",
    ),
    "in_context": (
        "Somebody says: {before}. Then {person} speaks of the own {attribute}. What is it?",
        "After the words: {before}, what {attribute} does {person} speak of?",
    ),
    # Of what `suiting` offers; with the state told, nothing has to be remembered.
    "suits": (
        "What suits {person} best, by {attributes}?",
        "Which of these would you pick for {person}, going by {attributes}?",
    ),
    "suits_given": (
        "Given {state}: what suits {person} best?",
        "It is known that there is {state}. Which of these would you pick for {person}?",
    ),
}  # fmt: skip
"""Kind of question -> the ways to put it."""


@dataclass(frozen=True)
class Meaning:
    """What a sentence says: its kind, and what its slots hold."""

    kind: str
    slots: dict[str, str]


SEEN = ""
"""Who speaks where something was seen."""


def only(counts: Sequence[str]) -> str:
    """The sentence that ends a question for which the word of these alone counts.

    `counts` are `SEEN`, a person, or `SEEN` and a person.
    """
    said = [f"what {person} says" for person in counts if person != SEEN]
    return f"Only {' and '.join(['what was seen'] * (SEEN in counts) + said)} counts."


def counting(text: str) -> tuple[str, tuple[str, ...] | None]:
    """A question without its last sentence, if that is one of `only`; and whose word counts."""
    found = _ONLY.fullmatch(text.strip())
    if found is None:
        return text, None
    question, seen, person = found.groups()
    return question, (*((SEEN,) if seen else ()), *((person,) if person else ()))


_ONLY = re.compile(
    r"(.+[.?!]) Only (?:(what was seen)(?: and (?=what \w+ says))?)?(?:what (\w+) says)? counts\."
)


def state_in_words(state: dict[str, str]) -> str:
    """Values of attributes, as `suits_given` has them."""
    return " and ".join(f"{value} as {attribute}" for attribute, value in state.items())


def suiting(state: str) -> str:
    """The choice that suits those in a state, given in words."""
    return f"what goes with {state}"


def variants(kind: str) -> int:
    """How many ways there are to put it; UsageError names the kinds there are."""
    return len(_forms(kind))


def _forms(kind: str) -> tuple[str, ...]:
    forms = SENTENCES.get(kind) or QUESTIONS.get(kind)
    if forms is None:
        raise unknown("kind of sentence", kind, (*SENTENCES, *QUESTIONS))
    return forms


def say(kind: str, rng: np.random.Generator, **slots: str) -> str:
    """One of the sentences of a kind, drawn, its slots filled."""
    return put(kind, int(rng.integers(variants(kind))), **slots)


def put(kind: str, way: int, **slots: str) -> str:
    """The sentence of a kind that puts it in the `way`-th way, 0 being the plain one.

    UsageError when a slot holds a sign that ends a sentence: it could not be read again.
    """
    for name, value in slots.items():
        if not re.fullmatch(_WORDS.get(name, "[^.?!\n]+"), value):
            what = "one word" if name in _WORDS else "words without . ? !"
            raise UsageError(f"{name} must be {what}, got {value!r}")
    return _forms(kind)[way].format(**slots)


_WORDS = {"person": r"\w+"}
"""What a slot may hold where that is less than any words."""


@cache
def _patterns(asked: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = []
    for kind, forms in (QUESTIONS if asked else SENTENCES).items():
        for form in forms:
            parts = re.split(r"\{(\w+)\}", form)
            text = "".join(
                f"(?P<{part}>{_WORDS.get(part, '.+?')})" if k % 2 else re.escape(part)
                for k, part in enumerate(parts)
            )
            found.append((len("".join(parts[::2])), kind, re.compile(text)))
    # What says more of itself is tried first: "My x is y now, no longer .." is also "My x is y".
    found.sort(key=lambda entry: -entry[0])
    return tuple((kind, pattern) for _, kind, pattern in found)


def meanings(text: str, asked: bool = False) -> list[Meaning]:
    """What the sentences of a text say, in their order; with `asked` it is one question.

    Sentences of another language mean nothing and are left out.
    """
    found = []
    if asked:
        text, _ = counting(text)
    for sentence in [text.strip()] if asked else re.split(r"(?<=[.?!])\s+", text.strip()):
        for kind, pattern in _patterns(asked):
            match = pattern.fullmatch(sentence)
            if match:
                found.append(Meaning(kind, match.groupdict()))
                break
    return found
