"""Arrays in msgpack, in the two ways that policy servers use; pickle is never read or written.

OpenPI and RoboArena write an array as {b"__ndarray__": True, b"data", b"dtype", b"shape"} and a
scalar as {b"__npgeneric__": True, b"data", b"dtype"}; GR00T writes {"__ndarray_class__": True,
"as_npy": bytes of a .npy file}. Only plain numbers are accepted in arrays: no objects, no text.
"""

from __future__ import annotations

import ast
import io
import math
import re
from typing import Any

import msgpack
import numpy as np

from bench_tasks.errors import BenchError

__all__ = ["MAX_BYTES", "WireError", "pack", "pack_npy", "unpack"]

MAX_BYTES = 16 * 1024 * 1024
"""The largest message that is taken; a chunk of actions has some kilobytes."""
MAX_ITEMS = 100_000
MAX_CONTAINERS = 10_000
"""Lists and dicts in one message: sixteen million empty ones would take a gigabyte."""
MAX_DIMENSIONS = 8
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
_PICKLE = tuple(bytes([0x80, version]) for version in range(2, 6))


class WireError(BenchError):
    """Why an exchange with a policy server failed; one line that does not name the server."""


def _plain(dtype: np.dtype) -> bool:
    return _DTYPE.fullmatch(dtype.str) is not None


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) and not _plain(value.dtype):
        raise WireError(f"an array of dtype {value.dtype} cannot be sent")
    if isinstance(value, np.ndarray):
        return {
            b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str,
            b"shape": value.shape,
        }  # fmt: skip
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise WireError(f"a {type(value).__name__} cannot be sent")


def _npy(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or not _plain(value.dtype):
        raise WireError(f"a {type(value).__name__} cannot be sent")
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


def pack(value: Any) -> bytes:
    """Message in the way of OpenPI; WireError when something in it cannot be sent."""
    return msgpack.packb(value, default=_array)


def pack_npy(value: Any) -> bytes:
    """Message in the way of GR00T; WireError when something in it cannot be sent."""
    return msgpack.packb(value, default=_npy)


def _dtype(text: Any) -> np.dtype:
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise WireError(f"it sent an array of dtype {str(text)[:40]!r}, which is not of numbers")
    return np.dtype(text)


def _made(dtype: np.dtype, shape: Any, data: Any, order: str = "C") -> np.ndarray:
    """The array, checked before numpy is asked to trust it."""
    whole = isinstance(shape, list | tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or len(shape) > MAX_DIMENSIONS:
        raise WireError(f"it sent an array of shape {str(shape)[:40]}")
    if not isinstance(data, bytes) or len(data) != dtype.itemsize * math.prod(shape):
        size = len(data) if isinstance(data, bytes) else type(data).__name__
        raise WireError(
            f"it sent an array of shape {tuple(shape)}, {dtype}, with {size} bytes of data"
        )
    return np.frombuffer(data, dtype).reshape(tuple(shape), order=order)  # type: ignore[call-overload]


def _from_npy(data: Any) -> np.ndarray:
    """Read a .npy file; numpy's own reader would allocate what the header claims."""
    if not isinstance(data, bytes):
        raise WireError("it sent an array that is not a .npy file")
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        size = 2 if version[0] == 1 else 4
        length = int.from_bytes(file.read(size), "little")
        if length > 10_000:
            raise ValueError
        header = ast.literal_eval(file.read(length).decode("latin1"))
        description, order = header["descr"], "F" if header["fortran_order"] else "C"
        shape = header["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        raise WireError("it sent an array that is not a .npy file") from None
    return _made(_dtype(description), shape, data[file.tell() :], order)


def _restored(found: dict) -> Any:
    if found.get(b"__ndarray__") is True:
        return _made(_dtype(found.get(b"dtype")), found.get(b"shape"), found.get(b"data"))
    if found.get(b"__npgeneric__") is True:
        value = found.get(b"data")
        if not isinstance(value, bool | int | float):
            raise WireError("it sent a scalar that is not a number")
        try:
            return _dtype(found.get(b"dtype")).type(value)
        except (OverflowError, ValueError):
            raise WireError("it sent a scalar that its dtype cannot hold") from None
    if found.get("__ndarray_class__") is True:
        return _from_npy(found.get("as_npy"))
    return found


def unpack(data: bytes) -> Any:
    """Value of a message in either way; WireError on all that is malformed, too large or pickled.

    Arrays are read-only. Keys must be texts or bytes.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"it sent {len(data)} bytes, more than the limit of {MAX_BYTES}")
    if data[:2] in _PICKLE:
        raise WireError("it sent pickled data, which is never read")
    left = MAX_CONTAINERS

    def counted(found: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise WireError(f"it sent more than {MAX_CONTAINERS} lists and dicts in one message")
        return _restored(found) if isinstance(found, dict) else found

    try:
        return msgpack.unpackb(
            data, object_hook=counted, list_hook=counted, max_array_len=MAX_ITEMS,
            max_map_len=MAX_ITEMS, max_ext_len=0,
        )  # fmt: skip
    except WireError:
        raise
    except Exception as error:  # noqa: BLE001 - msgpack has many kinds, some of them ValueError
        what = type(error).__name__
        raise WireError(f"it sent {len(data)} bytes that are not msgpack ({what})") from None
