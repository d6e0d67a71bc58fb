"""The words every part of the project shares: scene, state, action, plan, event, verdict.

Conventions: SI units; world frame with x forward, y left, z up, its origin midway between the
two robot bases on the mounting plane; poses are float64 arrays [x, y, z, qw, qx, qy, qz] (m and a
unit quaternion, wxyz); time is integer nanoseconds since the episode's start. The end-effector
frame of an arm is its tool centre point (TCP): z points out of the hand, y is the axis along
which the fingers close.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError, UsageError, unknown

__all__ = [
    "ARMS",
    "ARM_COLUMNS",
    "AXES",
    "CONTROL_PERIOD_NS",
    "SKILLS",
    "ActionChunk",
    "BY_POINT",
    "Answer",
    "CameraFrame",
    "Depth",
    "Event",
    "GRIPPER_COLUMNS",
    "MIN_PACE",
    "Grasp",
    "Metadata",
    "ObjectInfo",
    "Observation",
    "Plan",
    "PlanRequest",
    "Question",
    "Scene",
    "SkillCall",
    "Verdict",
    "WorldState",
    "plain",
]

ARMS = ("left", "right")
CONTROL_PERIOD_NS = 20_000_000
ACTION_SIZE = 16
"""[7 joint positions (rad), gripper opening (m)] for the left arm, then for the right: what an
action of the FR3 pair is, and what those of every robot end with (see `embodiments`)."""
ARM_COLUMNS, GRIPPER_COLUMNS = np.r_[0:7, 8:15], np.array([7, 15])
"""Columns of an action that are joint positions, and those that are openings."""
MAX_OPENING_M = 0.08
MIN_PACE = 0.2
"""The slowest that a motion may be asked for, as a share of the usual speed."""
FR3_PAIR = "fr3_pair"
"""Name of the robot that tasks and recordings are of where they name none (see `embodiments`)."""
ROBOT_PART = "robot"
"""Kind of an entry among a scene's objects that is a part of the robot: a humanoid's pelvis."""
UPRIGHT = "on its feet"
"""Name of the condition that a humanoid has not fallen: it ends the episode when it breaks."""
AXES = (
    "clutter", "light", "table_height", "texture", "camera", "size", "friction", "paraphrase",
)
"""Axes of scene randomisation."""


def other_arm(arm: str) -> str:
    """The arm that is not this one."""
    return ARMS[1 - ARMS.index(arm)]


@dataclass(frozen=True)
class Grasp:
    """A way to hold an object: TCP pose (7,) in the object's frame and the width held (m)."""

    name: str
    pose: tuple[float, ...]
    width_m: float


@dataclass(frozen=True)
class ObjectInfo:
    """What is known of one object. `half_size_m` is half of its bounding box in its own frame."""

    name: str
    kind: str
    color: str
    half_size_m: tuple[float, float, float]
    grasps: tuple[Grasp, ...] = ()
    fixed: bool = False


@dataclass(frozen=True)
class Scene:
    """All that stays constant during one episode.

    `entities` names the parties of contacts; `WorldState.contact_pair` indexes it. `params` holds
    what the task drew for this seed (targets, golds) and is what scoring reads back from the bag.
    `vary` are the axes of randomisation that were on; `base_height_m` is how far the arms' bases
    (a humanoid's feet) stand above the table top, which is the world frame's z = 0. `evolved` names
    for each kind the evolved object (`object_sets.Evolved.name`, which identifies its content) in
    its place.
    `robot` is what moves (sim or hardware), `embodiment` which kind of robot it is.
    `contacts` says which contacts the states report: "all", or "hands", of which a robot without
    sense of touch knows only what its fingers hold.
    """

    task: str
    task_version: int
    seed: int
    instruction: str
    objects: tuple[ObjectInfo, ...]
    entities: tuple[str, ...]
    joint_names: tuple[str, ...]
    params: dict[str, Any]
    robot: str = "sim"
    vary: tuple[str, ...] = ()
    base_height_m: float = 0.0
    evolved: dict[str, str] = field(default_factory=dict)
    control_period_ns: int = CONTROL_PERIOD_NS
    embodiment: str = FR3_PAIR
    contacts: str = "all"

    def index(self, name: str) -> int:
        """Row of object `name` in `WorldState.object_pose`; UsageError when there is none."""
        try:
            return self._rows[name]
        except KeyError:
            raise unknown("object", name, [o.name for o in self.objects]) from None

    def entity(self, name: str) -> int:
        """Index of a party of contacts in `entities`; UsageError when there is none."""
        try:
            return self._parties[name]
        except KeyError:
            raise unknown("entity", name, self.entities) from None

    @cached_property
    def robot_entities(self) -> frozenset[int]:
        """Indices in `entities` of the parts of either arm."""
        parts = [f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand", "finger1", "finger2")]
        # A humanoid's other parts, which a pair of arms has not.
        more = [part for part in ("body", "left_foot", "right_foot") if part in self._parties]
        return frozenset(self.entity(part) for part in (*parts, *more))

    @cached_property
    def finger_entities(self) -> frozenset[int]:
        """Indices in `entities` of the fingers of either arm."""
        return frozenset(self.entity(f"{arm}_finger{k}") for arm in ARMS for k in (1, 2))

    # Goals ask by name a hundred times a state: the rows are looked up once a scene.

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {item.name: row for row, item in enumerate(self.objects)}

    @cached_property
    def _parties(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.entities)}

    def object(self, name: str) -> ObjectInfo:
        """The object called `name`; UsageError when there is none."""
        return self.objects[self.index(name)]

    def to_json(self) -> str:
        """JSON text from which `from_json` restores an equal scene."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Scene:
        """Inverse of `to_json`."""
        raw = json.loads(text)
        raw["objects"] = tuple(
            ObjectInfo(
                **{
                    **o,
                    "half_size_m": tuple(o["half_size_m"]),
                    "grasps": tuple(
                        Grasp(g["name"], tuple(g["pose"]), g["width_m"]) for g in o["grasps"]
                    ),
                }
            )
            for o in raw["objects"]
        )
        raw["entities"] = tuple(raw["entities"])
        raw["vary"] = tuple(raw.get("vary", ()))
        raw["joint_names"] = tuple(raw["joint_names"])
        return cls(**raw)


@dataclass(frozen=True)
class WorldState:
    """One control period of the state track.

    joint_position (14,) rad, joint_velocity (14,) rad/s, joint_effort (14,) Nm: left then right;
    a humanoid's legs and waist come before them (`Scene.joint_names`).
    gripper_opening (2,) m between the fingers. ee_pose (2, 7) TCP poses in the world frame.
    command (16,), a humanoid's longer by its waist: the action executed in the period before.
    object_pose (n, 7) and object_twist (n, 6) [linear m/s, angular rad/s], world frame, rows as in
    `Scene.objects`. contact_pair (m, 2) uint16 indices into `Scene.entities`, contact_force (m,)
    the summed normal force in N.
    """

    seq: int
    stamp_ns: int
    joint_position: np.ndarray
    joint_velocity: np.ndarray
    joint_effort: np.ndarray
    gripper_opening: np.ndarray
    ee_pose: np.ndarray
    command: np.ndarray
    object_pose: np.ndarray
    object_twist: np.ndarray
    contact_pair: np.ndarray
    contact_force: np.ndarray

    @property
    def measured(self) -> np.ndarray:
        """Joint positions and gripper openings in the layout of an action."""
        joints = self.joint_position[-14:].reshape(len(ARMS), -1)
        arms = np.column_stack([joints, self.gripper_opening]).ravel()
        torso = len(self.command) - ACTION_SIZE
        return np.concatenate([self.joint_position[-14 - torso : -14], arms]) if torso else arms

    @property
    def told_opening(self) -> np.ndarray:
        """Openings (2,) m that the hands are told to have."""
        return self.command[[-9, -1]]


@dataclass(frozen=True)
class Depth:
    """What a camera measured together with a picture of the same size, and its calibration.

    `png` is a 16-bit grey PNG of distances along the optical axis in mm, 0 where there is none.
    `matrix` (9,) are the pinhole intrinsics in pixels, row-major; `pose` (7,) is that of the
    optical frame (z forward, x right, y down) in the world.
    """

    png: bytes
    matrix: tuple[float, ...]
    pose: tuple[float, ...]


@dataclass(frozen=True)
class CameraFrame:
    """One encoded picture (`format` jpeg or png) taken at state `seq`.

    `depth` is there when it was asked for (see `Metadata.depth`).
    """

    camera: str
    seq: int
    stamp_ns: int
    width: int
    height: int
    format: str
    data: bytes
    depth: Depth | None = None


@dataclass(frozen=True)
class Observation:
    """What planner and policy see: the state, and the pictures that were asked for.

    `heard` is what people say meanwhile, (speaker, words), or (speaker, words, question) where it
    comments on what was chosen for that question.
    """

    state: WorldState
    frames: tuple[CameraFrame, ...] = ()
    heard: tuple[tuple[str, ...], ...] = ()


def plain(value: Any) -> Any:
    """The same value in JSON's own types: what is recorded, and what travels between nodes.

    Arrays and tuples become lists, numpy's numbers Python's. TypeError names what has no such
    form, where it is made, so that it fails the same in one process and over ROS.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def _make_plain(owner: object, *names: str) -> None:
    for name in names:
        object.__setattr__(owner, name, plain(getattr(owner, name)))


@dataclass(frozen=True)
class ActionChunk:
    """Consecutive actions (k, n) that answer state `seq`, one per control period.

    n is 16 for the FR3 pair, else as the robot's `Embodiment` says.

    k = 0 with `needs_plan` says that the policy has nothing to do until it is given a plan;
    `detail` then tells how the last plan went (see `Policy.infer`).
    """

    seq: int
    values: np.ndarray
    needs_plan: bool = False
    detail: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep what JSON can hold; TypeError otherwise."""
        if self.detail:
            _make_plain(self, "detail")

    def checked(self, seq: int, size: int = ACTION_SIZE) -> ActionChunk:
        """Return the chunk, its values float64; BenchError unless it can answer state `seq`.

        `size` is the number of values in an action.
        """
        if self.needs_plan:
            return self
        if self.seq != seq:
            raise BenchError(f"an action chunk answers state {self.seq}, now is {seq}")
        try:
            values = np.asarray(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            raise BenchError("an action chunk holds what is not a number") from None
        if values.ndim != 2 or values.shape[1] != size or len(values) == 0:
            raise BenchError(f"an action chunk must be (k, {size}), got {values.shape}")
        if not np.isfinite(values).all():
            raise BenchError("an action chunk holds a number that is not finite")
        return self if values is self.values else replace(self, values=values)


SKILLS = {
    "grasp": {"object": str},
    "place": {"object": str, "pose": list},
    "move_by": {"offset": list},
    "move_to": {"pose": list},
    "open": {},
    "close": {},
    "home": {},
}
"""Skill name -> its required arguments. Every call also names its `arm`."""
BY_POINT = {"grasp": {"point": list}, "place": {"point": list}}
"""What some skills take in the place of those: a point (3,) in the world, m."""


@dataclass(frozen=True)
class SkillCall:
    """One skill for one arm.

    grasp(object[, grasp]): approach, close on and keep hold of an object, by the named grasp.
    grasp(point[, grasp]): the same with the object that has its surface at a point.
    place(object, pose[, pace]): carry the held object to pose (7,), or to (3,) keeping its
    orientation, of the object's own frame; open; retreat. pace is a share of the usual speed.
    place(point): the same with what is held, to stand on the surface at a point as it is turned.
    move_by(offset): translate the TCP by (3,) m. move_to(pose[, opening_m]): TCP to pose (7,).
    open, close: the gripper. home: to the starting configuration.
    """

    skill: str
    arm: str
    args: dict[str, Any] = field(default_factory=dict)

    OPTIONAL = {
        "grasp": {"grasp": str}, "move_to": {"opening_m": (int, float)},
        "place": {"release": bool, "pace": (int, float)},
    }  # fmt: skip

    def __post_init__(self) -> None:
        """Keep what JSON can hold; TypeError otherwise."""
        _make_plain(self, "args")

    def checked(self) -> SkillCall:
        """Return self; UsageError names a wrong skill, arm, argument or number."""
        if self.skill not in SKILLS:
            raise unknown("skill", self.skill, SKILLS)
        if self.arm not in ARMS:
            raise unknown("arm", self.arm, ARMS)
        required: dict[str, Any] = SKILLS[self.skill]
        if "point" in self.args and self.skill in BY_POINT:
            required = BY_POINT[self.skill]
        optional = self.OPTIONAL.get(self.skill, {})
        for key in self.args:
            if key not in required and key not in optional:
                raise unknown(f"argument of {self.skill}", key, [*required, *optional])
        given = {key: kind for key, kind in optional.items() if key in self.args}
        for key, kind in {**required, **given}.items():
            if not isinstance(self.args.get(key), kind):
                name = kind.__name__ if isinstance(kind, type) else "number"
                raise UsageError(
                    f"{self.skill}: {key} must be a {name}, got {self.args.get(key)!r}"
                )
        poses = (3, 7) if self.skill == "place" else (7,)
        for key, sizes in {"pose": poses, "offset": (3,), "point": (3,)}.items():
            if key in self.args:
                numbers(f"{self.skill} {key}", self.args[key], sizes)
        for key in ("opening_m", "pace"):
            if key in self.args:
                numbers(f"{self.skill} {key}", [self.args[key]], (1,))
        if not MIN_PACE <= self.args.get("pace", 1.0) <= 1.0:
            raise UsageError(
                f"{self.skill}: pace must be from {MIN_PACE:g} to 1, got {self.args['pace']}"
            )
        return self


def numbers(what: str, value: Any, sizes: tuple[int, ...]) -> np.ndarray:
    """Return `value` as a finite float64 vector of one of `sizes`; a pose's quaternion is unit.

    UsageError names what is wrong. A quaternion is refused beyond 1 % of unit length, since a
    model that gets it wrong should be told, not guessed for.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{what} must be {sizes} numbers, got {value!r}") from None
    if array.ndim != 1 or array.size not in sizes:
        raise UsageError(
            f"{what} must have {' or '.join(map(str, sizes))} numbers, got {array.size}"
        )
    if not np.isfinite(array).all():
        raise UsageError(f"{what} must be finite, got {value!r}")
    if array.size == 7:
        norm = float(np.linalg.norm(array[3:]))
        if abs(norm - 1.0) > 0.01:
            raise UsageError(f"{what}: quaternion (w, x, y, z) has length {norm:.3f}, not 1")
        array = np.concatenate([array[:3], array[3:] / norm])
    return array


@dataclass(frozen=True)
class Plan:
    """Steps one after the other; the one or two calls of a step run at the same time.

    An empty plan says that the planner holds the task to be finished, unless `error` says why its
    `raw` answer could not be read: such a plan is refused. Or it `asks`, in place of steps, for
    something that it wants to know first (see `Task.clarify`). `transcript` is what the bag keeps
    of the call (prompt, picture hashes, tokens, attempts, repairs), JSON-serialisable.
    """

    steps: tuple[tuple[SkillCall, ...], ...]
    raw: str = ""
    latency_ns: int = 0
    transcript: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    asks: str = ""

    def __post_init__(self) -> None:
        """Keep what JSON can hold; TypeError otherwise."""
        _make_plain(self, "raw", "latency_ns", "transcript", "error", "asks")

    def to_json(self) -> str:
        """JSON text from which `from_json` restores an equal plan."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, check: bool = True) -> Plan:
        """Inverse of `to_json`; UsageError on a malformed plan, or a wrong one unless not asked."""
        try:
            raw = json.loads(text)
            steps = tuple(
                tuple(SkillCall(c["skill"], c["arm"], dict(c.get("args", {}))) for c in step)
                for step in raw["steps"]
            )
            plan = cls(
                steps, raw.get("raw", ""), int(raw.get("latency_ns", 0)),
                dict(raw.get("transcript", {})), str(raw.get("error", "")),
                str(raw.get("asks", "")),
            )
            return plan.checked() if check and not plan.error else plan
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"malformed plan: {error!r}") from None

    def checked(self) -> Plan:
        """Return self; UsageError on `error`, a wrong call, or a step that uses one arm twice."""
        if self.error:
            raise UsageError(self.error)
        for step in self.steps:
            for call in step:
                call.checked()
            arms = [call.arm for call in step]
            if not arms or len(set(arms)) != len(arms):
                raise UsageError(f"a step needs one call per arm, got arms {arms}")
        return self


@dataclass(frozen=True)
class PlanRequest:
    """What a planner is asked: the instruction, the observation and how the last plan went."""

    instruction: str
    observation: Observation
    turn: int
    feedback: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep what JSON can hold; TypeError otherwise."""
        _make_plain(self, "feedback")


@dataclass(frozen=True)
class Question:
    """A question to the planner. `choices` maps each item asked about to its valid answers."""

    name: str
    text: str
    choices: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Answer:
    """The planner's answer: item -> choice. An item that is missing was not answered.

    `error` says why the `raw` answer could not be read; `transcript` as in `Plan`.
    """

    values: dict[str, str]
    raw: str = ""
    latency_ns: int = 0
    transcript: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    def __post_init__(self) -> None:
        """Keep what JSON can hold; TypeError otherwise."""
        _make_plain(self, "values", "raw", "latency_ns", "transcript", "error")

    def to_json(self) -> str:
        """JSON text from which `from_json` restores an equal answer."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Inverse of `to_json`; UsageError on a malformed answer."""
        try:
            raw = json.loads(text)
            values = {str(item): str(choice) for item, choice in raw["values"].items()}
            return cls(
                values, raw.get("raw", ""), int(raw.get("latency_ns", 0)),
                dict(raw.get("transcript", {})), str(raw.get("error", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"malformed answer: {error!r}") from None


@dataclass(frozen=True)
class Event:
    """Something that happened at state `seq`; `data` is JSON-serialisable."""

    kind: str
    seq: int
    stamp_ns: int
    data: dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """How an episode ended.

    `progress` in [0, 1] is the share of the task's stages reached (for questions: the score
    corrected for chance). `cause` is "" on success, else a short stable category with, after
    ": ", the particulars. `end_seq` is the last state that counts.
    """

    task: str
    seed: int
    success: bool
    progress: float
    cause: str
    stages: dict[str, bool]
    end_seq: int
    sim_s: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Metadata:
    """What a planner or policy says of itself.

    It is shown pictures of `cameras`, with depth and calibration if it wants `depth`. `memory` is
    what it remembers by, "" if by nothing: only then it is asked afterwards of what was.
    """

    name: str
    version: str
    cameras: tuple[str, ...] = ()
    privileged: bool = False
    depth: bool = False
    memory: str = ""
