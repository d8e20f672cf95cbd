import json
import re
import shlex
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import pytest

import lcma
from lcma.home import data_folder
from lcma.schemes_db.formats import lcma_json, written
from lcma.schemes_db.shipped import shipped_names
from lcma.workbench import cli
from lcma.workbench.commands.demo import NEXT, break_even, draw, multiply
from lcma.workbench.help import summary

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def files(tmp_path):
    """A valid file, one that holds mod 2 only, a wrong one and one that is no scheme."""
    text = written.exp(lcma.resolve("strassen")[0])
    contents = {
        "good.exp": text,
        "mod2.exp": text.replace("(a11+a22)", "(a11-a22)", 1),
        "wrong.exp": text.replace("a11", "a12", 1),
        "no.txt": "no scheme\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {name.partition(".")[0]: tmp_path / name for name in contents}


def test_every_command_has_help_that_agrees_with_the_list(run):
    out = run.ok("--help")
    for name in cli.COMMANDS:
        assert f"\n  {name} " in out
        assert " ".join(run.ok(name, "--help").split("\n\n")[1].split()).startswith(summary(name))


def test_the_version(run):
    assert run("--version")[:2] == (0, f"lcma, version {lcma.__version__}\n")


def test_verify_prints_the_verdict_first(run, files):
    verdict, *lines = run.ok("verify", files["good"]).splitlines()
    assert verdict.startswith("OK 2x2x2 rank 7 over Z (exact, 64 equations, ")
    names = [line.split(":")[0].strip() for line in lines]
    assert names == ["format", "coefficients", "additions", "digest", "best known"]


def test_verify_exit_codes(run, files):
    assert run("verify", files["mod2"])[0] == 0
    assert "holds mod 2" in run.said(1, "verify", "--ring", "Z", files["mod2"])
    assert run.said(1, "verify", files["wrong"]).startswith("FAIL 2x2x2 rank 7 over Z: ")
    run.refused(65, "", "verify", files["no"])
    assert run("verify", files["good"], files["wrong"])[0] == 1
    assert run("verify", files["good"], files["no"], files["wrong"])[0] == 65
    assert run("verify", "missing.json")[0] == 65


def test_verify_quiet_and_json(run, files):
    assert run("verify", "-q", files["good"])[:2] == (0, "")
    assert run.said(1, "verify", "-q", files["good"], files["wrong"]).count("\n") == 1
    code, out, _ = run("verify", "--json", files["good"], files["no"], files["mod2"])
    first, second, third = (json.loads(line) for line in out.splitlines())
    assert (code, first["ok"], second["ok"], third["over_z2_only"]) == (65, True, False, True)


def test_verify_structured_files_and_randomly(run, tmp_path):
    path = tmp_path / "eca.exp"
    text = written.exp(lcma.resolve("eca-stage1")[0])
    path.write_text(text)
    assert run("verify", path)[0] == 0
    path.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("#")))
    assert "4x4x4:tri-out" in run.ok("verify", path)  # without its header its blocks say what it computes
    out = run.ok("verify", path, "--target", "4x4x4:tri-out", "--method", "randomized", "--method", "exact")
    assert "24 full + 10 half; one level 29/64" in out
    assert "error below 2^-102" in out


def test_list_show_export_convert_and_add(run, tmp_path):
    assert "eca-stage1" in run.ok("list")
    assert run.json("list", "2x2x2")[0]["name"] == "strassen"
    assert run("list", "--csv", "--where", "ring=Q")[1].startswith("name,target")
    out = run.ok("show", "eca-stage1")
    assert "29/64 = 0.4531" in out
    assert "4/9 = 0.4444" in out
    shown = tmp_path / "shown.txt"
    shown.write_text(out)
    assert run("verify", shown)[0] == 0
    assert run.json("show", "strassen")["digest"] == lcma.resolve("strassen")[0].digest
    converted = tmp_path / "x.exp"
    assert run("export", "laderman", "--format", "exp", "--out", converted)[0] == 0
    assert run("convert", converted, tmp_path / "y.json")[0] == 0
    assert run("convert", converted, "-", "--to", "equations")[1].startswith("# target: 3x3x3")
    composed = tmp_path / "composed.json"
    assert run("export", "strassen*strassen", "--out", composed)[0] == 0
    assert run.ok("add", composed, "--name", "mine", "--source", "a test").startswith("added mine <4x4x4:49 over Z>")
    assert run("add", composed)[1].startswith("not kept, there already")
    assert "mine" in run("list", "--where", "origin=user")[1]
    assert run("export", "--all", "--out", tmp_path / "all")[0] == 0
    (written,) = (tmp_path / "all").iterdir()
    assert lcma.load(written)[0].name == "mine"


def test_results_are_json_for_scripts(run, matrices, tmp_path):
    found = run.json("run", "strassen", matrices("a"), matrices("b"), "--check")
    assert (found["product"], found["correct"], found["relative_error"] < 1e-6) == ("37x23x41 float32", True, True)
    found = run.json("run", "strassen", matrices("i"), matrices("j"), "--ring", "Z", "--check")
    assert (found["product"], found["correct"]) == ("10x11x12 int64 over Z", True)
    scheme = tmp_path / "scheme.json"
    assert run("export", "strassen*winograd", "--out", scheme)[0] == 0
    found = run.json("convert", scheme, tmp_path / "scheme.exp")
    assert (found["format"], found["rank"], found["target"]) == ("exp", 49, "4x4x4")
    (added,) = run.json("add", scheme)
    assert (added["digest"], added["result"].partition(" ")[0]) == (found["digest"], "added")
    assert run.json("search", "3x3x3", "--dry-run")["rank"] == 23
    assert run.json("improve", "4x4x4", "--dry-run") == []
    assert "causal" in run.json("bench")
    assert {"row", "seconds", "bars"} == set(run.json("bench", "choice", "--dry-run")[0])


def test_add_is_all_or_nothing(run, files):
    run.refused(1, "nothing was added", "add", files["good"], files["wrong"])
    assert run.json("list", "--where", "origin=user") == []


@pytest.fixture
def matrices(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.standard_normal((37, 23)).astype(np.float32),
        "b": rng.standard_normal((23, 41)).astype(np.float32),
        "i": rng.integers(-9, 9, (10, 11)),
        "j": rng.integers(-9, 9, (11, 12)),
        "c": np.ones((3, 3), np.complex64),
        "s": np.ones((3, 3), np.int8),
        "v": np.ones(3),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return lambda name: tmp_path / f"{name}.npy"


def test_run_multiplies_and_checks(run, matrices, tmp_path):
    out = tmp_path / "product.npy"
    text = run.ok("run", "strassen", matrices("a"), matrices("b"), "--levels", 2, "--out", out, "--check")
    assert "relative error" in text
    assert np.allclose(np.load(out), np.load(matrices("a")) @ np.load(matrices("b")), atol=1e-4)
    assert "check: exact" in run("run", "laderman", matrices("i"), matrices("j"), "--check")[1]
    assert run("run", "strassen", matrices("i"), matrices("j"), "--dtype", "float64", "--check")[0] == 0
    text = run.ok("run", "strassen", matrices("s"), matrices("s"), "--max-abs", 31, "--levels", 2, "--check")
    assert ("int32" in text, "check: exact" in text) == (True, True)
    int8 = "--dtype", "int8", "--max-abs", 31
    found = run.json("time", "strassen", 64, *int8, "--rounds", 1)
    assert [row["relative_error"] for row in found["rows"]] == [0.0, 0.0]
    found = run.json("plan", 8192, 8192, 8192, "--device", "cuda", *int8)
    assert (found["strategy"], found["baseline"]) == ("int8", "vendor")
    code, text, _ = run("run", "eca-stage2", matrices("i"), matrices("j"), "--check")
    assert (code, "check: exact" in text) == (3, False) or code == 0


def test_run_refuses_a_scheme_that_holds_mod_2_only(run, files, matrices):
    run.refused(3, "Z2 only", "run", files["mod2"], matrices("a"), matrices("b"))


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"hello", b"PK\x03\x04", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'shape'"]
)
def test_run_refuses_what_is_no_matrix(run, tmp_path, matrices, content):
    bad = tmp_path / "bad.npy"
    bad.write_bytes(content)
    run.refused(65, "", "run", "strassen", bad, matrices("b"))


def test_run_refuses_pickles(run, tmp_path, matrices):
    bad = tmp_path / "bad.npy"
    np.save(bad, np.array([[{}]], dtype=object), allow_pickle=True)
    assert run("run", "strassen", bad, matrices("b"))[0] == 65


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


def test_a_catalogue_from_a_newer_version_is_refused(run, home):
    import sqlite3

    run("list")
    with sqlite3.connect(home / "data" / "catalog.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    run.refused(3, "", "list")


def test_lcma_json_is_a_fixed_point(run, tmp_path):
    path = tmp_path / "s.json"
    text = run("export", "winograd")[1]
    path.write_text(text)
    assert run("export", path)[1].count('"proofs"') == 1
    scheme = lcma.load(path)[0]
    assert lcma_json.render(scheme, lcma.schemes_db.shipped.shipped("winograd").certificate) == text


def test_search_certifies_what_it_finds_and_keeps_what_adds_something(run, tmp_path):
    def listed():
        return run.json("list", "--where", "origin=user")

    out = run.ok("search", "2x2x2", "--rank", 7, "--seed", 3, "--out", tmp_path / "run")
    assert re.match(r"found <2x2x2:7 over Z> \w{12}, ternary, certified, not kept: strassen is as good\n", out)
    assert listed() == []
    assert " new to the catalogue" in run("merge", tmp_path / "run")[1]
    merged = listed()
    assert {entry["ring"] for entry in merged} == {"Z"}
    text = run("show", merged[0]["digest"][:12])[1]
    assert "# relation: Hensel lift" in text
    assert "# seed: 3" in text
    (origin,) = re.findall(r"parent: (\w{64}) \(Hensel lift\)", text)
    assert "2x2x2" in run("show", origin)[1]  # found, and not listed
    assert "not kept" in run("search", "2x2x2", "--rank", 7, "--seed", 4)[1]
    assert run("search", "2x2x3", "--ring", "Z2", "--rank", 11, "--count", 1)[1].count("certified, kept") == 1
    assert len(listed()) == len(merged) + 1
    data = run.json("search", "2x2x2", "--ring", "Z2", "--rank", 7)
    assert data["finds"] == len(data["schemes"]) > 0


def test_search_says_what_it_would_do_and_that_nothing_was_found(run):
    assert run("search", "2x2x2", "--dry-run")[1] == (
        "2x2x2:7 over Z: from rank 8 of 2x2x2 to 7, 4 walks (flip) of 1000000 steps a round, for 60 s, seed 0\n"
    )
    assert run("search", "2x2x2", "--rank", 6, "--rounds", 1, "--steps", 1000)[0] == 1


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


def test_plans_of_nothing(run):
    assert "there is nothing to multiply" in run.ok("plan", 0, 5, 5, "--explain", "--profile", "amd-epyc-9k84")
