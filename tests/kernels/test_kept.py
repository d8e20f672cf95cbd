"""Files for the next process: programs, the table of schemes; and the load of other processes."""

import json
from dataclasses import replace

import numpy as np
import pytest

import lcma
from lcma.kernels.codegen import programs
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.programs import key_of, program_for, stored_program
from lcma.kernels.cpu import others
from lcma.kernels.dense import pool, pool_table
from lcma.kernels.dense.arrangements import levels_of
from lcma.kernels.dense.pool import SchemePool, scheme_pool
from lcma.kernels.dense.scheme_costs import costs_of
from lcma.kernels.planning.cache import plan_cache
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
    inner = text.replace('"inner":{}', f'"inner":{{"full":{text}}}')
    half = text.replace('"full"', '"half-out"', 1)
    deep = "[" * 100_000 + "]" * 100_000
    levels = text.removesuffix("{}}") + '{"full":'
    deep_levels = levels * 300 + text + "}}" * 300
    damages = ("", "[]", text[:-9], text.replace("[[1,", "[[-1,", 1), inner, half, deep, deep_levels)
    assert inner != text != half
    for damage in damages:
        forgetful()
        path.write_text(damage)
        assert stored_program(key_of(strassen), strassen.digest) is None
        plan_cache.clear()
        np.testing.assert_allclose(lcma.matmul(np.eye(6), np.ones((6, 6)), strassen), np.ones((6, 6)))
    assert program_for(strassen) == made
    assert path.read_text() == text


def test_keys_tell_apart_what_digests_do_not(classical, strassen):
    plain, scaled = classical("1x1x2"), classical("1x1x2", scale=3)
    assert plain.digest == scaled.digest
    assert len({key_of(scheme) for scheme in (plain, scaled, strassen, strassen.replace(ring=Z2))}) == 4


def test_the_table_of_schemes_serves_the_next_process_until_it_is_damaged_or_the_catalogue_changed(
    forgetful, monkeypatch
):
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
    stamp = pool_table.catalogue_stamp()
    turned = lcma.rotate(shipped("2x2x3-r11").scheme)
    with lcma.Catalog.open() as catalog:
        catalog.add(lcma.tensor(turned, turned), lcma.certify(lcma.tensor(turned, turned)))
    assert pool_table.catalogue_stamp() != stamp
    assert len(scheme_pool().entries) > len(first.entries)
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


def test_others_are_seen(monkeypatch):
    busy = iter([10.0, 10.0 + 0.5 * 2.0 * (others.os.cpu_count() or 1)])
    monkeypatch.setattr(others, "_busy_seconds", lambda: next(busy))
    clock = iter([0.0, 2.0])
    monkeypatch.setattr(others.time, "perf_counter", lambda: next(clock))
    assert others.CpuLoadMonitor().share() == pytest.approx(0.5, abs=0.02)
