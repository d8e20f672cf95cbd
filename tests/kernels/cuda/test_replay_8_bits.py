"""Prices and choices on an H200 against the committed rows of int8 and fp8 products: docs/results/gpu-cuda.jsonl."""

import statistics
from functools import cache

import pytest

pytest.importorskip("triton")

from lcma.kernels import Layout, Request, decision_for
from lcma.kernels.dense.packed import vendor_stages
from lcma.workbench.bench.gpu_8_bits import ANY_ENTRY, BY_ROWS, COPIED, MAX_ABS, PRODUCTS, VENDOR

from ..gpu import H200, measured_rows

FORMS = {"by rows": "", "by columns": ", B by columns", "offline": ", offline"}
"""The suffix of a figure by how B is given: stored by rows, by columns, or prepared."""

SLOW_CHECK = "by columns"
"""Rows of this form with a check of the entries were measured when torch copied B before it took its extremes."""


@cache
def measured(kind):
    """Seconds of every contender by the sizes of a row."""
    found = {}
    for row in measured_rows("gpu-cuda.jsonl"):
        first, _, sizes = row["key"].partition(" ")
        if first == kind:
            figures = row["figures"].items()
            seconds = {name.removesuffix("_ms"): one / 1e3 for name, one in figures if name.endswith("_ms")}
            if kind == "int8":
                seconds.setdefault(COPIED, derived_copy(seconds))
            found[sizes] = seconds
    return found


def derived_copy(seconds):
    """Seconds of torch's product with a copy of B to columns, which these rows lack.

    That of a B by columns, and what the same copy added to our product.
    """
    return seconds[VENDOR] + seconds["int8 unchecked"] - seconds["int8 unchecked, B by columns"]


def int8_request(sizes, form, checked):
    m, k, n = map(int, sizes.split("x") if "x" in sizes else [sizes] * 3)
    layouts = (Layout.ROWS, Layout.ROWS if form == "by rows" else Layout.COLUMNS, Layout.ROWS)
    return Request(
        *(m, k, n, "int8"),
        device="cuda",
        layouts=layouts,
        static="B" if form == "offline" else None,
        max_abs=MAX_ABS if checked else ANY_ENTRY,
    )


def fp8_request(sizes):
    return Request(*map(int, sizes.split("x")), "bfloat16", device="cuda", static="B", precision="fp8")


def int8_seconds(request):
    return decision_for(request, strategy="int8", machine=H200).plan.seconds


def test_every_row_is_replayed_and_the_vendors_product_copies_b_at_its_price():
    assert list(measured("int8")) == ["2048", "4096", "8192", "16384", *(f"{m}x4096x11008" for m in (16, 256, 4096))]
    assert sorted(measured("fp8")) == sorted("x".join(map(str, one.sizes)) for one in PRODUCTS if one.dtype == "fp8")
    for sizes, seconds in measured("int8").items():
        plan = decision_for(int8_request(sizes, "by rows", checked=False), strategy="vendor", machine=H200).plan
        assert plan.stages[0].name == "Copy B", sizes
        assert seconds[COPIED] < seconds[BY_ROWS]
        assert 0.9 <= plan.seconds / seconds[COPIED] <= 1.1, sizes


@pytest.mark.parametrize("form", FORMS)
def test_auto_takes_the_int8_product_that_was_measured_fastest(form):
    """torch's and ours without a check of the entries, which both would need."""
    for sizes, seconds in measured("int8").items():
        chosen = decision_for(int8_request(sizes, form, checked=False), machine=H200).plan.candidate.strategy
        names = {"vendor": COPIED if form == "by rows" else VENDOR, "int8": f"int8 unchecked{FORMS[form]}"}
        fastest = min(seconds[name] for name in names.values())
        assert seconds[names[chosen]] == fastest, (sizes, chosen)


def check_ratios(ratios, count, within, missed):
    """Predicted over measured seconds: how many there are, the range of all but those that are missed, the median."""
    assert len(ratios) == count
    assert [key for key, ratio in ratios.items() if not within[0] <= ratio <= within[1]] == missed
    assert statistics.median(ratios.values()) == pytest.approx(1, abs=0.02)


def test_prices_of_int8_products():
    ratios = {}
    for sizes, seconds in measured("int8").items():
        for form, suffix in FORMS.items():
            unchecked = int8_request(sizes, form, checked=False)
            name = BY_ROWS if form == "by rows" else VENDOR
            in_place = vendor_stages(unchecked, H200.costs, copies=False)
            ratios[sizes, name] = sum(stage.seconds for stage in in_place) / seconds[name]
            ratios[sizes, f"int8 unchecked{suffix}"] = int8_seconds(unchecked) / seconds[f"int8 unchecked{suffix}"]
    # The rounds of the missed one scatter by 20%: without its check it took longer than with it.
    check_ratios(ratios, 35, (0.95, 1.1), [("16384", "int8 unchecked, offline")])


def test_prices_of_the_check():
    ratios = {
        (sizes, f"int8{suffix}"): int8_seconds(int8_request(sizes, form, checked=True)) / seconds[f"int8{suffix}"]
        for sizes, seconds in measured("int8").items()
        for form, suffix in FORMS.items()
        if form != SLOW_CHECK
    }
    # The host waits 120 to 250 us longer than for other sizes of these bytes.
    longer = [("4096", "int8"), ("4096x4096x11008", "int8"), ("4096x4096x11008", "int8, offline")]
    check_ratios(ratios, 14, (0.88, 1.13), longer)


def test_prices_and_choices_of_products_in_e4m3():
    for sizes, seconds in measured("fp8").items():
        chosen = decision_for(fp8_request(sizes), machine=H200).plan.candidate.strategy
        took = {"vendor": seconds["bfloat16"], "fp8-vendor": seconds["fp8-vendor"]}
        assert took[chosen] <= 1.1 * min(took.values()), (sizes, chosen)
    ratios = [
        decision_for(fp8_request(sizes), strategy="fp8-vendor", machine=H200).plan.seconds / seconds["fp8-vendor"]
        for sizes, seconds in measured("fp8").items()
    ]
    assert len(ratios) == 8
    assert 0.96 <= min(ratios) <= max(ratios) <= 1.25
    assert statistics.median(ratios) == pytest.approx(1.08, abs=0.02)
