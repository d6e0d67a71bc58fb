"""kill -9 of each process while the arms move: do they stop, is the bag good, does it go on?

python benchmarks/kill_in_motion.py --robot franka|unitree|sim [--victims policy,...] [--repeat 3]
[--out DIR], which appends to DIR/rows.jsonl; python benchmarks/kill_in_motion.py --table ROWS...

A stand-in robot (make franka-sim, make unitree) runs apart from the launches and outlives them, as
a real one does; it is by its own account of its joints that they are judged. An episode is
launched; once its arms move, one process is killed at a random moment. Then: how long until all
joints are slower than 0.05 rad/s for 0.3 s, how fast they were on the way and how hard they braked,
whether the robot has stopped by itself, how long until nothing of the launch runs any more, what
the bag says; and whether the next episode, by a launch of its own unless the first one goes on,
gets as far as to move the arms, from where they were left. `launch` is ros2 launch itself, and
`ctrl-c` no kill but an interrupt, for comparison. A simulated world is the robot: it ends with the
launch. With --apart the launch does not end when a node has died, as when nodes run on several
computers: who is left has to stop the arms. It is ended by an interrupt 4 s after the kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from launched import ABORT, ROOT, Launch, Onlooker, environment, free_domain  # noqa: E402

sys.path.insert(0, str(ROOT))
from bench_tasks.bags import cdr  # noqa: E402
from bench_tasks.bags.bag import read_bag  # noqa: E402
from bench_tasks.verdicts import scoring  # noqa: E402
from sim.standin.black_box import read_box  # noqa: E402

MOVING, REST, REST_S = 0.2, 0.05, 0.3
"""rad/s, of the fastest joint; and for how long."""
BASE_S = 0.02
"""Over which speeds are taken from positions, and accelerations from speeds."""
BEGUN_BYTES = 30_000
START_S, STOP_S, GONE_S, APART_S = 60.0, 8.0, 25.0, 4.0
ENDS = 'on_exit=Shutdown(reason=f"node {name} has ended"),'
"""In the launch file: that a node's end is everybody's."""
INTERRUPT, WHOLE = "ctrl-c", "launch"


@dataclass(frozen=True)
class Robot:
    """How one is launched, and which processes there are."""

    file: str
    arguments: tuple[str, ...]
    task: str
    world: str
    driver: str = ""
    standin: str = ""
    joints: int = 0
    """In a row of the stand-in's black box."""

    def victims(self) -> dict[str, str]:
        """Name -> words of the command line."""
        nodes = ("policy", "planner", "task", "safety", "recorder")
        found = {name: f"{name}_node" for name in nodes} | {"world": self.world}
        return found | ({"driver": self.driver} if self.driver else {})


ROBOTS = {
    "franka": Robot("bimanual.launch.py", ("robot:=franka",), "lift_pot", "franka_world_node",
                    "hardware.franka.arm", "standin_franka", 7),
    "unitree": Robot("humanoid.launch.py", ("robot:=unitree",), "reach_both_hands",
                     "unitree_world_node", "hardware.unitree.bus", "standin_g1", 17),
    "sim": Robot("bimanual.launch.py", ("robot:=sim", "clock:=realtime", "safety:=true"),
                 "lift_pot", "/world_node"),
}  # fmt: skip


@dataclass
class Row:
    """What came of one kill."""

    robot: str
    victim: str
    apart: bool = False
    speed_at: float = float("nan")
    rest_s: float = float("nan")
    speed: float = float("nan")
    acceleration: float = float("nan")
    """From the kill to standstill: greatest, rad/s and rad/s^2."""
    acceleration_before: float = float("nan")
    """In the second before the kill."""
    speed_later: float = float("nan")
    """After standstill, until nothing runs any more."""
    aborts: int = 0
    gone_s: float = float("nan")
    left: int = 0
    states: int = 0
    problems: str = ""
    cause: str = ""
    named: bool = False
    next_s: float = float("nan")
    """From the kill until the arms move in the next episode; nan: they did not."""
    note: str = ""
    void: bool = False


class Watch(Onlooker):
    """Whether an episode is going on; and of a simulated robot, how it moves."""

    def __init__(self, domain: int) -> None:
        """Listen from now on."""
        super().__init__(domain)
        from std_msgs.msg import UInt64

        from bench_tasks.ros.node_ros import LATEST

        self._count, self._since, self._beat_s = -1, float("inf"), float("-inf")
        self._beats = 0
        self.rows: list[np.ndarray] = []
        self._states: Any = None
        self.node.create_subscription(UInt64, "/safety/heartbeat", self._on_beat, LATEST)

    def _on_beat(self, beat: Any) -> None:
        # It counts on while the safety node gets states: in an episode.
        now, on = time.monotonic(), beat.data - self._count
        if on == 0:
            return
        if not 0 < on < 50 or now - self._beat_s > 0.5:  # a new node's first one, or a pause
            self._since = now
        self._count, self._beat_s, self._beats = beat.data, now, self._beats + 1
        if self._since == now:
            self._beats = 0

    def begun_s(self) -> float:
        """When the episode that is going on began; infinite when none is."""
        goes_on = self._beats > 4 and time.monotonic() - self._beat_s < 0.5
        return self._since if goes_on else float("inf")

    def look(self) -> None:
        """Hear the states of the episode that has begun: one who listens before is counted on."""
        from bench_interfaces.msg import WorldState

        from bench_tasks.ros.node_ros import TRACK

        self.rows.clear()
        self._states = self.node.create_subscription(
            WorldState, "/world/state", self._on_state, TRACK, raw=True
        )

    def look_away(self) -> None:
        """Hear them no more."""
        if self._states is not None:
            self.node.destroy_subscription(self._states)
            self._states = None

    def _on_state(self, data: bytes) -> None:
        state = cdr.decode_state(data)
        self.rows.append(
            np.concatenate([[time.monotonic(), 0, state.stamp_ns / 1e9], state.joint_position])
        )


class Bench:
    """One robot, and launch after launch on it."""

    def __init__(self, name: str, out: Path, apart: bool = False) -> None:
        """Switch the robot on."""
        self.apart = apart
        self.name, self.robot, self.out = name, ROBOTS[name], out
        self.domain = free_domain()
        self._watch = Watch(self.domain)
        self._box, self._log = out / f"{name}.box", out / f"{name}.standin.log"
        self._standin: subprocess.Popen[bytes] | None = None
        self._arguments = [*self.robot.arguments, "confirm:=true", f"tasks:={self.robot.task}",
                           "episodes:=50"]  # fmt: skip
        if self.robot.standin:
            self._arguments.append(f"cell:={self._cell()}")
            self.switch_on()

    def _cell(self) -> Path:
        """The stand-in's cell as a file: a launch of `standin` would have a robot of its own."""
        text = (ROOT / "hardware" / self.name / "standin.yaml").read_text()
        path = self.out / "cell.yaml"
        path.write_text(text.replace("/layout/load_episode", "/robot/load_episode"))
        return path

    def switch_on(self) -> None:
        """Start the stand-in, anew if it runs."""
        self.switch_off()
        self._box.unlink(missing_ok=True)
        code = f"from bench_tasks.ros.start import {self.robot.standin} as s; s()"
        rules = ["__node:=robot", "/layout/load_episode:=/robot/load_episode",
                 "/layout/move_objects:=/robot/move_objects"]  # fmt: skip
        words = ["-p", f"black_box:={self._box}", *(w for r in rules for w in ("-r", r))]
        with open(self._log, "ab") as log:
            self._standin = subprocess.Popen(
                [sys.executable, "-c", code, "--ros-args", *words], cwd=ROOT,
                env=environment(self.domain), stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._read = 0

    def switch_off(self) -> None:
        """End the stand-in."""
        if self._standin is not None:
            self._standin.send_signal(signal.SIGINT)
            try:
                self._standin.wait(10)
            except subprocess.TimeoutExpired:
                self._standin.kill()
                self._standin.wait()

    def launch(self) -> Launch:
        """Start one."""
        number = len(list(self.out.glob("run_*.log")))
        run = self.out / f"run_{number:03d}"
        launch = Launch(
            self._file(), [*self._arguments, f"out:={run}"], self.domain,
            run.with_suffix(".log"),
        )  # fmt: skip
        self.run = run
        return launch

    def _file(self) -> Path:
        """The launch file, or what is left of it if nodes are apart."""
        if not self.apart:
            return ROOT / "launch" / self.robot.file
        folder = self.out / "launch"
        folder.mkdir(exist_ok=True)
        for file in (ROOT / "launch").glob("*.launch.py"):
            text = file.read_text()
            assert text.count(ENDS) == (file.name == "bimanual.launch.py")
            (folder / file.name).write_text(text.replace(ENDS, ""))
        return folder / self.robot.file

    # -- the arms --------------------------------------------------------------------------------

    def rows(self, since_s: float) -> np.ndarray:
        """What the joints did since then: (n, 3 + joints), see `black_box`."""
        if not self.robot.standin:
            found = np.array(self._watch.rows or np.zeros((0, 3)))
            return found[found[:, 0] >= since_s]
        new = read_box(self._box, self.robot.joints, self._read)
        keep = int(np.searchsorted(new[:, 0], since_s - 1.0))
        self._read += keep  # parts take turns, and are nearly in order
        return new[new[:, 0] >= since_s]

    def speed(self) -> float:
        """The fastest joint's, in the last moments."""
        _, speed, _ = motion(self.rows(time.monotonic() - 0.1))
        return float(speed.max(initial=0.0))

    def aborts(self) -> int:
        """How often the robot has stopped by itself so far."""
        return self._log.read_text().count(ABORT) if self._log.exists() else 0

    def wait_for_motion(self, launch: Launch, after_s: float) -> str:
        """Until the arms move in an episode that began after then; else why they do not."""
        end = time.monotonic() + START_S
        looking = bool(self.robot.standin)
        while time.monotonic() < end:
            self._watch.release(launch)
            begun = self._watch.begun_s()
            if after_s < begun < float("inf") or self._recorded() > after_s:
                if not looking:
                    self._watch.look()
                    looking = True
                if self.speed() > MOVING:
                    return ""
            if self._standin is not None and self._standin.poll() is not None:
                return f"the stand-in has ended, see {self._log}"
            if launch.process.poll() is not None:
                return f"the launch ended with {launch.process.returncode}, see {launch.log}"
            time.sleep(0.05)
        return f"no motion within {START_S:g} s, see {launch.log}"

    def _recorded(self) -> float:
        """When the bag of an episode that goes on was begun; -inf when none does.

        Heartbeats say so earlier, but the middleware does not always find who sends them.
        """
        for file in sorted(self.run.glob("*/[0-9]*/*.mcap"))[-1:]:
            manifest = json.loads((file.parent / "manifest.json").read_text())
            if manifest["status"] == "recording" and file.stat().st_size > BEGUN_BYTES:
                made_s = time.time() - (file.parent / "manifest.json").stat().st_mtime
                return time.monotonic() - made_s
        return float("-inf")

    # -- one kill --------------------------------------------------------------------------------

    def strike(self, launch: Launch, victim: str) -> Row:
        """Kill it while the arms move, and see what comes of it."""
        row, aborts = Row(self.name, victim, self.apart), self.aborts()
        end, delay_s = time.monotonic() + 8.0, random.uniform(0.0, 1.5)
        time.sleep(delay_s)
        if victim in (INTERRUPT, WHOLE):
            pids = [launch.process.pid]
        else:
            pids = launch.pids(self.robot.victims()[victim])
        self._bag = max(self.run.glob("*/[0-9]*"))  # of one task, by their seeds
        # Nothing that takes a while comes between the look at the arms and the kill.
        while (speed := self.speed()) <= MOVING and time.monotonic() < end:
            time.sleep(0.02)
        row.speed_at, self.struck_s = speed, time.monotonic()
        os.kill(pids[0], signal.SIGINT if victim == INTERRUPT else signal.SIGKILL)
        self._until_gone(launch, row)
        self._watch.look_away()
        row.aborts = self.aborts() - aborts
        self._judge_bag(row)
        return row

    def _until_gone(self, launch: Launch, row: Row) -> None:
        """Wait until nothing of the launch runs; one that goes on for `STOP_S` goes on."""
        asked_s = self.struck_s
        if self.apart:
            time.sleep(APART_S)
            self._judge_motion(row)
            asked_s = time.monotonic()
            if launch.process.poll() is None:
                launch.process.send_signal(signal.SIGINT)
        end = asked_s + (STOP_S if self.goes_on(row) else GONE_S)
        while time.monotonic() < end:
            launch.process.poll()
            left = launch.left()
            if not left and launch.process.returncode is not None:
                row.gone_s = time.monotonic() - asked_s
                break
            time.sleep(0.05)
        goes_on = self.goes_on(row) and launch.process.poll() is None
        row.left = 0 if goes_on else len(launch.left())
        if row.left:
            row.note = "; ".join(launch.left().values())
        # A let-go robot may move once more, when nothing runs any more.
        time.sleep(max(0.0, min(self.struck_s + 3.0, end) - time.monotonic()))
        if not self.apart:
            self._judge_motion(row)

    def goes_on(self, row: Row) -> bool:
        """Whether the launch conducts the next episode by itself."""
        return row.victim == "driver" and not self.apart

    def _judge_motion(self, row: Row) -> None:
        at, fast, harsh = motion(self.rows(self.struck_s - 1.0))
        at = at - self.struck_s
        row.acceleration_before = float(harsh[at < 0.0].max(initial=0.0))
        at, fast, harsh = at[at >= 0.0], fast[at >= 0.0], harsh[at >= 0.0]
        moving = at[fast > REST]
        # Standstill begins where the first pause of REST_S does.
        stops = np.append(moving, np.inf)
        rest = float(stops[int(np.argmax(np.diff(stops) > REST_S))]) if len(moving) else 0.0
        if not len(at) or at[-1] < rest + REST_S:
            rest = float("nan")  # nobody was there to say that they stood still
        until = at <= rest if np.isfinite(rest) else np.full(len(at), True)
        row.rest_s = rest
        row.speed = float(fast[until].max(initial=0.0))
        row.acceleration = float(harsh[until].max(initial=0.0))
        if np.isfinite(rest) and not self.goes_on(row):
            row.speed_later = float(fast[~until].max(initial=0.0))

    def _judge_bag(self, row: Row) -> None:
        """Of the episode that was going on."""
        bag, score = read_bag(self._bag), scoring.score_bag(self._bag)
        row.states, row.problems = len(bag.states), "; ".join(bag.problems)
        row.cause = score.cause
        run = json.loads((self.run / "run.json").read_text()) if row.states else {}
        row.named = self._names(row.victim, f"{row.cause} {run.get('cause')}")
        # The arms rested, or were being stopped already: that proves nothing.
        rested = row.speed_at <= MOVING
        row.void = score.scored or "safety stop" in score.cause or rested

    def _names(self, victim: str, cause: str) -> bool:
        known = {
            "driver": "has ended (SIGKILL)", INTERRUPT: "interrupted", "world": "/world",
            WHOLE: "is gone",
        }  # fmt: skip
        return known.get(victim, f"/{victim}") in cause


def motion(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """When (monotonic), how fast (rad/s) the fastest joint was and how hard (rad/s^2) the hardest.

    By the robot's own time; of all parts, in order.
    """
    found = [np.zeros((0, 3))]
    for part in np.unique(rows[:, 1]) if len(rows) else ():
        own = rows[rows[:, 1] == part]
        at, speed = rate(own[:, 2], own[:, 3:])
        harsh = np.zeros(len(own))
        if len(at) > 1:
            k, acceleration = rate(own[at, 2], speed)
            harsh[at[k]] = np.abs(acceleration).max(axis=1)
        found.append(np.stack([own[at, 0], np.abs(speed).max(axis=1, initial=0.0), harsh[at]], 1))
    merged = np.concatenate(found)
    merged = merged[np.argsort(merged[:, 0], kind="stable")]
    return merged[:, 0], merged[:, 1], merged[:, 2]


def rate(at_s: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices (m,), and there the change (m, n) per second since `BASE_S` before."""
    before = np.searchsorted(at_s, at_s - 0.9 * BASE_S, side="right") - 1
    k = np.flatnonzero((before >= 0) & (at_s - at_s[np.maximum(before, 0)] < 3 * BASE_S))
    return k, (values[k] - values[before[k]]) / (at_s[k] - at_s[before[k]])[:, None]


def measure(name: str, victims: list[str], repeat: int, out: Path, apart: bool) -> bool:
    """All kills, one after the other on the same robot; whether each was as it should be."""
    bench, good = Bench(name, out, apart), True
    waiting = [victim for _ in range(repeat) for victim in victims]
    tries, last = 2 * len(waiting) + 2, None
    launch, begun_s = bench.launch(), time.monotonic()
    try:
        while tries > 0:
            tries -= 1
            why = bench.wait_for_motion(launch, begun_s)
            if last is not None:
                good &= finish(last, bench, why, out)
                last = None
            if why:
                sys.stdout.write(f"{why}\n")
                launch.end()
                if bench.robot.standin:
                    bench.switch_on()
                launch, begun_s = bench.launch(), time.monotonic()
                continue
            if not waiting:
                break
            row = bench.strike(launch, waiting[0])
            begun_s = bench.struck_s + 1.0 if bench.goes_on(row) else time.monotonic()
            if launch.process.poll() is not None or not bench.goes_on(row):
                launch.end()
                launch, begun_s = bench.launch(), time.monotonic()
            if row.void:
                sys.stdout.write(f"{row.victim} once more: {row.cause}\n")
                continue
            last, _ = row, waiting.pop(0)
    finally:
        launch.end()
        bench.switch_off()
    return good and not waiting


def finish(row: Row, bench: Bench, why: str, out: Path) -> bool:
    """Put a row down now that it is known whether it goes on."""
    if why:
        row.note = f"{row.note} {why}".strip()
    else:
        row.next_s = time.monotonic() - bench.struck_s
    with open(out / "rows.jsonl", "a") as file:
        file.write(json.dumps(asdict(row)) + "\n")
    sys.stdout.write(json.dumps(asdict(row)) + "\n")
    sys.stdout.flush()
    stopped = not (bench.robot.standin or bench.apart) or np.isfinite(row.rest_s)
    return bool(stopped and not row.left and row.states and np.isfinite(row.next_s))


def table(paths: list[str]) -> str:
    """Rows of the same kind together: the greatest of each."""
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in paths:
        for line in Path(path).read_text().splitlines():
            row = json.loads(line)
            robot = row["robot"] + (", apart" if row["apart"] else "")
            kinds.setdefault((robot, row["victim"]), []).append(row)
    lines = [
        "| robot | killed | times | rad/s, rad/s² before | at rest after, s (most) | rad/s, rad/s² "
        "on the way | all gone after, s | aborts | bags with states, naming it | next motion "
        "after, s |",
        "|" + "---|" * 10,
    ]

    def most(rows: list[dict[str, Any]], key: str, form: str = ".2f") -> str:
        values = [row[key] for row in rows if np.isfinite(row[key])]
        return format(max(values), form) if values else "-"

    for (robot, victim), rows in kinds.items():
        rests = [row["rest_s"] for row in rows if np.isfinite(row["rest_s"])]
        rest = f"{statistics.median(rests):.2f} ({max(rests):.2f})" if rests else "-"
        fine = sum(bool(row["states"]) for row in rows), sum(row["named"] for row in rows)
        lines.append(
            f"| {robot} | {victim} | {len(rows)} | "
            f"{most(rows, 'speed_at')}, {most(rows, 'acceleration_before', '.0f')} | {rest} | "
            f"{most(rows, 'speed')}, {most(rows, 'acceleration', '.0f')} | {most(rows, 'gone_s')} "
            f"| {sum(row['aborts'] for row in rows)} | {fine[0]}, {fine[1]} | "
            f"{most(rows, 'next_s', '.0f')} |"
        )  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", choices=ROBOTS, default="franka")
    parser.add_argument("--victims", default="", help="separated by commas; default all")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--apart", action="store_true", help="one's end is not everybody's")
    parser.add_argument("--out", default="", help="a folder; default a new temporary one")
    parser.add_argument("--table", nargs="+", help="files of rows")
    args = parser.parse_args()
    if args.table:
        sys.stdout.write(table(args.table) + "\n")
        return
    known = [*ROBOTS[args.robot].victims(), WHOLE, INTERRUPT]
    victims = args.victims.split(",") if args.victims else known
    if wrong := [victim for victim in victims if victim not in known]:
        parser.error(f"there is no {', '.join(wrong)}: choose from {', '.join(known)}")
    out = Path(args.out or tempfile.mkdtemp(prefix="kill_in_motion_")).absolute()
    out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    good = measure(args.robot, victims, args.repeat, out, args.apart)
    sys.stdout.write(table([str(out / "rows.jsonl")]) + f"\nin {out}\n")
    sys.stdout.flush()
    os._exit(0 if good else 1)  # rclpy's thread still spins


if __name__ == "__main__":
    main()
