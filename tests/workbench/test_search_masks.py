"""`lcma search mask:FILE`: any mask of blocks, from its file to what it saves."""

import re

import pytest


@pytest.fixture
def search(home, tmp_path, run):
    """Search for a mask of a text: exit code, stdout, stderr."""

    def call(text):
        path = tmp_path / "mask.txt"
        path.write_text(text)
        return run("search", f"mask:{path}", "--steps", "200000", "--rounds", "10")

    return call


def test_a_mask_is_searched_from_its_file(search):
    code, out, _ = search("1...\n11..\n111.\n.111\n")
    assert code == 0
    assert "32 products of blocks instead of 36, 11.1% saved" in out


def test_a_mask_with_half_blocks_is_searched_for_its_cost(search):
    code, out, _ = search(".FFF\nFUFF\nFHUU\n.F.F\n")
    assert code == 0
    saved = float(re.search(r": ([\d.]+) products of blocks instead of 44", out)[1])
    assert saved <= 40.5
    assert "FLUU" in out


def test_that_nothing_was_found_is_said(search):
    code, out, _ = search("1.\n11\n")
    assert code == 1
    assert "nothing below its own 6 products of blocks was found" in out


@pytest.mark.parametrize(("text", "code"), [("..\n..\n", 3), ("1\n11\n", 2)])
def test_masks_that_mean_nothing_are_refused(search, text, code):
    assert search(text)[0] == code
