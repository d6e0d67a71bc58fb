"""What a robot was sent last, and how late it does what it is sent: known, or learnt."""

from __future__ import annotations

import numpy as np

from bench_tasks.vocabulary import ActionChunk

__all__ = ["MOST_LEAD", "SAME", "Sent"]

SAME = 1e-6
"""Numbers of actions that differ by no more are the same."""
MOST_LEAD = 5
"""A robot that is later than that is not one to be commanded at this rate."""
QUIET_PERIODS, MOST_QUIET = 500, 8000
"""After so many periods of motion in which the lead sufficed a smaller one is tried; it is twice as
many each time that was too small."""


class Sent:
    """Of one motion. Mutates no list, so that a copy is independent."""

    def __init__(self, least: int) -> None:
        """`least` periods later it does something in any case."""
        self._least = least
        self.lead = least
        """At most so many periods later the robot does what it is sent: till then what was before.

        All that is sent begins with that, so that it is the same whenever it comes until then.
        """
        self._next_lead = least
        """The lead from the next state on."""
        self._missed = False
        """Whether the newest state is not as it was sent."""
        self._quiet, self._patience = 0, QUIET_PERIODS
        self._calm = MOST_LEAD
        """States running that were as sent, since one that no lateness that is learnt explains."""
        self._chunks: list[ActionChunk] = []
        """Oldest first."""

    def add(self, chunk: ActionChunk) -> None:
        """This was sent, in place of another that answered the same state."""
        before = [known for known in self._chunks if known.seq < chunk.seq]
        self._chunks = [*before[-MOST_LEAD - 2 :], chunk]

    def clear(self) -> None:
        """Nothing of it counts any more."""
        self._chunks = []

    def ago(self, seq: int) -> int:
        """How many periods before state `seq` something was sent last, if it was lately."""
        return seq - self._chunks[-1].seq if self._chunks else MOST_LEAD

    # -- what came of it -------------------------------------------------------------------------

    def row(self, seq: int, late: int = 0) -> np.ndarray | None:
        """The action that answers state `seq` for a robot so late, if one was sent."""
        newest = next((c for c in reversed(self._chunks) if c.seq <= seq - late), None)
        return newest.values[min(seq - newest.seq, len(newest.values) - 1)] if newest else None

    def late(self, seq: int, command: np.ndarray, before: np.ndarray) -> int | None:
        """By how many periods what made the `command` of state `seq` was late, after `before`.

        The lead if it may have been so; None when nothing that was sent explains it.
        """
        for late in (*range(self.lead, -1, -1), *range(self.lead + 1, MOST_LEAD + 1)):
            row = self.row(seq - 1, late)
            if np.abs((before if row is None else row) - command).max() <= SAME:
                return late
        return None

    def coming(self, seq: int, command: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
        """As many actions as the lead, which answer `seq` and what follows; none if not known."""
        late = self.late(seq, command, before)
        if late is None:
            return []
        rows = [self.row(seq + k, late) for k in range(self.lead)]
        return [command if row is None else row for row in rows]

    # -- how late it is --------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether a robot that was later than can be learnt has been seen to do what it was sent.

        As long as orders of before may still reach it, new ones would throw the arms about.
        """
        return self._calm >= MOST_LEAD

    def look(self) -> None:
        """A state has come: what was learnt in the one before holds."""
        self.lead = max(self.lead, self._next_lead)

    def done(self, moving: bool) -> None:
        """It is as it was sent; `moving`: by arms in motion along a path."""
        self._missed = False
        self._calm += 1
        if moving and self.lead > self._least:
            self._try_sooner()

    def not_done(self, seq: int, command: np.ndarray) -> None:
        """It is not: the robot may do things later than thought, or not even so.

        It is the greatest lateness that counts: with a smaller one each order that is later would
        find the arms elsewhere. The first time that may have been once, and what is sent now may
        come at once. The second time running a stop that is made anew for arms that have not got
        the one before yet would be too late as well, and so would the next: they would be thrown
        to and fro.
        """
        missed, self._missed = self._missed, True
        for lead in range(self.lead + 1, MOST_LEAD + 1):
            sent = self.row(seq - 1, lead)
            if sent is not None and np.abs(sent - command).max() <= SAME:
                self._next_lead, self._quiet = lead, 0
                if missed:
                    self.lead = lead
                return
        self._calm = 0

    def _try_sooner(self) -> None:
        """Since a stop begins as much later, the lead goes down again, if that is long enough ago.

        That an order came sooner cannot be seen, as what it begins with is done in any case.
        """
        self._quiet += 1
        if self._quiet >= self._patience:
            self.lead = self._next_lead = self.lead - 1
            self._quiet = 0
            self._patience = min(2 * self._patience, MOST_QUIET)
