"""Margins and limits: each rests on a measurement, and the strictest that applies counts."""

import math
import re

from lcma.kernels import Candidate, Machine, Profile, Request, Stage, strategies
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.planning.limits import CHECKED, MARGINS, exceeds_kept, margin, margins_text, memory_shortage, refusal
from lcma.kernels.plans import families
from lcma.kernels.precision import fields_of

from ..cases import each

NONE = Profile("none", "test")


def test_every_margin_says_what_it_rests_on_and_every_family_has_one():
    for entry in MARGINS:
        assert entry.device in families.DEVICES
        assert set(entry.families) <= {family for family, _ in strategies(entry.device)}
        assert 0.85 <= entry.part < 1
        (percent,) = re.findall(r"^(\d+)%", entry.text)
        assert int(percent) == round(100 * (1 - entry.part))
        assert len(entry.measured.split()) >= 4, entry
        assert any(word in entry.measured for word in ("lcma bench", "lcma time", "H200"))
    for device in families.DEVICES:
        for family, _ in strategies(device):
            request = Request(64, 64, 64, device=device)
            assert margin(family, request, []) < 1, (device, family)
            assert "%" in margins_text(device, family)


@each("device, dtype, sizes, product, part", __file__, "margins")
def test_the_strictest_margin_counts(device, dtype, sizes, product, part):
    request = Request(*sizes, **fields_of(dtype), device=device)
    assert margin("dense", request, [Stage("products", 1, 1, 1, (2048, 2048, product))]) == part
    assert margin("of another package", request, []) == 1.0


def test_limits_are_refused_with_their_numbers():
    machine = Machine("cpu", NONE, CpuCostModel(NONE), kept_bytes=1e6)
    assert memory_shortage(CHECKED, lambda: 100.0) == f"needs {CHECKED} bytes of workspace, and 100 are free"
    assert memory_shortage(CHECKED - 1, lambda: 0.0) is None
    assert memory_shortage(1 << 40, lambda: math.inf) is None
    assert exceeds_kept(2_000_000, machine) == "2.0 MB of workspace exceed the 1.0 MB kept between calls"
    assert exceeds_kept(1_000_000, machine) is None
    machine, vendor = Machine("cpu", NONE, CpuCostModel(NONE)), strategies("cpu")["dense", "vendor"]
    candidate = Candidate("dense", "vendor")

    def refused(**limits):
        return refusal(vendor, candidate, Request(100, 100, 100, **limits), machine, machine.free_bytes)

    assert refused() == (None, 0)
    # The classical product's own bound is k times the unit roundoff of float32.
    assert refused(max_error=100 * 2.0**-24) == (None, 0)
    reason, _ = refused(max_error=99 * 2.0**-24)
    assert reason.startswith("its error can reach 6e-06")
