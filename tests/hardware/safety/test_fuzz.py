"""The fuzz of benchmarks/: nothing bad is executed, and it would notice."""

from __future__ import annotations

import pytest

from benchmarks.safety.sequences import KINDS, Fuzz
from hardware.safety import command, plan, supervisor
from hardware.safety.clearance import Clearance


def test_no_bad_command_of_any_kind_is_executed():
    fuzz = Fuzz(seed=2, per_situation=60)
    for _ in range(6):
        for kind in KINDS:
            fuzz.run(kind)
    assert fuzz.failures == []
    assert set(fuzz.counts) == set(KINDS) and fuzz.actions["slowed"] > 0 and fuzz.late > 0


@pytest.mark.parametrize(
    ("weakened", "kinds"),
    [
        ("breach", ("velocity", "acceleration")),
        ("plausible", ("jump",)),
        ("timely", ("future", "replayed")),
        ("check", ("arms together", "into the table")),
        ("brake", ("e-stop", "torque")),
        ("wait", ("lost states",)),
        ("strange", ("wrong state",)),
    ],
)
def test_the_fuzz_finds_a_supervisor_that_is_not_one(monkeypatch, weakened, kinds):
    if weakened in ("breach", "plausible"):
        for module in (command, plan, supervisor):
            monkeypatch.setattr(module, "breach", lambda *_: None)
    if weakened == "brake":
        monkeypatch.setattr(plan, "brake", lambda limits, moving, ahead, free: ahead)
    elif weakened == "wait":
        monkeypatch.setattr(plan.Plan, "wait", lambda *_: None)
    elif weakened == "strange":
        monkeypatch.setattr(plan.Plan, "_strange_with", lambda *_: [])
    elif weakened == "check":
        monkeypatch.setattr(Clearance, "check", lambda *_: None)
    elif weakened != "breach":
        monkeypatch.setattr(supervisor, weakened, lambda *_: 0)
    fuzz = Fuzz(seed=2)
    for kind in kinds:
        for _ in range(8):
            fuzz.run(kind)
    assert {failure.partition(":")[0] for failure in fuzz.failures} == set(kinds)
