"""Run by the driver environment's Python: our messages against those of Unitree's own library.

Prints one line of JSON: what differs, nothing when all is equal.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from unitree_sdk2py.idl import default  # noqa: E402
from unitree_sdk2py.idl.unitree_hg.msg import dds_  # noqa: E402
from unitree_sdk2py.utils.crc import CRC  # noqa: E402

from bench_tasks.robots import unitree_hg as hg  # noqa: E402

KINDS = {"LowCmd_": hg.LOW_CMD, "LowState_": hg.LOW_STATE, "HandCmd_": hg.HAND_CMD,
         "HandState_": hg.HAND_STATE}  # fmt: skip


def fill(array, rng):
    """Random numbers in every field; integers small enough for all of them."""
    for name in array.dtype.names:
        if array.dtype[name].subdtype and array.dtype[name].subdtype[0].names:
            for part in array[name]:
                fill(part, rng)
        elif name not in ("count", "press_count", "crc"):
            shape = array[name].shape
            kind = array.dtype[name].base.kind
            array[name] = rng.normal(size=shape) if kind == "f" else rng.integers(0, 99, shape)


def same(theirs, ours, path=""):
    """Where a message of theirs differs from ours."""
    wrong = []
    for name in ours.dtype.names:
        field = {"motor": "motor_cmd" if hasattr(theirs, "motor_cmd") else "motor_state",
                 "press": "press_sensor_state"}.get(name, name)  # fmt: skip
        holder = theirs
        if not hasattr(theirs, field) and hasattr(theirs, "imu_state"):
            holder = theirs.imu_state
        if name in ("count", "press_count"):
            continue
        found = getattr(holder, field)
        if name in ("motor", "press"):
            for k, part in enumerate(found):
                wrong += same(part, ours[name][k], f"{path}{name}[{k}].")
        elif not np.array_equal(list(found) if isinstance(found, bytes) else found, ours[name]):
            wrong.append(f"{path}{name}")
    return wrong


def main():
    """Compare all four, both ways."""
    rng, wrong = np.random.default_rng(0), []
    for name, kind in KINDS.items():
        ours = np.zeros((), kind)
        fill(ours, rng)
        if kind in (hg.HAND_CMD, hg.HAND_STATE):
            ours["count"] = 7
        if kind is hg.HAND_STATE:
            ours["press_count"] = 9
        if kind in (hg.LOW_CMD, hg.LOW_STATE):
            hg.signed(ours)
        data = hg.encode(ours)
        theirs = getattr(dds_, name).deserialize(data)
        wrong += [f"{name}: {field}" for field in same(theirs, ours)]
        if theirs.serialize() != data:
            wrong.append(f"{name}: bytes")
        if kind in (hg.LOW_CMD, hg.LOW_STATE) and CRC().Crc(theirs) != int(ours["crc"]):
            wrong.append(f"{name}: crc")
        if kind is not hg.HAND_STATE and hg.decode(data, kind).tobytes() != ours.tobytes():
            wrong.append(f"{name}: decoded")
        if not hasattr(default, f"unitree_hg_msg_dds__{name}"):
            wrong.append(f"{name}: no such default")
    sys.stdout.write(json.dumps({"wrong": wrong, "kinds": len(KINDS)}) + "\n")


if __name__ == "__main__":
    main()
