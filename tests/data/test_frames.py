"""Features that Python programs give, as arrays of numbers."""

from __future__ import annotations

import numpy as np

from lmart.data.frames import as_floats


def test_read_only_arrays_are_copied_and_others_are_not() -> None:
    """Kernels are compiled anew for arrays that cannot be written, which takes seconds."""
    array = np.ones((3, 2))
    assert as_floats(array, "X") is array
    array.setflags(write=False)
    assert as_floats(array, "X").flags.writeable
