"""Mistakes: the exit code of each, and one line on stderr that names the cause and the mend."""

import re
from pathlib import Path

import pytest

import lcma
from lcma import errors
from lcma.workbench import cli

pytestmark = pytest.mark.usefixtures("home")

PAGE = Path(lcma.__file__).resolve().parent / "docs" / "reference" / "exit-codes.md"


def test_the_page_has_the_exit_codes_of_the_code():
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)
    found = {0, *(value for name, value in vars(cli).items() if name.startswith("EXIT_"))}
    found |= {error.exit_code for error in vars(errors).values() if hasattr(error, "exit_code")}
    assert sorted(found) == [int(row) for row in rows]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("show strasen", "did you mean strassen"),
        ("show 9x9x9:1", "lcma search 9x9x9"),
        ("time strassenn --size 64", "did you mean strassen"),
        ("analyse causal --scheme eca-stage3", "did you mean eca-stage"),
        ("remove nobody", "lcma list"),
        ("rename nobody mine", "lcma list"),
        ("export ladermann", "did you mean laderman"),
        ("search 3x3", "such as 3x3x3"),
        ("search 3x3x3:tri-letf", "did you mean tri-left"),
        ("list --target 3,4,5", "such as 3x4x5"),
        ("list --ring ZZ", "choose one of Z"),
        ("search 3x3x3 --walk flp --dry-run", "did you mean flip"),
        ("search 3x3x3 --by lsn --dry-run", "did you mean lns"),
        ("search 3x3x3 --moves merg --dry-run", "did you mean merge"),
        ("search 3x3x3 --objective ranks --dry-run", "did you mean rank"),
        ("search 3x3x3 --start strasen --dry-run", "did you mean strassen"),
        ("plan 8 8 8 --strategy vender", "did you mean vendor"),
        ("plan 8 8 8 --dtype flaot32", "float32"),
        ("plan 8 8 8 --profile nvidia-h1000", "did you mean nvidia-h100"),
        ("bench causel", "did you mean causal"),
        ("convert --to equation a b", "did you mean equations"),
        ("lst", "did you mean list"),
        ("list --jsno", "Did you mean '--json'"),
        ("verify --format jason x", "did you mean"),
    ],
)
def test_a_name_that_means_nothing_ends_with_2_and_says_which_was_meant(run, line, hint):
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert hint in err
