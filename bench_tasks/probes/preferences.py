"""The probe of preferences learned from feedback, after PAHF (arXiv 2602.16173)."""

from __future__ import annotations

from dataclasses import dataclass

from bench_tasks.errors import UsageError
from bench_tasks.options import check_ranges
from bench_tasks.probes.preference_state import ASPECTS, CONTEXTS, ERRANDS, PHASES, Home
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Probe

__all__ = ["FEEDBACK", "Options", "Preferences"]

FEEDBACK = ("both", "before", "after", "none")


@dataclass(frozen=True)
class Options:
    """How much there is to learn, and what the person says.

    `scenarios` of each phase; `feedback` is what he says in the phases of learning: before the act,
    when asked, after it, or both. `drift` is the share of errands of which another value is liked
    from the third phase on, in each aspect. Of `people` the first one's wishes are to be met, the
    others speak of their own; `small_talk` and `others` are what is said before each request.
    """

    scenarios: int = 24
    errands: int = 6
    contexts: int = 2
    feedback: str = "both"
    drift: float = 0.5
    people: int = 2
    small_talk: int = 2
    others: int = 1
    paraphrase: bool = True

    def __post_init__(self) -> None:
        """UsageError names the option whose value cannot be."""
        check_ranges(
            self, errands=(2, len(ERRANDS)), contexts=(2, len(CONTEXTS)), people=(1, 4),
            small_talk=(0, 50), others=(0, 50), drift=(0, 1),
        )  # fmt: skip
        least = self.errands * self.contexts
        if not least <= self.scenarios <= 200:
            raise UsageError(
                f"scenarios must be {least} to 200, so that each of {self.errands} errands comes "
                f"in each of {self.contexts} contexts, got {self.scenarios}"
            )
        if self.feedback not in FEEDBACK:
            raise UsageError(f"feedback must be {' or '.join(FEEDBACK)}, got {self.feedback!r}")

    def home(self, seed: int) -> Home:
        """Who lives there."""
        return Home(seed, self.errands, self.contexts, self.people, self.small_talk, self.others,
                    self.drift, self.paraphrase)  # fmt: skip


class Preferences:
    """Makes the steps of one person's wishes per seed, with what is answered as what is done."""

    Options = Options
    pictured = False

    def __init__(self, options: Options | None = None) -> None:
        """With the defaults there are 96 scenarios, and four questions to each."""
        self.options = options or Options()

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """Four phases. In a scenario each aspect is asked for once.

        While learning, the first one that is not answered is told and asked for again, that being
        the one clarification before the act; and after the act what was wrong is told.
        """
        home = self.options.home(seed)
        before, after = (self.options.feedback in ("both", way) for way in ("before", "after"))
        for phase in PHASES:
            for scenario in home.phase(phase, self.options.scenarios):
                yield from home.begin(scenario)
                done: dict[str, str] = {}
                about: dict[str, str] = {}
                may_ask = before and scenario.learning
                for aspect in ASPECTS:
                    asked = home.ask(scenario, aspect)
                    reply = yield asked
                    if may_ask and reply is not None and reply.abstained:
                        may_ask = False
                        yield home.tell(scenario, aspect, asked.query.id)
                        asked = home.ask(scenario, aspect, instead_of=asked.query.id)
                        reply = yield asked
                    about[aspect] = asked.query.id
                    done[aspect] = reply.text if reply is not None else ""
                if after and scenario.learning:
                    yield from home.after(scenario, done, about)
