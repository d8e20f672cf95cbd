import pytest

import lcma
from lcma.schemes_db import Kind, costs


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
    with pytest.raises(lcma.TargetError, match="write the mask itself"):
        lcma.parse_target(f"3x2x3:mask({path})", files=False)
    for content in ("", "10\n1\n", "12\n21\n", "1" * 70000):
        path.write_text(content)
        with pytest.raises(lcma.TargetError, match="rows of equal length"):
            lcma.parse_target(f"3x2x3:mask({path})")
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(lcma.TargetError, match="not text"):
        lcma.parse_target(f"3x2x3:mask({path})")
    with pytest.raises(lcma.TargetError, match="can't be read"):
        lcma.parse_target(f"3x2x3:mask({tmp_path}/none)")


@pytest.mark.parametrize("name", ["4x4x3:band(1)", "4x4x4:band()", "4x4x4:band(x)", "4x4x4:window(-1)", "4x4x4:prefix"])
def test_bad_masks_are_refused(name):
    with pytest.raises(lcma.TargetError):
        lcma.parse_target(name)


def test_kinds_are_small_integers():
    assert [int(kind) for kind in Kind] == [0, 1, 2, 3]
