"""The conductor over a world that does not wait."""

from __future__ import annotations

import pytest

from bench_tasks import scoring
from bench_tasks.bag import read_bag

pytestmark = pytest.mark.ros


def test_an_episode_in_realtime_is_recorded_without_a_gap_and_scored(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, clock="realtime", tasks="lift_pot")
    assert nodes.wait("task", 200) == 0, nodes.logs()
    (score,) = scoring.load_scores(scoring.newest_scores(out))
    # Whether the arms keep up is the machine's affair; that the record is whole is ours.
    assert score.scored and score.agrees, score
    bag = read_bag(out / "lift_pot" / "000000")
    assert not bag.problems
    assert [s.seq for s in bag.states] == list(range(len(bag.states)))
    assert bag.states[-1].seq >= score.end_seq > 0
    assert {e.kind for e in bag.events} >= {"begin", "act", "plan", "end"}
    assert bag.manifest["clock"] == "realtime"
