"""Write plans.json, the recorded plans: `python tests/kernels/golden/make_plans.py [FILE]`.

Run it again for new requests only: a plan that has changed is listed in differences.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

from chosen import HERE, chosen


def plans() -> dict[str, dict[str, Any]]:
    """Return the plan chosen for every request, by its id."""
    rows = json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
    return {row["id"]: chosen(row) for row in rows}


def text(found: dict[str, dict[str, Any]]) -> str:
    """Plans as JSON, a line each."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(plan)}" for name, plan in found.items()) + "\n}\n"


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "plans.json"
    path.write_text(text(plans()), encoding="utf-8")
