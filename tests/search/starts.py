"""What many tests start from: schemes, packed terms, terms of walks, and fleets of the GPU's walk on the processor."""

from lcma.schemes_db import parse_target
from lcma.schemes_db.resolve import resolve
from lcma.search import Policy, make_walker, pack_start
from lcma.search.flipgraph.gpu.fleet import Fleet
from lcma.search.terms.orbits import ReversibleTerms


def scheme(name):
    """The scheme of this name."""
    return resolve(name)[0]


def naive_terms(name, walk="flip"):
    """The naive terms of a target, packed for a walk."""
    return pack_start(walk, parse_target(name))


def walked_terms(name, walk="flip"):
    """The naive terms of a target as a walker holds them."""
    terms = naive_terms(name, walk)
    return ReversibleTerms.from_packed(terms) if walk == "flip-c3z2" else terms


def naive(name, walk="flip"):
    """The scheme of the naive terms, over the ring of the walk."""
    return naive_terms(name, walk).to_scheme()


def walked(name, goal, steps=5_000_000, walk="flip", seed=1, policy=None):
    """The terms of a walk from the naive ones that ends at a rank, or after so many steps."""
    walker = make_walker(walk, naive_terms(name, walk), seed, 0, policy or Policy())
    walker.advance(goal, steps)
    return walker.terms()


def fleet_of(start="3x3x3", **options):
    """A fleet on the processor, from the naive terms of a target or from a scheme."""
    starts = [naive(start)] if isinstance(start, str) else [start]
    return Fleet(starts, **{"policy": Policy(plus_after=300), "seed": 3, "walkers": 8, "device": "cpu", **options})
