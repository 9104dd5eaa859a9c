"""Boundaries of stability, drawn where they are."""

import numpy as np
import pytest

from analysis.systems import TWO, two_masses
from hocket.analysis.maps import stability_map


def test_the_boundary_is_where_the_radius_is_one():
    crossing = TWO["values"]["intervals_h8.9_exact_first_crossing"]["Seidel12.ck"]
    found = stability_map(
        lambda ck, m: two_masses("Seidel12", 8.9, ck=ck, m1=m), [0.5, 1.0, 1.5], [10.0, 10.5], ("ck", "m1")
    )
    assert found.rho.shape == (2, 3)
    on_the_side = [point for piece in found.boundary for point in piece if point[1] == 10.0]
    assert [x for x, _ in on_the_side] == [pytest.approx(crossing, abs=1e-7)]


def test_a_filter_beyond_one_diverges_at_any_step():
    """Formulas, section 1: alpha = 1 initialises inconsistently, beyond it diverges."""
    found = stability_map(
        lambda alpha, h: two_masses("Control21", h, (0.0, 0.0, alpha)), [0.85, 1.05], [0.5, 2.0, 4.0]
    )
    points = np.array([point for piece in found.boundary for point in piece])
    np.testing.assert_allclose(points[:, 0], 1.0, atol=1e-7)


def test_it_can_be_drawn(tmp_path):
    found = stability_map(lambda ck, h: two_masses("Seidel12", h, ck=ck), [0.5, 1.5], [8.0, 9.0], ("ck", "h"))
    found.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert found.rows()[0].keys() == {"ck", "h", "rho"}
