"""Makes the golden recordings beside this file: python tests/bench_tasks/golden/make.py [NAME...]

They stand for bags of earlier days: what is scored today must keep the verdict that
`test_scoring.py` states for each. Make them anew only when a task's version changes.
"""

import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import made  # noqa: E402

from bench_tasks.bags.recording import BagSink  # noqa: E402

EPISODES = {
    "in_order": (made.ranking_episode, {}),
    "out_of_order": (
        made.ranking_episode, {"y": made.OUT_OF_ORDER, "cause": "plan limit: 20 plans"}
    ),
    "too_short": (made.ranking_episode, {"states": 20}),
    "held": (made.ranking_episode, {"contacts": ((0, 3), (1, 3), (2, 3), (2, 6))}),
    "state_lost": (made.ranking_episode, {"leave_out": (17,)}),
    "no_end": (made.ranking_episode, {"end": False, "verdict": False}),
    "older_version": (made.ranking_episode, {"version": 0}),
    "humanoid": (made.reach_episode, {}),
}
"""Name -> what makes it, and its options."""

if __name__ == "__main__":
    asked = sys.argv[1:]  # names of those to make, or all
    for name, (episode, options) in EPISODES.items():
        if asked and name not in asked:
            continue
        with tempfile.TemporaryDirectory() as folder:
            sink = BagSink(Path(folder) / name)
            episode(sink, **options)
            sink.writer.close()
            shutil.copy(Path(folder) / name / f"{name}_0.mcap", HERE / f"{name}.mcap")
