"""The style sheet of the page: colours that everybody can tell apart, in light and dark."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from lmart.reports.pages.frame import STYLE

# What people without one kind of cones see (Machado, Oliveira and Fernandes 2009, severity 1), in linear RGB.
SEEN = {
    "all colours": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> npt.NDArray[np.float64]:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    xyz = XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_everybody_can_tell_the_series_apart_and_see_them(scheme: int) -> None:
    colours = [re.findall(rf"--s{k}: (#[0-9a-f]{{6}})", STYLE)[scheme] for k in range(1, 7)]
    paper = re.findall(r"--paper: (#[0-9a-f]{6})", STYLE)[scheme]
    for name, seen in SEEN.items():
        found = [lab(np.array(seen) @ linear(colour)) for colour in colours]
        nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(found, 2))
        assert nearest > 20, name
    for colour in colours:
        bright, dark = sorted((float(XYZ[1] @ linear(one)) for one in (colour, paper)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, colour
