"""The static pages in headless Chromium: no errors, readable, and used from the keyboard."""

from pathlib import Path

import pytest

import lcma

from .chromium import script


@pytest.mark.parametrize("width", [1400, 400])
def test_no_page_has_an_error_or_is_wider_than_the_window(browser, site, width):
    for path in sorted((site[0] / "out").rglob("*.html")):
        browser.open(path, width)
        assert browser.js("innerWidth") == width
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        assert not browser.faults(), path
    assert browser.js("document.title")


@pytest.mark.parametrize("dark", [False, True])
def test_texts_are_large_and_have_contrast(browser, site, dark):
    out = site[0] / "out"
    for path in (out / "index.html", *sorted((out / "schemes").glob("4x4x4*.html"))):
        browser.open(path, 400, dark)
        assert browser.js(script("readable")) == [], path


def test_the_list_is_used_from_the_keyboard_alone(browser, site):
    browser.open(site[0] / "out" / "index.html")
    shown = "document.querySelectorAll('#list tbody tr').length"
    focus = "document.activeElement.id || document.activeElement.textContent"
    first, every = min(100, site[1].schemes), site[1].schemes
    assert browser.js(shown) == first
    if first < every:
        browser.js("document.getElementById('more').focus()")
        browser.press("Enter")
        assert browser.js(shown) == every
        browser.open(site[0] / "out" / "index.html")
    browser.press("Tab")
    assert browser.js(focus) == "Skip to the content"
    browser.press("/")
    assert browser.js(focus) == "q"
    for key in "eca-st":
        browser.press(key)
    assert browser.js("document.getElementById('count').textContent") == f"2 of {site[1].schemes} schemes."
    assert "q=eca-st" in browser.js("location.hash")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    second = browser.js("document.querySelectorAll('#list tbody a')[1].textContent")
    assert browser.js(focus) == second
    assert browser.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("ArrowUp")
    browser.press("ArrowUp")
    assert browser.js(focus) == "q"
    browser.press("Escape")
    assert browser.js(shown) == first
    browser.press("Tab")
    browser.press("Tab")
    browser.press("Z")  # a select takes the first letter of an option
    rings = "[...new Set([...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[2].textContent))]"
    assert browser.js("document.activeElement.id") == "ring"
    assert browser.js(rings) == ["Z"]
    browser.press("Tab")
    browser.press(" ")
    assert browser.js("document.getElementById('best').checked")
    # The list shows its first rows only: the filter is seen in what they are and in their number, not in how many show.
    over_z = [row for row in browser.js(script("rows")) if row["ring"] == "Z"]
    best = [row["page"] for row in over_z if row["best"]]
    assert 0 < len(best) < len(over_z)
    assert browser.js("document.getElementById('count').textContent") == f"{len(best)} of {every} schemes."
    links = "[...document.querySelectorAll('#list tbody a')].map((link) => link.getAttribute('href'))"
    assert browser.js(links) == best[:100]
    browser.press("/")
    browser.press("ArrowDown")
    wanted = browser.js("document.activeElement.href")
    assert not browser.faults()
    browser.events.clear()
    browser.press("Enter")
    browser.loaded()
    assert browser.js("location.href") == wanted
    assert not browser.faults()


def test_sorting_and_rings_are_switched_from_the_keyboard(browser, site):
    browser.open(site[0] / "out" / "index.html")
    browser.js("document.querySelectorAll('#list thead button')[3].focus()")
    ranks = "[...document.querySelectorAll('#list tbody tr')].map((row) => Number(row.cells[3].textContent))"
    browser.press("Enter")
    assert browser.js(ranks) == sorted(browser.js(ranks))
    browser.press("Enter")
    assert browser.js(ranks) == sorted(browser.js(ranks), reverse=True)
    assert browser.js("document.querySelectorAll('#list th')[3].ariaSort") == "descending"
    browser.js("document.getElementById('ring-0').focus()")
    visible = "[...document.querySelectorAll('.slabs')].map((map) => getComputedStyle(map).display)"
    assert browser.js(visible) == ["flex", "none", "none"]
    browser.press("ArrowRight")
    assert browser.js(visible) == ["none", "flex", "none"]


def test_an_address_keeps_the_filter(browser, site):
    browser.open(site[0] / "out" / "index.html")
    browser.call("Page.navigate", url=(site[0] / "out" / "index.html").as_uri() + "#?q=strassen&ring=Z2")
    browser.js("new Promise((resolve) => setTimeout(resolve, 50))")
    assert browser.js("document.getElementById('count').textContent").startswith("0 of ")


def test_a_scheme_is_verified_in_the_page_from_the_keyboard(browser, site):
    browser.open(site[0] / "out" / "verify.html", 400)
    verdict = "document.getElementById('verdict').textContent"
    assert browser.js(verdict) == ""
    browser.js("document.getElementById('text').focus()")
    browser.press("Tab")
    assert browser.js("document.activeElement.type") == "submit"
    browser.press("Enter")
    assert browser.js(verdict).startswith(
        "OK 2x2x2 rank 7 over Z (exact, 64 equations) (equations, third factor by C, "
    )
    browser.js("document.getElementById('text').value = document.getElementById('text').value.replace('m3 + m5', 'm3')")
    browser.press("Enter")
    assert browser.js(verdict).startswith(
        "FAIL 2x2x2 rank 7 over Z: 2 of 64 equations fail; coefficient of A[1,1] B[2,2]"
    )
    browser.js("document.getElementById('text').value = 'nothing'")
    browser.press("Enter")
    assert browser.js(verdict).startswith("Not read: line 1")
    assert not browser.faults()


@pytest.mark.parametrize("width", [1400, 400])
def test_every_link_and_button_is_reached_by_tab(browser, site, width):
    out = site[0] / "out"
    for path in (out / "index.html", out / "verify.html", min((out / "schemes").glob("4x4x4*.html"))):
        browser.open(path, width)
        count = browser.js(script("links"))
        reached = set()
        for _ in range(count + 40):  # radio groups, selects and scrolling regions have a stop too
            browser.press("Tab")
            reached.add(browser.js("window.LINKS.indexOf(document.activeElement)"))
        missed = [number for number in range(count) if number not in reached]
        assert not missed, (path, browser.js(f"window.LINKS[{missed[0]}].outerHTML"))


def test_pages_say_all_but_the_list_without_scripts(browser, site):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        for path in sorted((site[0] / "out").glob("*.html")):
            browser.open(path, 400)
            assert browser.js("document.querySelectorAll('main a[href], main noscript').length") > 0, path
            assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
            hidden = "[...document.querySelectorAll('noscript')].filter((note) => !note.getClientRects().length).length"
            assert browser.js(hidden) == 0, path
            assert not browser.faults(), path
        browser.open(site[0] / "out" / "index.html", 400)
        wanted = {path.name for path in (site[0] / "out" / "schemes").glob("*.html")}
        linked = browser.js(
            "[...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href').split('/').pop())"
        )
        assert wanted & set(linked)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


DOCS = Path(lcma.__file__).resolve().parent / "docs" / "_build" / "html"


@pytest.mark.skipif(not (DOCS / "index.html").exists(), reason="the documentation is not built: make docs")
@pytest.mark.parametrize("width", [1400, 400])
def test_the_documentation_has_no_error_and_fits_the_window(browser, width):
    for page in ("index", "get-started/search", "searching", "generated/cli/search", "benchmarks/causal", "records"):
        path = DOCS / f"{page}.html"
        browser.open(path, width)
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        small = "[...document.querySelectorAll('article p, article li, article td')].filter((element) => "
        small += "element.getClientRects().length && parseFloat(getComputedStyle(element).fontSize) < 14).length"
        assert browser.js(small) == 0, path
        assert path.stat().st_size < 500_000
        assert not browser.faults(), path
