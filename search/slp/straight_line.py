"""Straight-line program of a linear map: lines, which are sums over inputs and earlier lines."""

from __future__ import annotations

from dataclasses import dataclass

Terms = tuple[tuple[int, int], ...]
"""(coefficient, value) pairs."""


@dataclass(frozen=True)
class ProgramLines:
    """A straight-line program: line k is a sum over values; values are the inputs, then the lines.

    `outputs` are the (coefficient, value) of every row of the map; value -1 is zero.
    """

    inputs: int
    lines: tuple[Terms, ...]
    outputs: Terms

    @property
    def additions(self) -> int:
        return sum(len(line) - 1 for line in self.lines if line)

    def transposed(self) -> ProgramLines:
        """Return the transposed program: reversed, with inputs and outputs exchanged and uses turned into terms.

        It has outputs - inputs (of this program) more additions than this one (Tellegen's principle).
        """
        values = self.inputs + len(self.lines)
        uses: list[list[tuple[int, int]]] = [[] for _ in range(values)]
        for row, (coefficient, value) in enumerate(self.outputs):
            if value >= 0:
                uses[value].append((coefficient, row))
        made: list[Terms] = []
        place: dict[int, tuple[int, int]] = {}
        rows = len(self.outputs)
        for value in reversed(range(values)):
            terms = tuple(uses[value])
            if len(terms) == 1 or not terms:
                place[value] = terms[0] if terms else (0, -1)
            else:
                made.append(terms)
                place[value] = (1, rows + len(made) - 1)
            coefficient, source = place[value]
            if value >= self.inputs and source >= 0:
                for factor, used in self.lines[value - self.inputs]:
                    uses[used].append((factor * coefficient, source))
        return ProgramLines(rows, tuple(made), tuple(place[value] for value in range(self.inputs)))
