"""Tables at a terminal: every command that prints one, in a pseudo-terminal of 80 columns and of 40."""

import json
import os
import pty
import struct
import subprocess
import sys
import tomllib
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import numpy as np

from lcma.kernels import safetensors

LINES = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["tables"]
"""All commands that print a table."""

SCRIPT = """
import json, os, sys
from lcma.errors import PlanError
from lcma.workbench import cpu_profile
from lcma.kernels.cuda import machine
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.schemes_db import additions_table
from lcma.workbench import cli, output

machine.device_reason = lambda index=None: "torch is not asked, which takes long to import"
fewest = additions_table.fewest_additions()[::30]
additions_table.fewest_additions = lambda: fewest
tables, real = [], output.print_table

def recorded(columns, rows, *arguments, **keywords):
    rows = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for width in (80, 40):
        os.environ["COLUMNS"] = str(width)  # comes before the terminal's own
        tables.append([width, line, list(columns), rows])
        print("<table>", flush=True)
        real(columns, rows, *arguments, **keywords)
        print("</table>", flush=True)
    del os.environ["COLUMNS"]

output.print_table = recorded
from lcma.workbench.bench import runner
from lcma.workbench.bench.case import Case, Suite
from lcma.workbench.commands import bench

names = tuple(f"figure {number}" for number in range(12))

def refused(say):
    raise PlanError("this row can't run here, which takes a sentence of many words to say, longer than a line")

rows = [
    Case("row of a long name, 4096x4096 float32", lambda say: dict.fromkeys(names, 1.234e-5)),
    Case("another", refused),
]
suite = Suite("long", "many columns", lambda options: rows, names, ("schemes_db/ranks.py",))
known, bench.find_suite = bench.find_suite, lambda name: suite if name == "long" else known(name)
hashed, runner.code_hash = runner.code_hash, lambda sources: hashed(["schemes_db/ranks.py"])
rates = tuple(GemmRate("float32", 1 << size, 64, 64, 1e11) for size in range(6, 9))
cpu_profile.measure = lambda say: Profile("flat", "test", (), rates, 5e10, 5e10)
for line in json.load(open("lines.json")):
    code = cli.main(line.split())
    assert code in (0, 1), (line, code)
json.dump(tables, open("tables.json", "w"))
"""


def at_a_terminal(folder):
    """Run the lines in one process at a terminal; return its text, and the tables as (width, line, columns, rows)."""
    (folder / "lines.json").write_text(json.dumps(LINES))
    (folder / "script.py").write_text(SCRIPT)
    rng = np.random.default_rng(0)
    np.save(folder / "weight.npy", rng.standard_normal((16, 16)).astype(np.float32))
    layers = {f"model.layers.{name}.weight": ("F32", rng.standard_normal((16, 16)).astype(np.float32)) for name in "ab"}
    (folder / "model.safetensors").write_bytes(safetensors.pack(layers))
    main, other = pty.openpty()
    ioctl(other, TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "script.py"], cwd=folder, env=environment, stdin=other, stdout=other, stderr=subprocess.PIPE
    )
    os.close(other)
    text = b""
    while part := _read(main):
        text += part
    error = process.communicate()[1].decode()
    assert process.returncode == 0, error
    return text.decode().replace("\r\n", "\n"), json.loads((folder / "tables.json").read_text())


def _read(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the process has ended
        return b""


def test_no_cell_of_any_table_is_folded(warm_home, tmp_path):
    text, tables = at_a_terminal(tmp_path)
    printed = [part.partition("</table>")[0].strip("\n").splitlines() for part in text.split("<table>\n")[1:]]
    assert len(printed) == len(tables)
    assert {line.split()[0] for _, line, _, _ in tables} == {line.split()[0] for line in LINES} - {"improve"}
    for (width, line, columns, rows), lines in zip(tables, printed, strict=True):
        assert len(lines) == len(rows) + 2, line  # a line a row, below the names of columns and the rule
        ends = [
            place + 1
            for place, sign in enumerate(lines[1])
            if sign == "\u2500" and lines[1][place + 1 : place + 2] != "\u2500"
        ]
        starts = [0, *(end + 2 for end in ends[:-1])]
        assert len(ends) == 1 or len(lines[1]) <= width or "--wide" in line, line
        places, last = [], -1
        for start, end in zip(starts, ends, strict=True):
            last = columns.index(lines[0][start:end].strip(), last + 1)
            places.append(last)
        assert places[0] == 0
        assert places == list(range(len(columns))) or "--wide" not in line
        for row, shown in zip(rows, lines[2:], strict=True):
            for place, start, end in zip(places, starts, ends, strict=True):
                cell = shown[start:end].strip()
                whole = row[place].strip()
                is_cut = cell.endswith("\u2026") and " " in whole and len(cell) >= 19
                assert cell == whole or (is_cut and whole.startswith(cell[:-1])), (line, columns[place])
