"""Finds as lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...errors import SchemeFormatError
from ...schemes_db import Scheme
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads, need
from ...verify import certify
from .result import Find, Unlifted


@dataclass(frozen=True)
class Record:
    """A find, or a scheme over Z2 or Z3 that did not lift, with its round and walk.

    `stage` counts the formats of the run from 0; finds of all but the last are steps of a ladder.
    """

    round: int
    walk: int
    found: Find | Unlifted
    stage: int = 0

    def to_line(self) -> str:
        """Return the record as one line, certificates included."""
        found = self.found
        data: dict[str, Any] = {"round": self.round, "walk": self.walk, "stage": self.stage}
        if isinstance(found, Find):
            data["scheme"] = lcma_json.to_json(found.scheme, found.certificate)
            if found.origin.digest != found.scheme.digest:
                data["origin"] = lcma_json.to_json(found.origin, found.origin_certificate)
        else:
            data["origin"] = lcma_json.to_json(found.origin)
            data["reason"] = found.reason
        return json.dumps(data) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Invert `to_line`; the schemes are certified again.

        Raises:
            SchemeFormatError: the line is no record.
            VerificationError: a scheme in it is not valid.
        """
        data = loads(line)
        if not isinstance(data, dict):
            raise SchemeFormatError("a record must be a JSON object")
        number, walk, stage = (need(data, key, int, "the record") for key in ("round", "walk", "stage"))
        if "scheme" not in data:
            origin = _scheme(need(data, "origin", dict, "the record"))
            certify(origin)
            return cls(number, walk, Unlifted(origin, need(data, "reason", str, "the record")), stage)
        scheme = _scheme(data["scheme"])
        origin = _scheme(data["origin"]) if "origin" in data else scheme
        certificate = certify(scheme)
        own = certificate if origin is scheme else certify(origin)
        return cls(number, walk, Find(scheme, certificate, origin, own), stage)


def _scheme(data: object) -> Scheme:
    return lcma_json.parse(json.dumps(data))[0].scheme
