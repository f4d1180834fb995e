"""Where the nodes of the graph are drawn: they stay where they are while all edges were there.

A picture that jumps at every round cannot be read.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from causalarms.pictures.layout import layered_layout

NODE_WIDTH = 0.26  # of the height of a drawing on the page

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


class Layout:
    def __init__(self) -> None:
        self._union: BoolArray | None = None
        self.positions: FloatArray = np.zeros((0, 2))
        self.number = 0

    def place(self, union: BoolArray) -> None:
        """Positions (N, 2) for these edges (N, N); `number` is another one where they moved."""
        old = self._union
        if old is not None and old.shape == union.shape and not (union & ~old).any():
            return
        self._union, self.positions = union.copy(), layered_layout(union, node_width=NODE_WIDTH)
        self.number = zlib.crc32(np.packbits(union).tobytes())
