"""Strassen's scheme of `levels` levels as plinopt's three programs, in a basis that makes its expansion long.

The program is written level by level, with names for all sums. Before, the rows of A are replaced by
running sums and the columns of B as well; afterwards that is undone by differences of rows and columns
of C: a few thousand additions, but every expanded sum grows by a factor of the size.
`python make_programs.py LEVELS > nested.slp` writes the file.
"""

import sys

U = ((1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1))
V = ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1))
W = ((1, 0, 0, 1), (0, 0, 1, -1), (0, 1, 0, 1), (1, 0, 1, 0), (-1, 1, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))


class Writer:
    def __init__(self):
        self.lines = []
        self.count = 0

    def sum(self, terms):
        """The name of a sum of (sign, name) terms."""
        if len(terms) == 1 and terms[0][0] == 1:
            return terms[0][1]
        self.count += 1
        self.lines.append(f"t{self.count}:={joined(terms)};")
        return f"t{self.count}"


def joined(terms):
    return "".join(f"{'+' if sign > 0 else '-'}{name}" for sign, name in terms).removeprefix("+")


def operand(writer, grid, table):
    """The names of the factors of all products of a square grid of names."""
    size = len(grid)
    if size == 1:
        return [grid[0][0]]
    half = size // 2
    quarters = [[row[j : j + half] for row in grid[i : i + half]] for i in (0, half) for j in (0, half)]
    products = []
    for row in table:
        block = [
            [writer.sum([(c, quarters[q][i][j]) for q, c in enumerate(row) if c]) for j in range(half)]
            for i in range(half)
        ]
        products += operand(writer, block, table)
    return products


def result(writer, products, size):
    """The grid of sums of a list of products."""
    if size == 1:
        return [[products[0]]]
    half, part = size // 2, len(products) // 7
    blocks = [result(writer, products[r * part : (r + 1) * part], half) for r in range(7)]
    return [
        [
            writer.sum(
                [
                    (W[r][2 * (i // half) + j // half], blocks[r][i % half][j % half])
                    for r in range(7)
                    if W[r][2 * (i // half) + j // half]
                ]
            )
            for j in range(size)
        ]
        for i in range(size)
    ]


def program(levels):
    size = 2**levels
    texts = []
    for table, by_row in ((U, True), (V, False)):
        writer = Writer()
        grid = [[f"i{i * size + j}" for j in range(size)] for i in range(size)]
        for i in range(size):
            for j in range(size):
                before = (i - 1, j) if by_row else (i, j - 1)
                if min(before) >= 0:
                    grid[i][j] = writer.sum([(1, grid[before[0]][before[1]]), (1, grid[i][j])])
        names = operand(writer, grid, table)
        writer.lines += [f"o{r}:={name};" for r, name in enumerate(names)]
        texts.append("\n".join(writer.lines))
    writer = Writer()
    grid = result(writer, [f"i{r}" for r in range(7**levels)], size)
    for i in range(size):
        for j in range(size):
            corners = [(1, i, j), (-1, i - 1, j), (-1, i, j - 1), (1, i - 1, j - 1)]
            terms = [(sign, grid[x][y]) for sign, x, y in corners if x >= 0 and y >= 0]
            writer.lines.append(f"o{i * size + j}:={joined(terms)};")
    return "\n#\n".join([*texts, "\n".join(writer.lines)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(program(int(sys.argv[1])))
