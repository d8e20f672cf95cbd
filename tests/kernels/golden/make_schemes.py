"""Write schemes.json, the schemes that recorded plans are made of: `python tests/kernels/golden/make_schemes.py`.

Run it again only to let new schemes into the recorded plans: a shipped scheme that is not listed changes none.
"""

import json

from chosen import HERE, considered

from lcma.schemes_db.shipped import shipped


def text(names: dict[str, list[str]]) -> str:
    """Name, target, rank and digest of schemes by use as JSON, a line each."""
    parts = []
    for use, several in names.items():
        schemes = [(name, shipped(name).scheme) for name in several]
        rows = [
            {"name": name, "target": scheme.target.name, "rank": scheme.rank, "digest": scheme.digest}
            for name, scheme in schemes
        ]
        parts.append(f' "{use}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (HERE / "schemes.json").write_text(text(considered()), encoding="utf-8")
