# ruff: noqa: T201
"""Whether the safety supervisor lets good work alone: `benchmarks/safety_false_stops.py DIR`.

Replays the commands of recorded episodes, each against the state it answered, as the node does in
lockstep, where a command that is passed on reaches the world to the bit: what was recorded without
a supervisor is what would have happened with one, as long as it changes nothing. 200 episodes:

    bench_tasks run --tasks all --episodes 8 --out results/expert
    python benchmarks/safety_false_stops.py results/expert

Bars: no intervention at all, and less than half a control period (10 ms) of processor time for any
command. Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.bags.bag import Recording, read_bag
from hardware.safety import Intervention, Supervisor
from hardware.safety.limits import read_limits

MOST_S = 0.01


def replayed(supervisor: Supervisor, bag: Recording) -> tuple[list[Intervention], list[float]]:
    """What the supervisor does about an episode, and its processor time (s) for each command."""
    assert bag.scene is not None
    supervisor.begin(bag.scene)
    chunks = {chunk.seq: chunk for chunk in bag.chunks}
    told, times = [], []
    for state in bag.states:
        decisions = [supervisor.on_state(state, 0.0)]
        if state.seq in chunks:
            begun = time.process_time()
            decisions.append(supervisor.on_chunk(chunks[state.seq], 0.0))
            times.append(time.process_time() - begun)
            sent = decisions[-1].send
            told_now = decisions[-1].interventions
            assert told_now or (
                sent is not None and np.array_equal(sent.values, chunks[state.seq].values)
            ), "a command that was passed on must be unchanged"
        told += [item for decision in decisions for item in decision.interventions]
        supervisor.release()
    return told, times


def main() -> int:
    """Replay every bag below the folders; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limits", default="fr3_pair")
    parser.add_argument("--most", type=int, default=0, help="episodes; default: all there are")
    options = parser.parse_args()
    paths = sorted({m.parent for f in options.folders for m in f.rglob("manifest.json")})
    supervisor = Supervisor(read_limits(options.limits), confirmed=True)
    done, unreadable, moved = 0, 0, 0.0
    times: list[float] = []
    counts: Counter[str] = Counter()
    for path in paths[: options.most or None]:
        bag = read_bag(path, chunks=True)
        if bag.problems or bag.scene is None or not bag.states or not bag.chunks:
            unreadable += 1
            continue
        told, spent = replayed(supervisor, bag)
        times += spent
        done += 1
        moved += bag.states[-1].stamp_ns / 1e9
        counts.update(f"{item.action} {item.kind}" for item in told)
        for item in told[:3]:
            print(f"{path}: {item.action}: {item.reason}", flush=True)
    if not times:
        print(f"no episode with commands among {len(paths)} recordings")
        return 1
    ms = 1e3 * np.array(times)
    print(f"{done} episodes ({moved:.0f} s), {len(times)} commands, {unreadable} bags without; "
          f"interventions: {dict(counts) or 'none'}; per command {np.median(ms):.2f} ms, "
          f"99 % {np.percentile(ms, 99):.2f} ms, most {ms.max():.2f} ms")  # fmt: skip
    return 1 if counts or ms.max() > 1e3 * MOST_S else 0


if __name__ == "__main__":
    raise SystemExit(main())
