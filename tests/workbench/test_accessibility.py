"""No built page has a serious finding of axe-core, narrow or wide: `make accessibility` builds and checks them."""

import json
import os
from pathlib import Path

import pytest

import lcma

BUILT = Path(lcma.__file__).resolve().parent / "docs" / "_build" / "html"

FINDINGS = """axe.run({resultTypes: ["violations"]}).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)} (${one.nodes.length} of them)`))"""


@pytest.mark.parametrize("width", [400, 1400])
def test_no_page_has_a_serious_finding(browser, width):
    if "LCMA_AXE" not in os.environ:
        pytest.skip("LCMA_AXE does not name axe.min.js: make accessibility")
    axe = Path(os.environ["LCMA_AXE"]).read_text("utf-8")
    pages = sorted(BUILT.rglob("*.html"))
    assert pages
    found = {}
    for path in pages:
        browser.open(path, width)
        browser.js(f"{axe}; 0")
        wide = browser.js("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        if findings := [*browser.js(FINDINGS), *(["the page is wider than the window"] if wide else [])]:
            found[str(path.relative_to(BUILT))] = findings
    assert not found, json.dumps(found, indent=1)
