"""The nouns of a benchmark: options, bars, cases, suites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import Any

from ..products import Sizes
from .picture import Rows, ratios
from .table import rows

Figures = Mapping[str, Any]
"""The figures of a case: names to numbers, texts, or lists of them; serializable as JSON."""

Say = Callable[[str], None]
"""Takes a line about how the case stands."""


@dataclass(frozen=True)
class Options:
    """The user's options for a suite; a suite reads those that concern it.

    `sample`: how many of many shapes. `rounds`: interleaved rounds a case. `sizes`: sides of
    matrices, features of models or inputs; () is the suite's own choice. `measure`: what is measured in place of
    products, "energy" in joules, "shares" of linear layers or "gradients"; "" for none.
    """

    device: str = "cpu"
    sample: int | None = None
    rounds: int | None = None
    dtypes: tuple[str, ...] = ()
    seed: int = 0
    sizes: tuple[int, ...] = ()
    measure: str = ""


@dataclass(frozen=True)
class Bar:
    """The bar of a figure: at least or at most `value`."""

    figure: str
    value: float
    at_most: bool = False

    def met(self, figures: Figures) -> bool:
        """Return whether the case's figure reaches the bar; a figure that is missing does not."""
        got = figures.get(self.figure)
        if got is None:
            return False
        return bool(got <= self.value if self.at_most else got >= self.value)

    def __str__(self) -> str:
        return f"{self.figure} {'<=' if self.at_most else '>='} {self.value:g}"


def at_least(**figures: float | None) -> tuple[Bar, ...]:
    """The bars of some figures from below; None is no bar."""
    return tuple(Bar(name, value) for name, value in figures.items() if value is not None)


def at_most(**figures: float | None) -> tuple[Bar, ...]:
    """The bars of some figures from above."""
    return tuple(Bar(bar.figure, bar.value, at_most=True) for bar in at_least(**figures))


@dataclass(frozen=True)
class Case:
    """One row to be: its name in the suite, what it should take, and the measurement.

    `run`, as all that it calls, checks correctness first and raises VerificationError before anything is timed, and
    PlanError where this machine cannot run it. `ahead` works the row's products on tensors without data: what kernels
    that asks for is compiled before the first row.
    """

    key: str
    run: Callable[[Say], Figures]
    bars: tuple[Bar, ...] = ()
    ahead: Callable[[], object] | None = None


BARS = rows("bars")
"""The bars of suites' rows by their names, on one device or any; those that go with a product stand in its suite's
table. A plan must not lose to what it replaces (0.99: but for scatter), and a scheme must gain where it is taken."""


def barred(cases: Callable[[Options], Iterable[Case]]) -> Callable[[Options], Iterator[Case]]:
    """The cases of the suite that a module is named after, each with the bars of its row."""
    known = [one for one in BARS if one.suite == cases.__module__.rpartition(".")[2]]

    @wraps(cases)
    def found(options: Options) -> Iterator[Case]:
        for case in cases(options):
            mine = (one for one in known if one.device in (None, options.device) and fnmatchcase(case.key, one.rows))
            yield replace(case, bars=(*case.bars, *(Bar(one.figure, one.value, one.sign == "<=") for one in mine)))

    return found


def cube(size: int) -> Sizes:
    """The sizes of a product of squares."""
    return size, size, size


def shown(sizes: Sizes) -> str:
    """Sizes in a key: N of squares, else MxKxN."""
    return f"{sizes[0]}" if len(set(sizes)) == 1 else "x".join(map(str, sizes))


@dataclass(frozen=True)
class Suite:
    """Cases that belong together.

    `sources` are the folders and files, from the package's root, whose text a row's code hash covers beside that of
    this folder; `columns` the figures of the table; `picture` draws the rows as SVG. `flags` are the values of
    `Options.measure` that the suite knows, with the columns of their rows; `sized` suites know "sizes". Of all rows of
    a device `report` yields lines of Markdown for the page of benchmarks.
    """

    name: str
    help: str
    cases: Callable[[Options], Iterable[Case]]
    columns: tuple[str, ...]
    sources: tuple[str, ...] = ("kernels",)
    picture: Callable[[Rows, Path], None] = ratios
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sized: bool = False
    report: Callable[[Rows], Iterator[str]] = lambda rows: iter(())
