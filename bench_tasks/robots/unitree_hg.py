"""Unitree's messages of package `unitree_hg`: topics, memory layout, checksum, and CDR on the wire.

LowCmd and LowState are laid out as the C structs of Unitree's SDK, of which the checksum is taken.
The SDK's Python classes take a millisecond a message to write or read, which does not do for a
robot that reports 500 times a second; these arrays take a hundredth of that (a test holds the two
equal). What is sent is CDR, little-endian, of DDS types that are final.
"""

from __future__ import annotations

import zlib

import numpy as np

__all__ = [
    "ARM_SDK", "HAND_CMD", "HAND_JOINTS", "HAND_STATE", "JOINTS", "LOW_CMD", "LOW_STATE",
    "MACHINES", "MOTORS", "TOPICS", "WEIGHT", "crc32", "decode", "encode", "hand_cmd", "hand_mode",
    "is_signed", "motor_commands", "signed",
]  # fmt: skip

MOTORS, JOINTS, HAND_JOINTS = 35, 29, 7
"""Motor slots of a LowCmd, of which a G1 with 29 joints uses the first; motors of a Dex3 hand."""
WEIGHT = 29
"""The unused motor whose position is arm_sdk's weight: 0 the robot's own arms, 1 the commanded."""
ARM_SDK = "rt/arm_sdk"
TOPICS = {
    "rt/lowcmd": "LowCmd_", ARM_SDK: "LowCmd_", "rt/lowstate": "LowState_",
    "rt/dex3/left/cmd": "HandCmd_", "rt/dex3/right/cmd": "HandCmd_",
    "rt/dex3/left/state": "HandState_", "rt/dex3/right/state": "HandState_",
}  # fmt: skip
"""DDS topic -> type in unitree_hg.msg.dds_. In ROS 2 they have no rt/ and the types no _."""
MACHINES = {
    1: (23, True), 2: (29, True), 3: (29, False), 4: (23, True), 5: (29, True), 6: (29, False),
    9: (14, False), 10: (23, True), 11: (29, True), 12: (29, False), 13: (29, True),
    14: (29, False), 15: (29, True), 16: (29, False),
}  # fmt: skip
"""mode_machine -> joints of that G1, and whether roll and pitch of its waist, if it has them, are
free: the table in Unitree's unitree_ros, robots/g1_description."""
PRESS_SENSORS = 9
_HEADER = b"\x00\x01\x00\x00"
"""CDR, little-endian, no options."""


def _struct(size: int, **fields: tuple[int, object]) -> np.dtype:
    """A structured type from name=(offset, format), as C would lay it out."""
    return np.dtype({
        "names": list(fields), "offsets": [at for at, _ in fields.values()],
        "formats": [kind for _, kind in fields.values()], "itemsize": size,
    })  # fmt: skip


_MOTOR_CMD = _struct(
    28, mode=(0, "u1"), q=(4, "<f4"), dq=(8, "<f4"), tau=(12, "<f4"), kp=(16, "<f4"),
    kd=(20, "<f4"), reserve=(24, "<u4"),
)  # fmt: skip
_MOTOR_STATE = _struct(
    56, mode=(0, "u1"), q=(4, "<f4"), dq=(8, "<f4"), ddq=(12, "<f4"), tau_est=(16, "<f4"),
    temperature=(20, ("<i2", 2)), vol=(24, "<f4"), sensor=(28, ("<u4", 2)), motorstate=(36, "<u4"),
    reserve=(40, ("<u4", 4)),
)  # fmt: skip
_PRESS = _struct(
    104, pressure=(0, ("<f4", 12)), temperature=(48, ("<f4", 12)), lost=(96, "<u4"),
    reserve=(100, "<u4"),
)  # fmt: skip
LOW_CMD = _struct(
    1004, mode_pr=(0, "u1"), mode_machine=(1, "u1"), motor=(4, (_MOTOR_CMD, MOTORS)),
    reserve=(984, ("<u4", 4)), crc=(1000, "<u4"),
)  # fmt: skip
LOW_STATE = _struct(
    2092, version=(0, ("<u4", 2)), mode_pr=(8, "u1"), mode_machine=(9, "u1"), tick=(12, "<u4"),
    quaternion=(16, ("<f4", 4)), gyroscope=(32, ("<f4", 3)), accelerometer=(44, ("<f4", 3)),
    rpy=(56, ("<f4", 3)), temperature=(68, "<i2"), motor=(72, (_MOTOR_STATE, MOTORS)),
    wireless_remote=(2032, ("u1", 40)), reserve=(2072, ("<u4", 4)), crc=(2088, "<u4"),
)  # fmt: skip
HAND_CMD = _struct(
    216, count=(0, "<u4"), motor=(4, (_MOTOR_CMD, HAND_JOINTS)), reserve=(200, ("<u4", 4))
)  # fmt: skip
HAND_STATE = _struct(
    1424, count=(0, "<u4"), motor=(4, (_MOTOR_STATE, HAND_JOINTS)), press_count=(396, "<u4"),
    press=(400, (_PRESS, PRESS_SENSORS)), quaternion=(1336, ("<f4", 4)),
    gyroscope=(1352, ("<f4", 3)), accelerometer=(1364, ("<f4", 3)), rpy=(1376, ("<f4", 3)),
    temperature=(1388, "<i2"), power_v=(1392, "<f4"), power_a=(1396, "<f4"),
    system_v=(1400, "<f4"), device_v=(1404, "<f4"), error=(1408, ("<u4", 2)),
    reserve=(1416, ("<u4", 2)),
)  # fmt: skip
"""As it is with nine pressure sensors; of a real hand only what comes before them is read."""
_FIRST_MOTOR = {LOW_CMD.itemsize: (2, 4), LOW_STATE.itemsize: (70, 72)}
"""C aligns the first motor to 4 bytes, CDR only its numbers: where its mode is in CDR and in C."""
_MOTORS_OF_HAND = 4 + HAND_JOINTS * _MOTOR_STATE.itemsize


def encode(message: np.ndarray) -> bytes:
    """A message (one LOW_CMD, LOW_STATE, HAND_CMD or HAND_STATE) as the bytes that DDS carries."""
    raw = message.tobytes()
    if len(raw) not in _FIRST_MOTOR:
        return _HEADER + raw
    wire, memory = _FIRST_MOTOR[len(raw)]
    return _HEADER + raw[:wire] + raw[memory : memory + 1] + b"\0" + raw[memory + 4 :]


def decode(data: bytes, kind: np.dtype) -> np.ndarray:
    """Inverse of `encode`; ValueError when the bytes are not such a message."""
    if data[:2] != _HEADER[:2]:
        raise ValueError(f"encoded as {data[:2].hex()}, not as little-endian CDR")
    body = data[4:]
    if kind is HAND_STATE:
        # A hand may have another number of sensors, or none.
        if len(body) < _MOTORS_OF_HAND or body[0] != HAND_JOINTS:
            raise ValueError(f"a hand's state of {len(body)} bytes without {HAND_JOINTS} motors")
        body = body[:_MOTORS_OF_HAND].ljust(kind.itemsize, b"\0")
    if kind.itemsize in _FIRST_MOTOR:
        wire, memory = _FIRST_MOTOR[kind.itemsize]
        gap = memory - wire
        body = body[:wire] + b"\0" * gap + body[wire : wire + 1] + b"\0\0\0" + body[wire + 2 :]
    if len(body) != kind.itemsize:
        raise ValueError(f"a message of {len(data)} bytes where another size is right")
    # Not a copy of a record, which would leave out what is between its fields.
    return np.frombuffer(bytearray(body), kind).reshape(())


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc32(data: bytes) -> int:
    """Unitree's checksum: CRC-32/MPEG-2 over 32-bit words, highest bit first.

    zlib's goes lowest bit first and is inverted at the end: so of mirrored bytes, mirrored.
    """
    words = np.frombuffer(data, "<u4").byteswap().tobytes().translate(_MIRRORED)
    return int(f"{zlib.crc32(words) ^ 0xFFFFFFFF:032b}"[::-1], 2)


def signed(message: np.ndarray) -> np.ndarray:
    """The message (LOW_CMD or LOW_STATE) with its checksum put in."""
    message["crc"] = crc32(message.tobytes()[:-4])
    return message


def is_signed(message: np.ndarray) -> bool:
    """Whether its checksum is right."""
    return int(message["crc"]) == crc32(message.tobytes()[:-4])


def motor_commands(
    joints: slice, q: np.ndarray, dq: np.ndarray, tau: np.ndarray, kp: np.ndarray,
    kd: np.ndarray, mode_machine: int,
) -> np.ndarray:
    """A LOW_CMD without checksum that tells `joints`, and no other motor, position (rad) and so on.

    Pitch and roll of ankles and waist are commanded as joints (mode_pr 0).
    """
    message = np.zeros((), LOW_CMD)
    message["mode_machine"] = mode_machine
    motors = message["motor"][joints]
    motors["mode"] = 1
    for name, value in (("q", q), ("dq", dq), ("tau", tau), ("kp", kp), ("kd", kd)):
        motors[name] = value
    return message


def hand_mode(joint: int, timeout: bool) -> int:
    """A Dex3 motor's mode: its number, switched on, and whether it is to time out."""
    return joint | 1 << 4 | int(timeout) << 7


def hand_cmd(q: np.ndarray, kp: float, kd: float) -> np.ndarray:
    """A HAND_CMD to positions (7,) rad; with kp 0 the fingers only resist."""
    message = np.zeros((), HAND_CMD)
    message["count"] = HAND_JOINTS
    motors = message["motor"]
    motors["mode"] = [hand_mode(joint, timeout=kp == 0.0) for joint in range(HAND_JOINTS)]
    motors["q"], motors["kp"], motors["kd"] = q, kp, kd
    return message
