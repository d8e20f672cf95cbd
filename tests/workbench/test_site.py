"""The static pages: their structure, their safety, and how they behave in a browser."""

import functools
import itertools
import json
import math
import re
import sys
from pathlib import Path

import pytest

import lcma
from lcma.schemes_db import parse_ring, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.formats import read_file
from lcma.schemes_db.ranks import best_known
from lcma.schemes_db.shipped import shipped_names
from lcma.workbench.site import build, build_site
from lcma.workbench.site.facts import origin_of
from lcma.workbench.site.fronts import fewest_additions, front_plot, records
from lcma.workbench.site.heat import heat_maps
from lcma.workbench.site.listing import listing

from .pages import Page

pytest.importorskip("jinja2")

MAX_PAGE = 300_000


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_pages_are_balanced_small_labelled_and_every_link_leads_somewhere(site, every):
    folder, built = site
    paths = sorted((folder / "out").rglob("*.html"), key=lambda path: -path.stat().st_size)
    assert len(paths) == built.schemes + 2 > len(shipped_names())
    assert built.largest_page == paths[0].stat().st_size <= MAX_PAGE
    page_at = functools.cache(Page.at)
    for path in {*paths[::every], *(folder / "out").glob("*.html"), *(folder / "out/schemes").glob("2x[23]x*.html")}:
        page = page_at(path)
        assert len(page.ids) == len(set(page.ids))
        assert page.links
        for link in page.links:
            file, _, fragment = link.partition("#")
            if link.startswith("data:"):
                continue
            assert "//" not in link, "nothing from the network"
            goal = (path.parent / file).resolve() if file else path
            assert goal.is_file(), link
            if fragment:
                assert fragment in page_at(goal).ids, link
        assert all(values.get("scope") in ("col", "row") for values in page.of("th"))
        named = {values["id"] for tag, values in page.tags if tag in ("input", "select", "textarea")}
        assert named <= page.labels
        assert all("aria-label" in values or "aria-hidden" in values for values in page.of("svg"))
        assert len(page.of("h1")) == len(page.of("title")) == len(page.of("main")) == 1
        # Nor has a page what a hostile text would add.
        assert not page.of("img"), path
        assert not any(name.startswith("on") for _, values in page.tags for name in values), path
    listed = json.loads((folder / "out" / "lcma-site.json").read_text())["files"]
    assert listed == sorted(p.relative_to(folder / "out").as_posix() for p in (folder / "out").rglob("*.*"))


def test_hostile_texts_stay_texts(site):
    out = site[0] / "out"
    (page,) = [page for path in (out / "schemes").glob("2x3x4-*.html") if "alert(2)" in (page := Page.at(path)).text]
    assert "<script>alert(1)</script>\"'&</title><img src=x onerror=alert(2)>\ufffd\ufffd --> {{ 7 * 7 }}" in page.text
    assert page.of("script") == [{"src": "../static/site.js"}]
    assert "<" not in (out / "static" / "schemes.js").read_text()


def test_every_download_is_the_scheme_of_its_page(site):
    out = site[0] / "out" / "schemes"
    with Catalog.open(site[0] / "catalog.db") as catalog:
        rows = {row.stem: row for row in listing(catalog)}
    for stem, row in rows.items():
        names = re.findall(r'<a href="([^"]*)" download', (out / f"{stem}.html").read_text())
        assert len(names) >= (3 if row.entry.nonzeros <= 400 else 1)
        for file in map(out.joinpath, names):
            if row.entry.nonzeros <= 400 and file.suffix != ".v":  # Coq's proofs are not read back
                (reading,) = read_file(file, target=row.target, ring=parse_ring(row.entry.ring))
                assert row.entry.digest in {scheme.digest for _, scheme in reading.candidates}, file


def test_family_and_measurements_are_shown(site):
    out = site[0] / "out" / "schemes"
    strassen = Page.at(next(out.glob(f"*{lcma.resolve('strassen')[0].digest[:16]}.html")))
    assert "Others made from it" in strassen.text
    assert "by tensor product" in strassen.text
    assert "by a split" in strassen.text
    assert strassen.text.count("2 x 3 x 4, f") == 60
    assert "14.14 x" in strassen.text
    child = Page.at(next(out.glob("2x2x2-r9-*.html")))
    assert "ffffffffffffffff not in this catalogue" in child.text


def test_large_schemes_are_cut_and_say_so(site):
    (path,) = (site[0] / "out" / "schemes").glob("12x12x12*.html")
    page = Page.at(path)
    assert "of 1728 products. All of them are in lcma-json" in page.text
    shown = len([values for values in page.of("th") if values["scope"] == "row"])
    assert 50 < shown < 1728


def test_pictures_show_every_coefficient_with_its_value(site):
    def marks(text):
        return text.partition('id="products"')[2].partition("<tbody>")[2].partition("</tbody>")[0]

    out = site[0] / "out" / "schemes"
    strassen = lcma.resolve("strassen")[0]
    text = marks(next(out.glob(f"*{strassen.digest[:16]}.html")).read_text())
    assert text.count("<rect") == sum(factor.nnz for factor in strassen.factors)
    assert text.count('<rect class="n"') == sum(int((factor.values < 0).sum()) for factor in strassen.factors)
    assert "(a<sub>21</sub> + a<sub>22</sub>)(b<sub>11</sub>)" in text
    text = next(out.glob("2x2x2-r9-*.html")).read_text()
    assert marks(text).count("<rect") == 27
    assert "<title>a11: +2</title></rect><text" in text
    assert "<title>c11: -1/2</title>" in text
    assert "(2 a<sub>11</sub>)(b<sub>11</sub>)" in text
    assert "<li>c<sub>11</sub> = \u22121/2 m<sub>1</sub> + 2 m<sub>2</sub> + m<sub>" in text


def test_the_heat_map_takes_the_best_of_each_ring_in_any_order(tmp_path, keep, fractional):
    with Catalog.open(tmp_path / "c.db") as catalog:
        keep(catalog, fractional)
        keep(catalog, naive(parse_target("7x3x2")))
        cells = {heat.ring: heat.cells for heat in heat_maps(listing(catalog))}
    assert list(cells) == ["Z", "Q", "Z2"]
    assert set(cells["Z"]) == set(itertools.combinations_with_replacement(range(2, 17), 3))
    for ring, found in cells.items():
        assert found[2, 3, 7].ours.entry.target == "7x3x2"
        assert found[2, 3, 7].composed.how.startswith("sum")
        assert found[2, 3, 7].rank == found[2, 3, 7].composed.rank < found[2, 3, 7].ours.entry.rank == 42
        assert found[2, 3, 7].gap == found[2, 3, 7].rank - best_known(parse_target("2x3x7"), parse_ring(ring)).rank >= 0
        assert (found[2, 2, 2].gap, found[2, 2, 2].level) == (0, "g0")
        assert (found[2, 2, 2].composed, found[8, 8, 8].ours) == (None, None)
        assert found[8, 8, 8].composed.rank == (329 if ring == "Z2" else 343)
        assert found[8, 8, 8].label == f"product, best known {found[8, 8, 8].known.rank}"
    assert cells["Z2"][4, 4, 4].ours.entry.rank == 47 < cells["Z"][4, 4, 4].ours.entry.rank


@pytest.mark.slow
def test_two_builds_are_equal_and_a_site_is_replaced_whole(site, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "EVERY_FORMAT_LIMIT", 400)
    folder, _ = site
    out = tmp_path / "again"
    with Catalog.open(folder / "catalog.db") as catalog:
        build_site(out, catalog, results=site[0] / "rows")
        stale = out / "schemes" / "stale.html"
        listed = json.loads((out / "lcma-site.json").read_text())
        (out / "lcma-site.json").write_text(json.dumps({**listed, "files": [*listed["files"], "schemes/stale.html"]}))
        stale.write_text("of an older build")
        build_site(out, catalog, results=site[0] / "rows")
    assert [path.name for path in tmp_path.iterdir()] == ["again"]

    def contents(base):
        return {path.relative_to(base): path.read_bytes() for path in base.rglob("*") if path.is_file()}

    assert contents(out) == contents(folder / "out")


@pytest.mark.usefixtures("few_pages")
def test_a_folder_that_is_not_a_site_is_left_alone(run, tmp_path, home):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for out in ("mine", "file"):
        run.refused(3, out, "site", tmp_path / out)
    (tmp_path / "site").mkdir()  # an empty folder may become one
    run.ok("site", tmp_path / "site")
    (tmp_path / "site" / "notes.txt").write_text("dear")
    run.refused(3, "'notes.txt'", "site", tmp_path / "site")
    assert (tmp_path / "site" / "notes.txt").read_text() == (tmp_path / "mine" / "thesis.tex").read_text() == "dear"


@pytest.mark.usefixtures("few_pages")
def test_the_command_says_what_it_wrote_and_a_build_that_fails_leaves_it(run, tmp_path, home, monkeypatch):
    out = tmp_path / "site"
    told = run.json("site", out)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert told["files"] == len(files)
    assert told["bytes"] == sum(path.stat().st_size for path in files)
    assert Path(told["index"]).is_file()
    assert run.ok("site", out).startswith(f"{out / 'index.html'}: {told['schemes']} schemes, ")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "draw", full)
    code, _, err = run("site", out)
    assert (code, err.splitlines()[-1]) == (2, f"lcma: {out} can't be written: No space left on device")
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["site"]


def test_without_jinja2_one_line_says_what_to_install(run, tmp_path, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    run.refused(3, "pip install 'lcma[report]'", "site", tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.slow
def test_a_site_of_500_schemes_keeps_every_page_small(tmp_path, keep, monkeypatch):
    monkeypatch.setattr(build, "EVERY_FORMAT_LIMIT", 0)  # pages name the formats, or why there is no file
    with Catalog.open(tmp_path / "c.db") as catalog:
        for shape in sorted(itertools.product(range(1, 10), repeat=3), key=lambda shape: (math.prod(shape), shape))[
            :500
        ]:
            keep(catalog, naive(parse_target("x".join(map(str, shape)))))
        built = build_site(tmp_path / "out", catalog)
    assert built.schemes >= 500
    assert built.largest_page <= MAX_PAGE
    assert (tmp_path / "out" / "static" / "schemes.js").stat().st_size <= MAX_PAGE
    assert len([Page.at(path) for path in (tmp_path / "out").rglob("*.html")]) == built.schemes + 2


def test_the_index_has_all_formats_additions_fronts_and_records(site):
    page = Page.at(site[0] / "out" / "index.html")
    heat = [values.get("class", "").split() for values in page.of("td")]
    assert sum("composed" in names for names in heat) > 30
    assert not [names for names in heat if names == ["open"]], "every format has a scheme or a composition"
    with Catalog.open(site[0] / "catalog.db") as catalog:
        listed = listing(catalog)
        fewest = {one.row.label: one for one in fewest_additions(listed)}
        below = records(listed)
        assert all(row.certificate.proofs for row in below)
    assert (fewest["3x3x3"].shared, fewest["3x3x3"].known.shared, fewest["3x3x3"].level) == (55, 55, "g0")
    assert all(one.level == "none" for one in fewest.values() if one.row.entry.rank != one.known.rank)
    assert below
    assert all(row.cost < row.known_cost for row in below)
    page_of_records = (Path(lcma.__file__).parent / "docs" / "records.md").read_text()
    for row in [*below, *(one.row for one in fewest.values() if one.level == "record")]:
        assert row.entry.digest[:12] in page_of_records, row.entry.name
    plot = front_plot(listed)
    assert len(page.of("circle")) == len(plot.points) > 40
    for point in plot.points:
        assert 0 < point.share < 1.1
        assert plot.margin <= point.x <= plot.width - plot.margin
        assert plot.margin <= point.y <= plot.height - plot.margin
    assert front_plot([]) is None


def test_rows_of_benchmarks_are_on_the_page_of_the_scheme_that_they_name(site):
    (path,) = (path for path in (site[0] / "out").rglob("*.html") if "16 strips" in path.read_text())
    page = Page.at(path)
    assert "laderman" in page.text
    text = "".join(page.text.split())  # cells follow each other without a space
    assert "causal:QKfloat32250ms16strips:500ms<b>CPU2026-11-20" in text
    assert "precision:levelsanddtype2float325.4e-07errorclassical:2.5e-08aGPU" in text


def test_a_page_begins_with_origin_name_certificate_and_files(site):
    out = site[0] / "out" / "schemes"
    for name, origin in {
        "strassen": "Published: V. Strassen, Gaussian elimination",
        "2x2x3-r11": "Our own search: lcma search 2x2x3 --ring Z2",
        "3x3x3-r23-additions": "Our own search: ",
        "winograd": "Source: S. Winograd",
    }.items():
        digest = lcma.resolve(name)[0].digest
        text = next(out.glob(f"*{digest[:16]}.html")).read_text()
        places = [text.index(part) for part in (origin, "Its shortest name", 'id="certificate"', 'id="products"')]
        assert places == sorted(places)
        call = re.search(r"Its shortest name: <code>(.*?)</code>", text)[1]
        assert lcma.resolve(call)[0].digest == digest
        assert len(call) <= len(name)


def test_every_shipped_scheme_names_its_source_or_its_run():
    with Catalog.in_memory() as catalog:
        schemes = [catalog.find(entry.digest)[0] for entry in catalog.entries()]
    origins = [origin_of(scheme.provenance) for scheme in schemes]
    assert {heading for heading, _ in origins} == {"Published", "Source", "Our own search", "Origin"}
    assert not [text for _, text in origins if text in ("", "nothing was recorded", "our own search")]


def test_a_site_inside_documentation_links_to_it(site, tmp_path, few_pages):
    link = '">Documentation</a>'
    assert link not in (site[0] / "out" / "index.html").read_text()
    (tmp_path / "objects.inv").touch()
    with Catalog.in_memory() as catalog:
        build_site(tmp_path / "catalogue", catalog)
    assert f'href="../index.html{link}' in (tmp_path / "catalogue" / "index.html").read_text()
    for page in (tmp_path / "catalogue" / "schemes").glob("*.html"):
        assert f'href="../../index.html{link}' in page.read_text()


def test_provenance_is_shown_as_steps(site):
    page = Page.at(next((site[0] / "out" / "schemes").glob("5x5x5-r93-*.html")))
    assert "Repeat them: lcma show" in page.text
    assert "search" in page.text


def test_the_page_that_verifies_has_the_scripts_and_no_other(site):
    page = Page.at(site[0] / "out" / "verify.html")
    assert page.of("script") == [{"src": "static/verify.js"}, {"src": "static/verify_page.js"}]
    assert "noscript" in {tag for tag, _ in page.tags}
    assert "fetch(" not in (site[0] / "out" / "static" / "verify.js").read_text()
