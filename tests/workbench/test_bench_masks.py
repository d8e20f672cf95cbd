"""The rows of `lcma bench masks`."""

import pytest

from lcma.errors import PlanError, VerificationError
from lcma.workbench.bench.case import Options
from lcma.workbench.bench.suites import masks


def test_rows_are_masks_by_seed_and_their_mean():
    keys = [case.key for case in masks.SUITE.cases(Options(sample=3, seed=5))]
    assert keys == ["mask 5", "mask 6", "mask 7", "mean"]
    for seed in range(6):
        rows = masks.drawn(seed).splitlines()
        assert {len(row) for row in rows} == {len(rows)} == {4 + seed % 2}
        assert set("".join(rows)) <= set("FLU.")
    with pytest.raises(PlanError, match="no mask has been searched"):
        masks.mean(masks._Session(), print)


@pytest.mark.slow
def test_a_row_is_what_the_command_leaves_in_its_catalogue(monkeypatch):
    monkeypatch.setattr(masks, "SECONDS", 2.0)
    session = masks._Session()
    figures = masks.searched(session, 0, lambda line: None)
    assert figures["certified"] <= figures["bound"] <= figures["own"]
    assert masks.mean(session, print) == {"masks": 1, "saved": figures["saved"]}
    monkeypatch.setattr(masks, "_kept_costs", lambda home, target: [1.0])
    with pytest.raises(VerificationError, match="its schemes have 1"):
        masks.searched(session, 0, lambda line: None)
