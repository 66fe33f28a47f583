"""Names for the arrays that the package passes around: names give the dtype, docstrings the shape."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Int8Array: TypeAlias = npt.NDArray[np.int8]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
UInt16Array: TypeAlias = npt.NDArray[np.uint16]
UInt32Array: TypeAlias = npt.NDArray[np.uint32]
UInt64Array: TypeAlias = npt.NDArray[np.uint64]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
Float32Array: TypeAlias = npt.NDArray[np.float32]
Float64Array: TypeAlias = npt.NDArray[np.float64]
