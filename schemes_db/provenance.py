"""Where a scheme comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ..errors import SchemeFormatError

KINDS = ("", "paper", "textbook", "search", "composition", "import")


@dataclass(frozen=True)
class Provenance:
    """The origin of a scheme: a paper's identity, a run of ours, a composition or an imported file.

    `parents` are digests. `relation` says how the scheme came from them (flip walk, lift, tensor
    product, rotation, ...). `date` is ISO 8601, `seconds` the time that a search took.
    """

    kind: str = ""
    source: str = ""
    remark: str = ""
    command: str = ""
    seed: int | None = None
    parents: tuple[str, ...] = ()
    relation: str = ""
    version: str = ""
    date: str = ""
    seconds: float | None = None
    file_sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields that say something, ready for `json`."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value not in (None, "", ())
        }

    @classmethod
    def from_json(cls, data: object) -> Provenance:
        """The inverse of `to_json`; unknown keys are refused.

        Raises:
            SchemeFormatError: not an object of known fields with values of the right type.
        """
        if not isinstance(data, dict):
            raise SchemeFormatError("provenance must be an object")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise SchemeFormatError(
                f"provenance has unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}"
            )
        values = dict(data)
        if values.get("kind", "") not in KINDS:
            raise SchemeFormatError(f"provenance kind must be one of {', '.join(KINDS[1:])}, not {values['kind']!r}")
        parents = values.get("parents", [])
        if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
            raise SchemeFormatError("provenance parents must be a list of digests")
        values["parents"] = tuple(parents)
        for key, value in values.items():
            wanted: tuple[type, ...] = (str,)
            if key == "parents":
                continue
            if key == "seed":
                wanted = (int,)
            if key == "seconds":
                wanted = (int, float)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise SchemeFormatError(f"provenance {key} must be a {wanted[0].__name__}, not {value!r}")
        return cls(**values)
