"""The model that comes with the package."""

from __future__ import annotations

import json
import re

import pytest

torch = pytest.importorskip("torch")

from bench_tasks import runner  # noqa: E402
from bench_tasks.config import DEMONSTRATION_SEEDS, RunConfig  # noqa: E402
from policies.wam.checkpoint import load_checkpoint  # noqa: E402
from policies.wam.policy import SHIPPED  # noqa: E402

TASKS = ("grab_roller", "lift_pot", "stack_blocks_two")


def test_it_is_small_and_says_what_made_it():
    assert SHIPPED.stat().st_size <= 20e6
    found = load_checkpoint(SHIPPED)
    made = found.made
    assert set(TASKS) <= set(made["tasks"]) and found.model.shape.video
    assert made["recipe"]["seed"] == 0 and made["steps"] == made["recipe"]["steps"]
    assert made["command"].startswith("bench_tasks train ")
    for folder in made["data"]:
        assert re.fullmatch("[0-9a-f]{64}", folder["hash"])
    assert " /" not in json.dumps(made) and "/tmp" not in json.dumps(made), "no path of a machine"
    assert DEMONSTRATION_SEEDS.start == 1_000_000, "its demonstrations are of no evaluation"
    # Weights of 16 bits that are not what they were made of would show as values beyond them.
    assert all(torch.isfinite(p).all() for p in found.model.parameters())


@pytest.mark.slow
def test_it_lifts_things():
    config = RunConfig(
        ("grab_roller", "lift_pot"), policy="wam", episodes=10, seed=0, record=False, cameras=()
    )
    won = sum(episode.success for episode in runner.run(config).episodes)
    assert won >= 14, "18 when it was measured"
