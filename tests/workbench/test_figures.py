"""The figures of the documentation: drawn from committed rows, with an alternative text, readable at 400 pixels."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import lcma
from lcma.workbench import figures as all_figures
from lcma.workbench.bench.journal import Journal
from lcma.workbench.figures import FIGURES, write_figures
from lcma.workbench.figures.maps import layers, patterns
from lcma.workbench.figures.ranks import gaps, ratios
from lcma.workbench.figures.speed import float32_points, speedups, times

pytest.importorskip("matplotlib")

ROOT = Path(lcma.__file__).resolve().parent
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    return out, {figure.name: figure for figure in write_figures(RESULTS, out)}


def test_the_committed_figures_are_those_of_the_committed_rows(written):
    out, figures = written
    there = {name for name, figure in figures.items() if not figure.missing}
    committed = ROOT / "docs" / "figures"
    assert {path.stem for path in committed.glob("*.svg")} == there, "draw them again: lcma report figures --force"
    for name in there:
        assert (committed / f"{name}.txt").read_text() == (out / f"{name}.txt").read_text(), (
            "lcma report figures --force"
        )


def test_two_runs_write_the_same_bytes(written, tmp_path, monkeypatch):
    monkeypatch.setattr(all_figures, "FIGURES", FIGURES[::4])
    for figure in write_figures(RESULTS, tmp_path):
        assert (tmp_path / f"{figure.name}.svg").read_bytes() == (written[0] / f"{figure.name}.svg").read_bytes()


def test_type_is_readable_at_400_pixels_and_every_figure_has_an_alternative_text(written):
    out, figures = written
    for name, figure in figures.items():
        if figure.missing:
            continue
        text = (out / f"{name}.svg").read_text()
        width = float(ElementTree.fromstring(text).get("viewBox").split()[2])
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:\w+ )?([\d.]+)px", text)]
        assert sizes
        assert min(sizes) * 400 / width >= 9.5
        assert 40 < len(figure.alt) < 900
        assert figure.alt.endswith(".")


def test_figures_show_the_rows():
    newest = Journal(RESULTS / "cpu-cpu.jsonl").newest()
    found = speedups(RESULTS)
    assert found["CPU"]["float32"][4096] == newest["float32 4096 2T"]["figures"]["ratio"]
    assert max(found["H200"]["float32"]) == 16384
    assert all(seconds == sorted(seconds) for seconds in times(RESULTS).values())
    assert gaps()[2, 2, 2] == (7, 7)
    assert gaps()[3, 3, 3] == (23, 23)
    assert ratios()[6] == (56 / 36, 56 / 36)


def test_missing_rows_leave_a_figure_out_and_say_what_it_needs(tmp_path):
    figures = {figure.name: figure for figure in write_figures(tmp_path / "none", tmp_path / "out")}
    assert set(figures) == {figure.name for figure in FIGURES}
    assert [name for name, figure in figures.items() if not figure.missing] == ["ranks", "triples"]
    assert "cpu-cpu.jsonl" in figures["speedup"].missing
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {"ranks", "triples"}


def drawn(folder, suite, device, rows):
    """The figures of a suite's rows, by their keys."""
    journal = Journal(folder / f"{suite}-{device}.jsonl")
    common = {"suite": suite, "code": "0", "refused": None, "options": {"device": device}}
    for key, figures in rows.items():
        journal.append({**common, "key": key, "figures": figures})
    with pytest.MonkeyPatch.context() as patch:  # two need no rows, and take the longest
        others = [figure for figure in FIGURES if figure.name not in ("ranks", "triples")]
        patch.setattr(all_figures, "FIGURES", others)
        return {figure.name: figure for figure in write_figures(folder, folder / "out")}


def test_the_roofline_takes_the_best_rate_at_each_intensity(tmp_path):
    def rates(vendor, online, offline):
        named = {"vendor_tflops": vendor, "online_tflops": online, "offline_tflops": offline}
        return {"ratio": 1.1, "flops_per_element": 4096.0, **named}

    rows = {
        "product float32 6144 2x2x2": rates(50.0, 55.0, 56.0),
        "product float32 6144 3x3x3": rates(49.0, 52.0, 60.0),
    }
    rows |= {"product float64 6144 2x2x2": rates(70.0, 70.0, 70.0), "graph float32 6144": rates(70.0, 70.0, 70.0)}
    figures = drawn(tmp_path, "gpu", "cuda", rows)
    assert float32_points(tmp_path) == {1024.0: {"vendor": 50.0, "best": 60.0}}
    assert "torch reaches 50, the best scheme 60 TFLOP/s" in figures["roofline"].alt


def test_a_win_map_has_a_dot_a_pattern(tmp_path):
    rows = {
        "bsf float32 p1": {"density": 0.25, "size": 1024, "ratio": 1.5},
        "bsf float32 p2": {"density": 0.5, "size": 4096, "ratio": 0.9},
        "bsf float32 p3": {"density": 0.5, "size": 4096},
    }
    figures = drawn(tmp_path, "ks", "cpu", rows)
    assert patterns(tmp_path) == [(0.25, 1024, 1.5), (0.5, 4096, 0.9)]
    assert "1 of 2 patterns are faster" in figures["ks-map"].alt


def test_figures_of_layouts_need_both(tmp_path):
    named = ("ks-generic", "ks-bmm", "ks-layouts")
    for layout, time, expected in (("bsf", 1.0, []), ("bsl", 0.5, [*named])):
        times = {"auto": time, "bmm": 2.0, "einsum": 3.0}
        row = {"density": 0.25, "size": 4096, "h": 0.1, "predicted_ms": 1.0, "ms": times}
        found = drawn(tmp_path, "ks", "cuda", {f"{layout} float32 (1,2,2,4)": row})
        assert [name for name in named if not found[name].missing] == expected
    assert "1 of 1 above 1; medians by decade 16 at 1e3 (1). 1 ratios are lower bounds." in found["ks-generic"].alt
    assert "1.5 at 1e3 (1)." in found["ks-bmm"].alt
    assert "ours 2.00 (1), bmm 1.00 (1)" in found["ks-layouts"].alt


def test_a_win_map_of_layers_has_a_dot_a_product(tmp_path):
    rows = {
        "GPT2-S c_fc blast n=1 bfloat16": {"dense_weight_bytes": 2048, "ratio": 0.9},
        "Llama-7B down low-rank n=1024 bfloat16": {"dense_weight_bytes": 2048, "ratio": 1.7},
    }
    figures = drawn(tmp_path, "blr", "cuda", rows)
    assert layers(tmp_path) == [("blast", 1, 1024, 0.9), ("low-rank", 1024, 1024, 1.7)]
    assert "low-rank 1 of 1, blast 0 of 1" in figures["blr-map"].alt


def test_the_command_writes_them_and_names_what_is_missing(run, tmp_path):
    shutil.copy(RESULTS / "cpu-cpu.jsonl", tmp_path)
    code, out, err = run("report", "figures", "--results", tmp_path, "--out", tmp_path / "f")
    assert (code, "speedup.svg: Speed-up over the vendor's product" in out) == (0, True)
    assert (tmp_path / "f" / "speedup.svg").exists()
    assert "was left out: no rows" in err
    assert run.ok("report", "benchmarks", "--results", RESULTS).startswith("# Benchmarks")
