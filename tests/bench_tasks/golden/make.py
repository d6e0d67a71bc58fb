"""Makes the golden recordings beside this file: python tests/bench_tasks/golden/make.py.

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

from bench_tasks.recording import BagSink  # noqa: E402

EPISODES = {
    "in_order": {},
    "out_of_order": {"y": made.OUT_OF_ORDER, "cause": "plan limit: 20 plans"},
    "too_short": {"states": 20},
    "held": {"contacts": ((0, 3), (1, 3), (2, 3), (2, 6))},
    "state_lost": {"leave_out": (17,)},
    "no_end": {"end": False, "verdict": False},
    "older_version": {"version": 0},
}

if __name__ == "__main__":
    for name, options in EPISODES.items():
        with tempfile.TemporaryDirectory() as folder:
            sink = BagSink(Path(folder) / name)
            made.ranking_episode(sink, **options)
            sink.writer.close()
            shutil.copy(Path(folder) / name / f"{name}_0.mcap", HERE / f"{name}.mcap")
