"""Write the recorded plans, or the schemes that they are made of: `python tests/kernels/golden/make.py WHAT [FILE]`.

WHAT is `plans`, for new requests only: a plan that has changed is listed in differences.json; or `schemes`, only to let
new ones into the recorded plans: a shipped scheme that is not listed changes none.
"""

import json
import sys
from pathlib import Path

from chosen import HERE, chosen, considered

from lcma.schemes_db.shipped import shipped


def plans() -> str:
    """The plan chosen for every request by its id, as JSON, a line each."""
    rows = json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
    return "{\n" + ",\n".join(f"{json.dumps(row['id'])}: {json.dumps(chosen(row))}" for row in rows) + "\n}\n"


def schemes() -> str:
    """Name, target, rank and digest of the schemes that planners consider, by use, as JSON, a line each."""
    parts = []
    for use, names in considered().items():
        found = [(name, shipped(name).scheme) for name in names]
        rows = [{"name": x, "target": one.target.name, "rank": one.rank, "digest": one.digest} for x, one in found]
        parts.append(f' "{use}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    what, *path = sys.argv[1:]
    text = {"plans": plans, "schemes": schemes}[what]()
    Path(*path or [HERE / f"{what}.json"]).write_text(text, encoding="utf-8")
