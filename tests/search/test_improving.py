"""Turns of `lcma improve` on a processor and, by the twin, on a GPU: routes to a format, descents, storage."""

import itertools
import json
import re
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from lcma.schemes_db import Z2, Q, Z, parse_target
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.shipped import shipped
from lcma.search.flipgraph.gpu.fleet import Fleet
from lcma.search.format_moves.symmetric import symmetric_starts
from lcma.search.improve import catalogue, collect, descents, history
from lcma.search.improve.catalogue import CatalogueUpdater
from lcma.search.improve.collect import collect_below
from lcma.search.improve.descents import Descents
from lcma.search.improve.events import Control, Kept, TurnBegun
from lcma.search.improve.folder import ImproveConfig
from lcma.search.improve.gaps import Gap, is_walkable
from lcma.search.improve.history import KEEN_SECONDS, Choice, symmetric_routes
from lcma.search.improve.neighbours import routes
from lcma.search.lifting.lift import Lift, lift
from lcma.search.lifting.ternary import after_flips
from lcma.verify import certify
from lcma.workbench.commands.improve import kept_line

from ..refusal import refuses
from .starts import fleet_of, naive, scheme


def turns_with(known, ring="Z", seed=0, device="twin", on_event=lambda event: None, **options):
    """The turns of an improvement with a catalogue."""
    config = ImproveConfig(ring=ring, seed=seed, device=device, command="a command")
    return Descents(known, Control(config, on_event=on_event), **options)


def blocks_of(shape):
    return naive("x".join(map(str, shape)))


def gap_of(name, rank, known):
    return Gap(parse_target(name), rank, known)


class Known:
    """A catalogue with the schemes that `pool` returns for a shape; it lists the finds that it is given."""

    def __init__(self, pool=lambda shape: [], over=Z, rank=25):
        self.over, self.taken, self._pool, self._rank = over, [], pool, rank

    def pool(self, shape, composed=True):
        return self._pool(shape)

    def rank(self, ring, shape):
        return min([self._rank, *(scheme.rank for scheme in self.taken)])

    def take(self, scheme, certificate):
        self.taken.append(scheme)


def begun(events):
    """The routes of the turns among some events."""
    return [event.route for event in events if isinstance(event, TurnBegun)]


class Always:
    """A history that chooses one route and policy."""

    def __init__(self, *choice):
        self.choice = Choice(*choice)

    def choose(self, *_):
        return self.choice


def test_a_turn_with_a_keen_selection_is_short_and_starts_afresh(home, monkeypatch):
    began, turns, gap = [], [], gap_of("3x3x3", 25, 23)

    def walked(fleet, highest, *, seconds, longest, **_):
        turns.append((seconds, longest))
        fleet.launch(20_000)
        return {}

    def fleet_of(self, starts, policy, seed, walk):
        began.append(len(starts))
        return Fleet(starts, policy, seed=seed, walkers=4, device="cpu")

    monkeypatch.setattr(descents, "collect_below", walked)
    monkeypatch.setattr(descents, "WANTED", 0)
    monkeypatch.setattr(Descents, "_gpu_fleet", fleet_of)
    known = Known(lambda shape: [] if shape == (3, 3, 3) else [blocks_of(shape)])
    found = turns_with(known)
    for tried in range(4):
        found.turn(gap, tried, 60.0, history=Always("border", "keen"), longest=90.0)
    assert turns == [(KEEN_SECONDS, 2 * KEEN_SECONDS)] * 4
    assert len(set(began)) == 1  # the lowest of earlier turns are no starts
    found.turn(gap, 4, 60.0, history=Always("border", ""), longest=90.0)
    assert turns[-1] == (60.0, 90.0)
    assert began[-1] > began[0]
    assert known.taken == []


@pytest.mark.parametrize(
    ("name", "names"),
    [
        *(("3x3x3", []), ("2x3x4", []), ("2x5x6", ["nested", "reversal"])),
        *(("5x5x5", ["symmetry", "nested", "reversal"]), ("5x5x6", ["nested"])),
    ],
)
def test_formats_beyond_the_easy_ones_have_symmetric_routes(monkeypatch, name, names):
    monkeypatch.setattr(descents, "symmetric_starts", partial(symmetric_starts, most=1))
    target = parse_target(name)
    found = turns_with(Known())._symmetric_routes(target)
    assert [route.name for route in found] == names
    for start in (start for route in found for start in route.starts):
        assert start.target == target
        certify(start)


@contextmanager
def unknown(name, ring, told):
    """An updater of the catalogue that knows no rank of a format but by composition; it tells what it keeps."""
    with CatalogueUpdater(ring, 1, told.append) as updater:
        for ranks in updater.ranks.values():
            del ranks[parse_target(name).shape]
        yield updater


@pytest.mark.slow
def test_turns_are_recorded_and_dead_ends_end_an_improvement(home, monkeypatch, run):
    arguments = ["improve", "3x5x6", "--time", "2s", "--device", "twin"]
    monkeypatch.setattr(descents, "WANTED", 0)
    run(*arguments)
    with Catalog.open() as catalog:
        runs = catalog.runs()
    assert runs
    assert all(run.target == "3x5x6" and run.route and run.flips and run.rank >= run.reached > 0 for run in runs)
    monkeypatch.setattr(history, "DEAD_END", 0.0)
    code, out, err = run(*arguments, "--json")
    assert code == 1
    assert "3x5x6 stays at rank 69, best known 68: every route had half an hour in vain" in err
    found = json.loads(out)
    assert (found["exhausted"], bool(found["closed"])) == (["3x5x6"], False)


def routes_to(name, *known, **options):
    """The routes to a format from stored schemes."""
    pools = {}
    for one in known:
        pools.setdefault(tuple(sorted(one.target.shape)), []).append(one)
    return routes(parse_target(name), lambda shape: pools.get(shape, []), np.random.default_rng(0), **options)


@pytest.mark.parametrize("ternary", [False, True])
def test_the_ways_to_a_format_are_exact_and_near_the_least(ternary):
    found = routes_to("2x3x4", *map(scheme, ("2x3x3", "2x2x3", "laderman", "2x3x4")), ternary=ternary)
    assert [way.name for way in found] == ["own", "border", "sum"]
    assert [min(start.rank for start in way.starts) for way in found] == [20, 21, 22]
    for way in found:
        assert len({start.digest for start in way.starts}) == len(way.starts)
        for start in way.starts[:6]:
            certify(start)
            assert start.target.shape == (2, 3, 4)
            assert (start.ring, start.ternary) == (Z, True) if ternary else start.ring == Z2


def test_one_way_is_a_cut_of_a_larger_format():
    (cuts,) = (way for way in routes_to("2x3x3", scheme("laderman")) if way.name == "cut")
    assert {start.target.shape for start in cuts.starts} == {(2, 3, 3)}
    certify(cuts.starts[0])


def test_halves_that_are_one_scheme_stand_side_by_side():
    (way,) = routes_to("2x2x4", scheme("strassen"), scheme("winograd"))
    assert (way.name, {start.rank for start in way.starts}) == ("sum", {14})
    shared = []
    for start in way.starts:
        certify(start)
        left = {tuple(row) for row in start.u.dense.reshape(14, -1).tolist()}
        shared.append(14 - len(left))
    assert sorted(shared)[-2:] == [7, 7]


def test_a_descent_goes_on_below_its_finds():
    fleet = fleet_of()
    np.testing.assert_array_equal(fleet.ranks(), 27)
    finds = []
    found = collect_below(
        fleet,
        25,
        steps=1000,
        seconds=20,
        count=3,
        on_find=lambda scheme, certificate: finds.append((scheme.rank, certificate.digest)),
        enough=lambda: finds and min(finds)[0] <= 23,
    )
    assert sum(found.values()) == len(finds) == len(set(finds))
    assert {rank for rank, _ in finds} == set(found) >= {23, 24}
    assert max(found.values()) == 3
    ranks = fleet.ranks()
    assert [fleet.scheme(walker, current=True).rank for walker in range(8)] == ranks.tolist()


@pytest.mark.parametrize(
    ("falls", "longest", "launches"),
    [
        ((), 100, 10),  # no fall: the time of a turn
        ((4,), 100, 10),
        ((6, 11, 21), 100, 42),  # the last fall at the middle of all
        ((6, 11, 21), 30, 30),
        ((6,), 0, 10),
    ],
)
def test_a_turn_goes_on_while_its_ranks_fall(monkeypatch, falls, longest, launches):
    clock = SimpleNamespace(perf_counter=lambda: float(fleet.launches))
    monkeypatch.setattr(collect, "time", clock)

    def launch(steps):
        fleet.launches += 1
        fleet.score -= fleet.launches in falls

    fleet = SimpleNamespace(
        launches=0, flips=0, walkers=3, score=np.full(3, 27), launch=launch, target=parse_target("3x3x3")
    )
    assert collect_below(fleet, 20, steps=1, seconds=10, longest=longest) == {}
    assert fleet.launches == launches


def test_a_turn_by_triples_keeps_integral_schemes(home):
    kept_events, said = [], []
    with unknown("2x4x4", Z, kept_events) as updater:
        gap = gap_of("2x4x4", updater.rank("Z", (2, 4, 4)), 26)
        assert gap.rank == 28
        record = turns_with(updater, seed=1, device="cpu", on_event=said.append).turn(gap, 0, 30.0)
    assert begun(said) == ["2x4x4: by triples"]
    assert (record.route, record.reached, record.start) == ("triples", 26, 32)
    found = kept_events[-1].scheme
    assert (found.rank, found.ring, found.provenance.relation) == (26, Z, "annealing of Strassen triples")


def test_routes_without_walks_on_the_flip_graph(home):
    stored = [shipped(name).scheme for name in ("strassen", "2x2x3-r11", "2x2x4-r14", "2x3x4-r20")]

    def others(name, rank, ring=Z):
        known = Known(lambda shape: [scheme for scheme in stored if scheme.target.shape == shape], ring)
        return turns_with(known, ring.name, device="cpu")._other_routes(gap_of(name, rank, 1), 0)

    assert list(others("2x2x4", 15)) == ["triples"]
    assert list(others("2x2x4", 15, Q)) == ["triples", "least squares"]
    grouped = others("4x6x16", 277)["groups"]
    assert re.fullmatch(r"groups of \dx\dx\d over \dx\dx\d from rank 2[78]\d", grouped.name)
    assert "groups" not in others("4x6x16", 150)
    assert "groups" not in others("4x6x16", 277, Z2)


def test_a_format_without_a_stored_scheme_is_walked_to_by_a_border_first(home):
    said = []

    class Composed(Known):
        def pool(self, shape, composed=True):
            if shape == (2, 2, 2):
                return [shipped("strassen").scheme]
            return [naive("2x2x3", "flip-zt")] if composed and shape == (2, 2, 3) else []

    known = Composed(rank=12)
    walks = turns_with(known, "ZT", 1, "cpu", said.append)
    record = walks.turn(gap_of("2x2x3", 12, 11), 0, 20.0)
    assert (record.route, record.start, record.reached) == ("border", 11, 11)
    assert begun(said) == ["2x2x3: by border from rank 11, starts: 1"]
    assert {scheme.rank for scheme in known.taken} == {11}


def test_ternary_routes_leave_schemes_modulo_2_out_and_others_even_denominators():
    quarters, strassen = scheme("3x3x6-r40"), scheme("strassen").over_z2()
    assert quarters.denominators == (1, 1, 4)
    for ternary, ring in ((True, Z), (False, Z2)):
        found = routes_to("3x3x7", quarters, scheme("3x3x6-r42"), strassen, ternary=ternary)
        assert {start.ring for route in found for start in route.starts} == {ring}
    assert routes_to("2x2x3", strassen, ternary=True) == []


def test_compositions_of_an_improvement_over_z_have_no_fractions(home):
    # 3x3x12 is 3x3x6:40 twice over Q.
    with CatalogueUpdater(Z, 1) as updater:
        (start,) = updater.pool((3, 3, 12))
        assert (start.rank, start.ring) == (updater.rank("Z", (3, 3, 12)), Z)


def test_walks_modulo_2_hold_formats_of_any_size_up_to_500_products():
    held = {name: is_walkable(parse_target(name)) for name in ("8x8x8", "4x9x10", "9x9x9", "9x10x10", "16x16x16")}
    assert held == {"8x8x8": True, "4x9x10": True, "9x9x9": True, "9x10x10": False, "16x16x16": False}
    assert not is_walkable(parse_target("4x9x10"), ternary=True)
    assert symmetric_routes(parse_target("9x9x9")) == []
    (own,) = routes_to("2x34x2", scheme("strassen*naive:1x17x1"), scheme("naive:2x34x2"), most=120)
    assert [start.rank for start in own.starts] == [119]


@pytest.mark.parametrize("device", ["cpu", "twin"])
def test_a_turn_keeps_what_improves_the_catalogue(home, monkeypatch, device):
    kept_events = []
    monkeypatch.setattr(CatalogueUpdater, "pool", lambda self, shape, composed=True: [blocks_of(shape)])
    monkeypatch.setattr(descents, "WANTED", 0)
    monkeypatch.setattr(descents, "has_triples", lambda target: False)
    with unknown("2x3x3", Z2, kept_events) as updater:
        gap = gap_of("2x3x3", updater.rank("Z2", (2, 3, 3)), 15)
        assert gap.rank == 17  # 2x2x3 and a border
        said = []
        walks = turns_with(updater, "Z2", 1, device, said.append, walkers=8)
        for tried in range(8):
            walks.turn(gap, tried, 5.0)
            if updater.ranks["Z2"].get((2, 3, 3), 99) <= 15:
                break
    assert [event.scheme.rank for event in kept_events][-1] == 15
    assert all(isinstance(event, Kept) for event in kept_events)
    assert updater.gained == 2
    assert any("by border from rank 18" in line or "by own from rank 18" in line for line in begun(said))
    with Catalog.open() as catalog:
        kept = [catalog.find(entry.digest)[0] for entry in catalog.entries(target="2x3x3", ring="Z2", origin="user")]
    assert 15 in [scheme.rank for scheme in kept]
    assert all(scheme.provenance.command == "a command" for scheme in kept)


LIFTED = r"found <2x2x2:7 over Z> \w{12}, ternary, certified, kept; rank 8 before"


@pytest.fixture
def mod2(strassen):
    """Strassen's scheme modulo 2, as a search finds it."""
    return replace(strassen.over_z2(), name="")


def test_equals_are_remembered_and_worse_is_not_kept(home, strassen, mod2):
    told, starts = [], []
    with CatalogueUpdater(Z, 1, told.append, starts.append) as updater:
        for one in (strassen, naive("2x2x2")):
            assert not updater.keep(one, certify(one))
        for ranks in updater.ranks.values():
            ranks[2, 2, 2] = 8
        updater.take(mod2, certify(mod2))
    first, second = map(kept_line, told)
    assert mod2.digest in {scheme.digest for scheme in starts}
    assert first == f"found {mod2!r} {mod2.digest[:12]}, certified, kept; rank 8 before"
    assert re.fullmatch(LIFTED, second)
    assert (updater.gained, updater.rank("Z", (2, 2, 2)), updater.pool((2, 2, 2))[0].rank) == (1, 7, 7)


def test_lifts_that_an_earlier_search_left_are_made(home, mod2):
    told, formats = [], [parse_target("2x2x2")]
    with Catalog.open() as catalog:
        catalog.add(mod2, certify(mod2))
    with CatalogueUpdater(Z, 1, told.append) as updater:
        updater.lift_stored(formats)  # 7 products are known: nothing is gained
        updater.ranks["Z"][2, 2, 2] = 8
        updater.lift_stored(formats)
    (line,) = map(kept_line, told)
    assert re.fullmatch(LIFTED, line)


def test_flips_lead_from_a_scheme_without_a_lift_to_one_that_has_one(home, monkeypatch):
    told, tried = [], []

    def third_lifts(scheme, ring):
        tried.append(scheme)
        return lift(scheme, ring=ring) if len(tried) == 3 else Lift(None, None, "no lift")

    monkeypatch.setattr(catalogue, "lift", third_lifts)
    mod2 = after_flips(naive("3x3x3"), 3_000_000, seed=3)
    assert mod2.rank == 23
    with CatalogueUpdater(Z, 1, told.append) as updater:
        updater.ranks["Z"][3, 3, 3] = 28
        updater.take(mod2, certify(mod2))
    assert len({scheme.digest for scheme in tried}) == len(tried) == 3
    assert {scheme.rank for scheme in tried} == {23}
    assert told[-1].scheme.over_z2() == tried[-1]
    assert told[-1].scheme.provenance.parents == (tried[-1].digest,)
    for before, after in itertools.pairwise(tried):  # the steps of the first one do not make those after it
        assert (after.provenance.parents, after.provenance.steps) == ((before.digest,), ())


def test_schemes_modulo_2_of_the_same_rank_are_starts_too(home, mod2):
    def rings(updater, added):
        catalog.add(added, certify(added))
        return [scheme.ring.name for scheme in updater.pool((2, 2, 2))]

    with CatalogueUpdater(Z, 1) as updater, Catalog.open() as catalog:
        assert set(rings(updater, replace(naive("2x2x2"), name=""))) == {"Z"}
        found = rings(updater, mod2)
        assert (found[0], found[-1], found.count("Z2")) == ("Z", "Z2", 1)


@pytest.mark.parametrize("device", ["cpu", "twin"])
def test_walks_are_for_their_rings_only(home, device):
    with CatalogueUpdater(Z, 1) as updater:
        refuses("Z3 is not a ring of improvements", turns_with, updater, "Z3", device=device)


def test_a_format_that_nothing_leads_to_starts_from_its_blocks(home, monkeypatch):
    seen = []
    monkeypatch.setattr(descents, "routes", lambda *arguments, **options: [])
    monkeypatch.setattr(
        descents, "collect_below", lambda fleet, highest, **options: seen.append((fleet, highest)) or {}
    )
    monkeypatch.setattr(Descents, "_widen", lambda self, shape, seconds: None)
    monkeypatch.setattr(Descents, "_gpu_fleet", lambda self, starts, *rest: SimpleStarts(starts))
    with CatalogueUpdater(Z, 1) as updater:
        assert turns_with(updater, "ZT", 1, walkers=2).turn(gap_of("2x2x3", 12, 11), 3, 1.0).route == "naive"
    ((fleet, highest),) = seen
    assert ([start.rank for start in fleet.starts], highest) == ([12], 11)


class SimpleStarts:
    """A fleet that does not walk."""

    flips, seconds, launches, RELATION = 0, 0.0, 0, ""
    walkers, score, roots = 2, np.full(2, 12), np.arange(2)

    def __init__(self, starts):
        self.starts = starts

    def scheme(self, walker):
        return self.starts[0]
