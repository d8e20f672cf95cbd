"""Differences between recorded plans and present ones, and their list: differences.json.

`python tests/kernels/golden/differences.py REASON COMMAND [ID ...]` lists the present differences of these
requests (of all that are not listed yet), and drops what is no difference any more. REASON has the measured
ratio of the new plan to the recorded one, COMMAND what measured it.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]

CHOICE = ("strategy", "method", "levels", "schemes", "refused")
PRICES = ("workspace", "seconds", "plan_seconds", "vendor_seconds", "ratio")

TOLERANCE = 1e-6
"""Relative, of prices: elementary functions round differently from one processor to another."""


def same(old: Any, new: Any) -> bool:
    """Return whether two recorded values agree, numbers within TOLERANCE."""
    numbers = isinstance(old, int | float) and isinstance(new, int | float)
    return abs(old - new) <= TOLERANCE * abs(old) if numbers else old == new


def difference(old: Row, new: Row) -> Row:
    """The fields of a plan that differ, with their new values."""
    fields = [name for name in (*CHOICE, *PRICES) if not same(old.get(name), new.get(name))]
    return {name: new.get(name) for name in fields}


def complaints(rows: list[Row], recorded: dict[str, Row], present: dict[str, Row], listed: list[Row]) -> list[str]:
    """Return a text for each request at fault: a difference that is not listed, or a listed one that is none."""
    known = {entry["request"]: entry["now"] for entry in listed}
    found = []
    for row in rows:
        old, new, accepted = recorded[row["id"]], present[row["id"]], known.get(row["id"], {})
        now = difference(old, new)
        if set(now) == set(accepted) and all(same(accepted[name], now[name]) for name in now):
            continue
        word = "differs" if now else "is listed as different, and is not"
        if now and accepted:
            word = "differs in another way than it is listed"
        request, *plans = map(json.dumps, (row, old, new))
        found.append(f"{row['id']} {word}\n  request:  {request}\n  recorded: {plans[0]}\n  present:  {plans[1]}")
    return found


def load(name: str) -> Any:
    """A file of this folder."""
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def update(reason: str, command: str, names: list[str]) -> list[Row]:
    """The list of differences with those of some requests as they are at present."""
    from chosen import chosen

    recorded, before = load("plans.json"), {entry["request"]: entry for entry in load("differences.json")}
    entries = []
    for row in load("requests.json"):
        now, entry = difference(recorded[row["id"]], chosen(row)), before.get(row["id"])
        if now and (row["id"] in names or (not names and entry is None)):
            entry = {"request": row["id"], "now": now, "reason": reason, "command": command}
        if now and entry is not None:
            entries.append(entry)
    return entries


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all(sys.argv[1:3]):
        sys.exit("say why, and what measured it: differences.py REASON COMMAND [ID ...]")
    lines = ",\n".join(map(json.dumps, update(sys.argv[1], sys.argv[2], sys.argv[3:])))
    (HERE / "differences.json").write_text(f"[\n{lines}\n]\n" if lines else "[]\n", encoding="utf-8")
