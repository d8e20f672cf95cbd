import shlex
from importlib import import_module
from xml.etree import ElementTree

import pytest

import lcma
from lcma.home import data_folder
from lcma.schemes_db.shipped import shipped_names
from lcma.workbench import cli
from lcma.workbench.commands.demo import NEXT, break_even, draw, multiply
from lcma.workbench.help import summary

pytestmark = pytest.mark.usefixtures("home")


def test_every_command_has_help_that_agrees_with_the_list(run):
    out = run.ok("--help")
    for name in cli.COMMANDS:
        assert f"\n  {name} " in out
        assert " ".join(run.ok(name, "--help").split("\n\n")[1].split()).startswith(summary(name))


def test_time_prints_ratios_and_records_them(run):
    data = run.json("time", "strassen", "64", "--rounds", 2, "--levels", 1, "--levels", 2, "--record")
    assert [row["what"] for row in data["rows"]] == ["vendor", "strassen, 1 level", "strassen, 2 levels"]
    assert data["rows"][0]["ratio"] == 1
    with lcma.Catalog.open() as catalog:
        assert len(catalog.measurements(data["digest"])) == 2
    assert run("time", "strassen", "16x32x48", "--rounds", 1, "--dtype", "float64")[0] == 0


def test_doctor_proves_the_shipped_schemes(run):
    facts = run.json("doctor")
    assert facts["shipped schemes proven"] == f"{len(shipped_names())} of {len(shipped_names())}"
    assert run("doctor")[0] == 0


def test_a_crash_is_never_read_as_invalid(run, monkeypatch):
    def broken(*_):
        raise RuntimeError("surprise")

    monkeypatch.setattr(lcma.Catalog, "open", broken)
    text = run.said(70, "list")
    assert ("surprise" in text, "internal error" in text) == (True, True)


def test_an_interrupt_is_130(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(lcma.Catalog, "open", interrupted)
    assert run("list")[0] == 130


def test_no_colour_off_a_terminal(run):
    assert "\x1b" not in run("list")[1]


def test_the_demo_goes_the_whole_road(run):
    out = run.ok("demo", "--size", 128, "--rounds", 2)
    for text in ("from 27 products to 23", "all 2560 equations hold", "strassen, 2 levels", "eca-stage1", "break-even"):
        assert text in out
    assert "best" not in out
    kept = run.json("list", "--where", "origin=user")
    assert (kept, out.count("not kept: ")) == ([], 2)  # the shipped schemes are as good
    picture = data_folder() / "demo.svg"
    assert f"The speeds as a picture: {picture}" in out
    assert len(list(ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}path"))) == 2
    assert [line.split(":", 1)[1].strip() for line in out.splitlines()[-3:]] == [line for _, line in NEXT]


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ((0.4, 0.65, 0.9), "no scheme gains at 4096 on this machine: the fastest, a, has 0.90 times"),
        ((0.4, 1.3, 1.01), "the break-even is above 4096 rows"),
        ((0.92, 1.12, 1.2), "a gains at 4096: 1.20 times the library's speed; the break-even is at about 1448 rows"),
        ((1.1, 0.82, 1.22), "the break-even is at about 2896 rows"),
        ((1.1, 1.2, 1.3), "the break-even is below 1024 rows"),
    ],
)
def test_the_demo_says_where_schemes_begin_to_gain(speeds, said):
    assert said in break_even([(side, "a", each) for side, each in zip((1024, 2048, 4096), speeds, strict=True)])


def test_the_demo_leaves_out_what_would_take_too_long(capsys):
    title, bars = multiply(256, 1, ends=0.0)
    assert "128 x 128 is left out: it would take more than a minute" in capsys.readouterr().out
    assert title.startswith("64 x 64 float32 product: speed over ")
    assert set(bars) >= {"numpy", "strassen, 1 level"}


@pytest.mark.parametrize("line", [part.partition(" > ")[0] for _, line in NEXT for part in line.split("&& ")])
def test_the_commands_that_the_demo_names_are_understood(line):
    _, name, *arguments = shlex.split(line)
    command = import_module(f"lcma.workbench.commands.{name}").command
    assert command.make_context(name, arguments, resilient_parsing=False).command is command


def test_the_demo_draws_a_bar_a_contender_with_hostile_names():
    text = draw([("title <&>", {"numpy": 1.0, "<b>": 1.25}), ("second", {"x": 0.5})])
    bars = [one for one in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    assert [round(float(bar.get("width")) / float(bars[0].get("width")), 2) for bar in bars] == [1, 1.25, 0.5]
    assert "&lt;b&gt;" in text
