"""Strategies of other packages: registered, considered, chosen, run, and gone again."""

from dataclasses import dataclass

import numpy as np
import pytest

import lcma
from lcma.kernels import (
    Candidate,
    Proposal,
    Request,
    Stage,
    api,
    decision_for,
    register_strategy,
    strategies,
    unregister_strategy,
)

from ...refusal import refuses


class Sevens:
    """An executor that writes sevens, so that its product is recognised."""

    workspace = 0

    def run(self, a, b, out=None):
        out = np.empty((a.shape[-2], b.shape[-1]), a.dtype) if out is None else out
        out[...] = 7
        return out


@dataclass(frozen=True)
class Plugin:
    """A strategy that says it is faster than every other one."""

    reluctance: str | None = None
    device: str = "cpu"
    family: str = "dense"
    name: str = "plugin"
    baseline: bool = False

    def propose(self, request, machine):
        return [Proposal(1e-12, Candidate(self.family, self.name))] if request.is_dense else []

    def candidates_of(self, source):
        yield Candidate(self.family, self.name, source)

    def restore(self, key, parameters, request):
        return Candidate(self.family, self.name)

    def can_run(self, candidate, request, machine):
        return self.reluctance

    def predict(self, candidate, request, machine):
        return [Stage("magic", 0, 0, 1e-12)]

    def workspace(self, candidate, request, machine):
        return 0

    def build(self, candidate, request, machine):
        return Sevens()


def test_a_registered_strategy_is_chosen_and_run_by_auto_and_gone_again(registered, flat_rates, monkeypatch):
    monkeypatch.setattr(api, "SMALL", 0)
    a = np.random.default_rng(0).standard_normal((20, 20))
    np.testing.assert_array_equal(lcma.matmul(a, a), a @ a)
    plugin = registered(Plugin())
    assert (lcma.matmul(a, a) == 7).all()  # the plans of before are dropped
    found = decision_for(Request.of(a, a))
    assert found.plan.strategy is plugin
    assert (found.plan.label, found.reason) == ("plugin", "fastest by prediction")
    assert (lcma.matmul(a, a, strategy="plugin") == 7).all()
    np.testing.assert_array_equal(lcma.matmul(a, a, strategy="vendor"), a @ a)
    unregister_strategy(plugin)
    np.testing.assert_array_equal(lcma.matmul(a, a), a @ a)
    refuses("'plugin' is not known", lcma.matmul, a, a, strategy="plugin")


def test_a_strategy_that_cannot_run_a_request_says_why(registered, strassen):
    plugin = registered(Plugin("never on a Monday"))
    assert strategies("cpu")["dense", "plugin"] is plugin
    assert ("dense", "plugin") not in strategies("cuda")
    assert ("plugin 2x2x2:7", "never on a Monday") in decision_for(Request(8, 8, 8), strassen).refused
    free = decision_for(Request(8, 8, 8))
    assert free.is_baseline
    assert ("plugin", "never on a Monday") in free.refused
    refuses("never on a Monday", decision_for, Request(8, 8, 8), strategy="plugin")


def test_a_namesake_replaces_a_strategy_of_the_package(registered, monkeypatch):
    own = strategies("cpu")["dense", "scheme"]
    mine = registered(Plugin(name="scheme"))
    assert strategies("cpu")["dense", "scheme"] is mine
    unregister_strategy(mine)
    assert strategies("cpu")["dense", "scheme"] is own


def test_what_is_no_strategy_is_refused():
    refuses("object is not a strategy: it needs device, family, name", register_strategy, object())


@pytest.mark.parametrize(("strategy", "reason"), [
    ("strips", "dense strategy 'strips' is not known; choose one of scheme, vendor"),
    ("fastest", "dense strategy 'fastest' is not known; choose one of"),
    ("padded", "strategy 'padded' is one of device cuda, not of cpu; choose one of dense, "),
])  # fmt: skip
def test_a_strategy_without_a_candidate_is_refused_by_name(strategy, reason):
    refuses(reason, lcma.matmul, np.ones((8, 8)), np.ones((8, 8)), strategy=strategy)
