"""Message definitions of the topics that are recorded, as the MCAP schemas need them.

Bags must be written and read where no ROS is installed, so the text is kept here; a test holds it
equal, field for field, to the `.msg` files of `bench_interfaces`.
"""

from __future__ import annotations

from functools import cache

from bench_tasks.errors import unknown

__all__ = ["DEFINITIONS", "fields", "schema_text"]

DEFINITIONS: dict[str, str] = {
    "builtin_interfaces/msg/Time": """
int32 sec
uint32 nanosec
""",
    "std_msgs/msg/Header": """
builtin_interfaces/Time stamp
string frame_id
""",
    "rosgraph_msgs/msg/Clock": """
builtin_interfaces/Time clock
""",
    "sensor_msgs/msg/JointState": """
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
""",
    "sensor_msgs/msg/CompressedImage": """
std_msgs/Header header
string format
uint8[] data
""",
    "sensor_msgs/msg/Image": """
std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data
""",
    "sensor_msgs/msg/RegionOfInterest": """
uint32 x_offset
uint32 y_offset
uint32 height
uint32 width
bool do_rectify
""",
    "sensor_msgs/msg/CameraInfo": """
std_msgs/Header header
uint32 height
uint32 width
string distortion_model
float64[] d
float64[9] k
float64[9] r
float64[12] p
uint32 binning_x
uint32 binning_y
sensor_msgs/RegionOfInterest roi
""",
    "bench_interfaces/msg/WorldState": """
# Two arms, left then right. SI units, world frame, quaternions as w, x, y, z.
uint64 seq
builtin_interfaces/Time stamp
float64[] joint_position    # 14 (a humanoid has more: legs, waist, then arms), rad
float64[] joint_velocity    # as many, rad/s
float64[] joint_effort      # as many, Nm
float64[] gripper_opening   # 2, m between the fingers
float64[] ee_pose           # 2 x 7, tool centre point: x y z qw qx qy qz
float64[] command           # 16 (humanoid: waist first), the action executed in the last period
float64[] object_pose       # n x 7, rows as in Scene.objects
float64[] object_twist      # n x 6, linear m/s then angular rad/s
uint16[] contact_pair       # m x 2, indices into Scene.entities
float64[] contact_force     # m, summed normal force, N
""",
    "bench_interfaces/msg/ActionChunk": """
builtin_interfaces/Time stamp
uint64 seq
int64 period_ns
string layout               # "joint_position", or "joint_position:n" for n numbers an action
float64[] values            # k x 16, or k x n
""",
    "bench_interfaces/msg/CalibratedDepth": """
# Depth of a picture of the same size, and what takes it to the world.
std_msgs/Header header      # stamp of the state it shows; frame_id: the camera's optical frame
float64[9] k                # pinhole intrinsics in pixels, row-major, no distortion
float64[7] pose             # optical frame (z forward) in the world: x y z qw qx qy qz
uint8[] data                # 16-bit grey PNG: distance along the optical axis, mm; 0: not known
""",
    "bench_interfaces/msg/Utterance": """
builtin_interfaces/Time stamp
string id
string session
string speaker
string text
string about
bool shown
string picture
string caption
""",
    "bench_interfaces/msg/EpisodeEvent": """
builtin_interfaces/Time stamp
uint64 seq
string kind
string data                 # a JSON object
""",
    "bench_interfaces/msg/Scene": """
builtin_interfaces/Time stamp
string json
""",
    "bench_interfaces/msg/Verdict": """
builtin_interfaces/Time stamp
string task
uint64 seed
bool success
float64 progress
string cause
uint64 end_seq
string details              # a JSON object
""",
}

_PRIMITIVES = frozenset(
    "bool byte char float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
    + ["string"]
)


def parse(text: str) -> tuple[tuple[str, str, int | None], ...]:
    """Fields of a definition: (name, element type, size).

    Size is None for a plain field, 0 for an unbounded sequence, n for a fixed array. Constants are
    left out. Element types of messages are full names (`std_msgs/msg/Header`).
    """
    found = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2 or "=" in words[1] or "=" in words[2:3]:
            continue
        kind, _, bracket = words[0].partition("[")
        size = int(bracket.rstrip("]") or 0) if bracket else None
        if kind not in _PRIMITIVES:
            package, _, name = kind.partition("/")
            kind = f"{package}/msg/{name.removeprefix('msg/')}"
        found.append((words[1], kind, size))
    return tuple(found)


@cache
def fields(type_name: str) -> tuple[tuple[str, str, int | None], ...]:
    """Fields of a known message type, as `parse` gives them; UsageError for an unknown type."""
    if type_name not in DEFINITIONS:
        raise unknown("message type", type_name, DEFINITIONS)
    return parse(DEFINITIONS[type_name])


@cache
def schema_text(type_name: str) -> str:
    """The definition followed by those of every type in it, as the `ros2msg` encoding wants it."""
    parts, todo, seen = [DEFINITIONS[type_name].strip()], [type_name], {type_name}
    while todo:
        for _, kind, _ in fields(todo.pop(0)):
            if kind not in _PRIMITIVES and kind not in seen:
                seen.add(kind)
                todo.append(kind)
                short = kind.replace("/msg/", "/")
                parts.append(f"{'=' * 80}\nMSG: {short}\n{DEFINITIONS[kind].strip()}")
    return "\n".join(parts) + "\n"
