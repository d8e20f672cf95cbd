import numpy as np
import pytest

import lcma
from lcma.schemes_db import costs


def outputs(name):
    return ["".join(".FLU"[kind] for kind in row) for row in lcma.parse_target(name).c]


@pytest.mark.parametrize(("name", "rows"), [
    ("4x4x4:band(1)", ["FF..", "FFF.", ".FFF", "..FF"]),
    ("4x4x4:prefix(2)", ["FF..", "FF..", "FFL.", "FFFL"]),
    ("4x2x4:window(2)", ["L...", "FL..", "UFL.", ".UFL"]),
    ("3x3x3:window(1)", ["L..", "UL.", ".UL"]),
])  # fmt: skip
def test_masks_have_names(name, rows):
    target = lcma.parse_target(name)
    assert outputs(name) == rows
    assert target.name == name
    naive = lcma.naive(target)
    assert lcma.check(naive).ok
    assert lcma.check(naive, "randomized").ok
    assert costs.full_and_half(naive)[1] == target.k * sum(row.count("L") + row.count("U") for row in rows)


def test_forms_that_coincide_have_one_name():
    assert lcma.parse_target("3x3x3:band(2)").name == "3x3x3"
    assert lcma.parse_target("3x3x3:prefix(3)").name == "3x3x3"
    assert lcma.parse_target("3x3x3:window(9)").name == "3x3x3:tri-out"
    assert lcma.parse_target("3x3x3:tri-out:lower").name == "3x3x3:tri-out"


def test_a_mask_file(tmp_path):
    path = tmp_path / "mask.txt"
    path.write_text("1 0 0\n\n1 L 0\n. U F\n")
    target = lcma.parse_target(f"3x2x3:mask({path})")
    assert outputs(f"3x2x3:mask({path})") == ["F..", "FL.", ".UF"]
    assert target.name == "3x2x3:blocks(FF/FF/FF,FFF/FFF,F../FL./.UF)"
    assert lcma.parse_target(target.name) == target
    assert lcma.parse_target(f"mask:{path}").shape == (3, 3, 3)


@pytest.mark.parametrize("text", [
    "FL.\n.HU\n", "1,L,0\n0,H,U\n", "F;L;.\r\n.;H;U\r\n", "F\tL\t0\n.\tH\tU\n", '"1","L","."\n"0","L","U"\n',
    '["FL.", ".HU"]', '[[1, "L", 0], [false, "H", "U"]]', "\ufeffFL.\n.LU\n", "True,L,False\n0.0,L,U\n",
])  # fmt: skip
def test_masks_as_text_tables_and_json_are_one_grid(text, tmp_path):
    path = tmp_path / "mask"
    path.write_text(text, encoding="utf-8", newline="")
    assert outputs(f"2x2x3:mask({path})") == ["FL.", ".LU"]


@pytest.mark.parametrize("array", [
    np.array([[True, False], [True, True]]),
    np.array([[1, 0], [1, 1]]),
    np.asfortranarray(np.array([[1, 0], [1, 1]], dtype=np.int8)),
    np.array([["F", "."], ["1", "F"]]),
])  # fmt: skip
def test_masks_as_arrays(array, tmp_path):
    np.save(tmp_path / "mask.npy", array)
    assert outputs(f"2x2x2:mask({tmp_path}/mask.npy)") == ["F.", "FF"]
