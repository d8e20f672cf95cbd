"""The origin of a scheme."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import SchemeFormatError
from .display import line

KINDS = ("", "paper", "textbook", "search", "composition", "import")


STEPS = {
    "naive": ("target", "ring"),
    "rotate": (),
    "transpose": (),
    "reverse": (),
    "tensor": (),
    "sum": ("axis",),
    "uneven": ("m", "k", "n"),
    "project": ("axis", "index"),
    "basis": ("p", "q", "r"),
    "search": ("command",),
    "walk": ("target", "ring"),
    "lift": ("ring",),
    "polish": ("goal",),
    "read": ("file", "sha256"),
    "print": ("source",),
}
"""The kinds of steps, and the values that each needs."""

CONSTRUCTIONS = ("naive", "rotate", "transpose", "reverse", "tensor", "sum", "uneven", "project", "basis")
"""Steps that give the same scheme whenever they are repeated, from the schemes that they name."""

NEVER_REPEATED = ("walk", "polish")
"""Steps that a record describes, without a command: a walk of the library or of a GPU, and one limited by time."""

MAX_STEPS = 1000


@dataclass(frozen=True)
class Step:
    """One step on the way to a scheme: `do` with `values` (name, text), applied to the schemes with the digests `of`.

    `makes` is the digest of the result, "" for the last step, whose result is the scheme itself. A step that
    is not `repeatable` says `why`; "walk" and "polish" never are.
    """

    do: str
    of: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    makes: str = ""
    repeatable: bool = True
    why: str = ""

    def value(self, name: str) -> str:
        """The value of that name, "" where there is none."""
        return dict(self.values).get(name, "")

    def __str__(self) -> str:
        """The step in one line."""
        parts = [self.do, *(digest[:12] for digest in self.of), *(f"{name}={text}" for name, text in self.values)]
        made = f" -> {self.makes[:12]}" if self.makes else ""
        return " ".join(parts) + made + ("" if self.repeatable else f" (not repeatable: {self.why})")

    def to_json(self) -> dict[str, Any]:
        """The step as JSON values."""
        data: dict[str, Any] = {"do": self.do}
        if self.of:
            data["of"] = list(self.of)
        if self.values:
            data["values"] = dict(self.values)
        if self.makes:
            data["makes"] = self.makes
        return data if self.repeatable else {**data, "repeatable": False, "why": self.why}

    @classmethod
    def from_json(cls, data: object) -> Step:
        """The inverse of `to_json`.

        Raises:
            SchemeFormatError: not a known step with its values.
        """
        known = {"do", "of", "values", "makes", "repeatable", "why"}
        if not isinstance(data, dict) or not set(data) <= known:
            raise SchemeFormatError("a provenance step must be an object of do, of, values, makes, repeatable and why")
        do, makes = data.get("do", ""), data.get("makes", "")
        of, values = data.get("of", []), data.get("values", {})
        if not isinstance(do, str) or do not in STEPS:
            raise SchemeFormatError(f"provenance step {str(do)[:40]!r} is not known; known are {', '.join(STEPS)}")
        texts = [*of, makes, *values, *values.values()] if isinstance(of, list) and isinstance(values, dict) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise SchemeFormatError(f"provenance step {do}: of is a list of digests, values an object of texts")
        if missing := [name for name in STEPS[do] if name not in values]:
            raise SchemeFormatError(f"provenance step {do} needs {missing[0]}")
        repeatable, why = data.get("repeatable", True), data.get("why", "")
        if not isinstance(repeatable, bool) or not isinstance(why, str) or repeatable == bool(why):
            raise SchemeFormatError(f"provenance step {do}: one that is not repeatable says why, in text, and no other")
        if repeatable and do in NEVER_REPEATED:
            raise SchemeFormatError(f"provenance step {do} is never repeatable")
        return cls(do, tuple(of), tuple(values.items()), makes, repeatable, why)


@dataclass(frozen=True)
class Provenance:
    """The origin of a scheme: a paper's identity, a run of ours, a composition or an imported file.

    `steps` reproduce the scheme (see `lcma.schemes_db.reproduce`); where there are none, the other fields state
    the one step (`history`). `parents` are digests, `not_kept` those of parents and steps whose schemes are
    nowhere to be had: neither shipped, nor made by a step, nor the scheme itself modulo 2. `relation` says
    how the scheme came from them (flip walk, lift, tensor product, rotation, ...). `date` is ISO 8601,
    `seconds` the time that a search took.
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
    steps: tuple[Step, ...] = ()
    not_kept: tuple[str, ...] = ()

    def __repr__(self) -> str:
        what = (self.source, self.command, self.remark, self.file_sha256[:12])
        return line(f"provenance {self.kind or 'unknown'} {next(filter(None, what), '')}")

    @property
    def history(self) -> tuple[Step, ...]:
        """The recorded steps, else the one that the other fields state; empty where they state none."""
        if self.steps:
            return self.steps
        if self.kind == "search" and self.command:
            return (Step("search", self.parents, (("command", self.command),)),)
        if self.kind == "import":
            return (Step("read", (), (("file", self.source), ("sha256", self.file_sha256))),)
        if self.kind in ("paper", "textbook"):
            return (Step("print", (), (("source", self.source),)),)
        return ()

    def to_json(self) -> dict[str, Any]:
        """The fields that say something, ready for `json`."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["parents"], data["not_kept"] = list(self.parents), list(self.not_kept)
        data["steps"] = [step.to_json() for step in self.steps]
        return {name: value for name, value in data.items() if value not in (None, "", [])}

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
        for name in ("parents", "not_kept"):
            digests = values.get(name, [])
            if not isinstance(digests, list) or not all(isinstance(digest, str) for digest in digests):
                raise SchemeFormatError(f"provenance {name} must be a list of digests")
            values[name] = tuple(digests)
        steps = values.get("steps", [])
        if not isinstance(steps, list) or len(steps) > MAX_STEPS:
            raise SchemeFormatError(f"provenance steps must be a list of at most {MAX_STEPS}")
        values["steps"] = tuple(Step.from_json(step) for step in steps)
        for key, value in values.items():
            wanted: tuple[type, ...] = (str,)
            if key in ("parents", "steps", "not_kept"):
                continue
            if key == "seed":
                wanted = (int,)
            if key == "seconds":
                wanted = (int, float)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise SchemeFormatError(f"provenance {key} must be a {wanted[0].__name__}, not {value!r}")
        return cls(**values)


def constructed(do: str, relation: str, *parents: tuple[str, Provenance], **values: str) -> Provenance:
    """The provenance of a construction from parents, each its digest and its own provenance.

    Parents that are constructions contribute their own steps; other parents are named by their digests.
    """
    steps: dict[str, Step] = {}
    starts: set[str] = set()
    for digest, origin in parents:
        if origin.steps and all(step.do in CONSTRUCTIONS for step in origin.steps):
            for step in (*origin.steps[:-1], replace(origin.steps[-1], makes=digest)):
                # What an earlier step makes or starts from is there: three rotations lead back to it.
                if step.makes not in steps and step.makes not in starts:
                    steps[step.makes] = step
                    starts.update(step.of)
    digests = tuple(digest for digest, _ in parents)
    last = Step(do, digests, tuple(values.items()))
    before = tuple(steps.values()) if len(steps) < MAX_STEPS else ()
    return Provenance("composition", parents=digests, relation=relation, steps=(*before, last))
