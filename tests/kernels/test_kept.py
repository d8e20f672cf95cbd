"""Files for the next process: programs, the table of schemes; and estimates that were disturbed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import lcma
from lcma.kernels import Request, decision_for
from lcma.kernels.codegen import programs
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.programs import key_of, program_for, stored_program
from lcma.kernels.cpu import estimate
from lcma.kernels.dense import pool, pool_table
from lcma.kernels.dense.arrangements import levels_of
from lcma.kernels.dense.pool import SchemePool, scheme_pool
from lcma.kernels.dense.scheme_costs import costs_of
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.schemes_db import Z2
from lcma.schemes_db.shipped import kept_program, shipped
from lcma.schemes_db.straightline import program_of


@pytest.fixture
def forgetful(home, monkeypatch):
    """A home of its own, and forget(): as a new process, that has read nothing yet."""

    def forget() -> None:
        monkeypatch.setattr(programs, "_known", {})
        pool._stored.cache_clear()
        pool._from_catalogue.cache_clear()

    forget()
    yield forget
    pool._stored.cache_clear()
    pool._from_catalogue.cache_clear()


def test_a_stored_program_runs_its_scheme(forgetful):
    scheme = shipped("3x3x3-r23-additions").scheme
    (level,) = levels_of(scheme, 1)
    assert level[0] == kept_program("3x3x3-r23-additions")
    assert level[0].additions == 55 < program_of(scheme).additions
    # Its name alone gives no other scheme that program.
    other = shipped("3x3x3-r23").scheme.replace(name="3x3x3-r23-additions")
    assert program_for(other) == program_of(other)


def test_programs_are_stored_and_proven_when_they_are_read(forgetful, strassen, monkeypatch):
    made = program_for(strassen)
    path = programs._path(key_of(strassen))
    forgetful()
    with monkeypatch.context() as patch:
        patch.setattr(programs, "_made", None)
        assert program_for(strassen) == made
    assert maps_of(made) is maps_of(made.nested({}))
    text = path.read_text()
    for damage in ("", "[]", text[:-9], text.replace("[[1,", "[[-1,", 1)):
        forgetful()
        path.write_text(damage)
        assert stored_program(key_of(strassen), strassen.digest) is None
    assert program_for(strassen) == made
    assert path.read_text() == text


def test_keys_tell_apart_what_digests_do_not(classical, strassen):
    plain, scaled = classical("1x1x2"), classical("1x1x2", scale=3)
    assert plain.digest == scaled.digest
    assert len({key_of(scheme) for scheme in (plain, scaled, strassen, strassen.replace(ring=Z2))}) == 4


def test_the_table_of_schemes_serves_the_next_process(forgetful, monkeypatch):
    first = scheme_pool()
    forgetful()
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_from_catalogue", None)
        second = scheme_pool()
    assert second == replace(first, costs=second.costs)
    np.testing.assert_array_equal(second.costs.packed(), first.costs.packed())
    ours, theirs = (next(entry for entry in one.entries if entry.label == "3x2x2:11") for one in (first, second))
    assert theirs.factors[0].held is None
    assert theirs.scheme == ours.scheme
    assert theirs.program == program_of(ours.scheme)
    flat = next(entry for entry in second.entries if entry.is_flattened)
    assert flat.program.rank == flat.scheme.rank


def test_a_changed_catalogue_or_a_damaged_table_is_computed_again(forgetful, strassen):
    before = scheme_pool()
    stamp = pool_table.catalogue_stamp()
    turned = lcma.rotate(shipped("2x2x3-r11").scheme)
    with lcma.Catalog.open() as catalog:
        catalog.add(lcma.tensor(turned, turned), lcma.certify(lcma.tensor(turned, turned)))
    assert pool_table.catalogue_stamp() != stamp
    assert len(scheme_pool().entries) > len(before.entries)
    path = pool_table._path(pool_table.catalogue_stamp())
    good = json.loads(path.read_text())
    for damage in (
        "{",
        "[]",
        json.dumps({**good, "costs": good["costs"][:-1]}),
        json.dumps({**good, "entries": 7}),
        json.dumps({**good, "dominated": float("inf")}),
    ):
        path.write_text(damage)
        assert pool_table.read_table(pool_table.catalogue_stamp()) is None
    forgetful()
    assert len(scheme_pool().entries) == len(good["entries"])
    assert json.loads(path.read_text()) == good


def test_costs_of_two_levels_are_those_of_their_tensor_product(strassen):
    among = SchemePool.of([strassen])
    both = next(entry for entry in among.entries if entry.is_flattened)
    np.testing.assert_array_equal(among.costs.packed()[:, -1], costs_of(both.scheme).packed())


def rates(whole: float, tasks: float) -> Profile:
    rows = tuple(
        GemmRate("float32", size, size, size, rate, mode, "numpy")
        for size, slow in ((128, 0.5), (1024, 1.0))
        for rate, mode in ((slow * whole, "whole"), (slow * tasks, "tasks"))
    )
    return Profile("mine", "test", (), rows, 4e10, 5e10, (), None, "measured", 1e11)


def test_a_disturbed_estimate_is_made_again(monkeypatch):
    shares = iter([0.3, 0.0])
    monkeypatch.setattr(estimate.CpuLoadMonitor, "share", lambda self: next(shares))
    profiles = iter([rates(1e10, 9e10), rates(1e11, 1e11)])
    found, disturbed = estimate.undisturbed(lambda: next(profiles))
    assert (found, disturbed) == (rates(1e11, 1e11), False)


def test_a_slow_estimate_is_not_made_again(monkeypatch):
    monkeypatch.setattr(estimate.CpuLoadMonitor, "share", lambda self: 0.3)
    monkeypatch.setattr(estimate, "PATIENCE", 0.0)
    made = []
    found, disturbed = estimate.undisturbed(lambda: made.append(1) or rates(1e11, 1e11))
    assert (len(made), disturbed) == (1, True)
    assert "cautious estimate" in found.notes


def test_an_estimate_that_stays_disturbed_is_cautious_said_and_not_kept(home, machine_of, monkeypatch):
    from lcma.kernels.cpu import measure
    from lcma.kernels.planning.profiles import profiles_folder

    monkeypatch.setattr(estimate, "_ESTIMATES", {})
    monkeypatch.setattr(estimate.CpuLoadMonitor, "share", lambda self: 0.4)
    monkeypatch.setattr(measure, "measure", lambda dtypes, quick: rates(4e10, 2e11))
    found = estimate.profile_for(Request(4096, 4096, 4096))
    assert "cautious estimate" in found.notes
    assert "40%" in found.notes
    assert not list(profiles_folder().glob("*.json"))
    # Undoubted, these rates would promise a scheme six times the library's speed.
    among = SchemePool.of([shipped("strassen").scheme])
    naive_reading, careful = (
        decision_for(Request(4096, 4096, 4096), machine=machine_of(profile, 2, schemes=among))
        for profile in (rates(4e10, 2e11), found)
    )
    assert naive_reading.gain > 3
    assert 1 <= careful.gain < (8 / 7) ** 3


def test_others_are_seen(monkeypatch):
    from lcma.kernels.cpu import others

    busy = iter([10.0, 10.0 + 0.5 * 2.0 * (others.os.cpu_count() or 1)])
    monkeypatch.setattr(others, "_busy_seconds", lambda: next(busy))
    clock = iter([0.0, 2.0])
    monkeypatch.setattr(others.time, "perf_counter", lambda: next(clock))
    assert others.CpuLoadMonitor().share() == pytest.approx(0.5, abs=0.02)
