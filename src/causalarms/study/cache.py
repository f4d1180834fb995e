"""A policy's state as bytes: a JSON header and the raw arrays. Nothing in it can be executed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from causalarms.errors import DataError

DTYPES = ("<f8", "<i8", "|u1", "|b1")


def pack(state: dict[str, Any]) -> bytes:
    """
    >>> unpack(pack({"n": 3, "x": np.eye(2)}))["x"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    scalars: dict[str, Any] = {}
    arrays: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
            if little.dtype.str not in DTYPES:
                raise DataError(f"{name} holds {value.dtype}, which a snapshot cannot keep")
            arrays.append({"name": name, "dtype": little.dtype.str, "shape": list(value.shape)})
            chunks.append(little.tobytes())
        else:
            scalars[name] = value.item() if isinstance(value, np.generic) else value
    header = json.dumps({"scalars": scalars, "arrays": arrays}).encode()
    return b"".join([len(header).to_bytes(8, "little"), header, *chunks])


def unpack(content: bytes) -> dict[str, Any]:
    """The state that `pack` wrote; DataError for anything else."""
    try:
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:end])
        state = dict(header["scalars"])
        for array in header["arrays"]:
            if array["dtype"] not in DTYPES:
                raise DataError(f"unknown kind of array {array['dtype']!r}")
            dtype, shape = np.dtype(array["dtype"]), tuple(int(n) for n in array["shape"])
            count = 1
            for length in shape:
                if length < 0:
                    raise DataError("an array of negative length")
                count *= length
            size = count * dtype.itemsize
            if end + size > len(content):
                raise DataError("the state is cut off")
            flat = np.frombuffer(content, dtype, count, end)
            if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
                raise DataError("a truth value that is neither true nor false")
            state[array["name"]] = flat.reshape(shape).copy()
            end += size
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"not a stored state: {error}") from error
    if end != len(content):
        raise DataError("the state has bytes to spare")
    return state
