"""The arguments of the launch files that concern safety; the others are tried by launching."""

from __future__ import annotations

import pytest

from bench_tasks import launch_args
from bench_tasks.errors import UsageError

DEFAULTS = {name: default for name, (default, _) in launch_args.ARGUMENTS.items()}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, (False, False, False)),
        ({"safety": "true"}, (True, False, False)),
        ({"safety": "true", "confirm": "true"}, (True, True, False)),
        ({"robot": "franka"}, (True, False, False)),
        ({"robot": "franka", "confirm": "true", "safety": "true"}, (True, True, False)),
        ({"robot": "franka", "dry_run": "true", "clock": "realtime"}, (True, False, True)),
    ],
)
def test_a_real_robot_always_has_a_safety_node(given, want):
    found = launch_args._safety({**DEFAULTS, **given})
    assert (found["safety"], found["confirm"], found["dry_run"]) == want


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"robot": "franka", "safety": "false"}, "safety must be true for robot franka"),
        ({"safety": "on"}, "safety must be true or false, got 'on'"),
        ({"confirm": "true"}, "confirm must be false without safety:=true"),
        ({"dry_run": "true"}, "dry_run must be false without safety:=true"),
        ({"safety": "true", "dry_run": "true"}, "dry_run needs clock:=realtime"),
    ],
)
def test_what_does_not_fit_is_said(given, says):
    with pytest.raises(UsageError, match=says):
        launch_args._safety({**DEFAULTS, **given})
