"""Certificates: what was proven about a scheme, by which methods, with their parameters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..errors import SchemeFormatError
from .display import line, table


@dataclass(frozen=True)
class Proof:
    """One passed check.

    `method` is "exact" (all equations, in exact arithmetic), "symbolic" (the same, expanded in
    noncommuting symbols), "randomized" (random instances modulo primes), "program" (a straight-line
    program, expanded) or "traced" (a callable, on random matrices).

    `equations` are the Brent equations that were checked; `primes` the moduli; `rounds` the number
    of random instances; `error_log2` the logarithm of the probability that a wrong scheme passes
    (None: no chance is involved); `full` and `half` the product counts by the half rule.
    """

    method: str
    equations: int = 0
    primes: tuple[int, ...] = ()
    rounds: int = 0
    error_log2: float | None = None
    full: int = 0
    half: int = 0

    @property
    def evidence(self) -> str:
        """What was checked, in one line."""
        parts = [f"{self.equations:,} equations, each holds"] if self.equations else []
        parts += [f"{self.rounds:,} random instances"] if self.rounds else []
        if self.primes:
            more = f" and {len(self.primes) - 4} more" if len(self.primes) > 4 else ""
            parts.append(f"modulo {', '.join(map(str, self.primes[:4]))}{more}")
        if self.error_log2 is not None:
            parts.append(f"a wrong scheme passes with probability below 2^{self.error_log2:.0f}")
        return "; ".join(parts) or "passed"

    def __repr__(self) -> str:
        return line(f"proof {self.method}: {self.evidence}")


@dataclass(frozen=True)
class Certificate:
    """Proof that the scheme with this digest computes its target over its ring. Created by `lcma.certify` only."""

    target: str
    ring: str
    rank: int
    digest: str
    proofs: tuple[Proof, ...]
    version: str

    def __repr__(self) -> str:
        return line(f"certificate {self._subject}, {', '.join(self.methods)}, digest {self.digest[:12]}")

    def _repr_html_(self) -> str:
        """The proofs as a table, for a notebook."""
        title = f"{self._subject}, proven by lcma {self.version}; digest {self.digest}"
        return table(title, ("method", "what was checked"), [(one.method, one.evidence) for one in self.proofs])

    @property
    def _subject(self) -> str:
        return f"{self.target}:{self.rank} over {self.ring}"

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(proof.method for proof in self.proofs)

    def to_json(self) -> dict[str, Any]:
        """The certificate as JSON values."""
        return {
            **asdict(self),
            "proofs": [{k: v for k, v in asdict(proof).items() if v not in (None, ())} for proof in self.proofs],
        }

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """The inverse of `to_json`.

        Raises:
            SchemeFormatError: not a certificate.
        """
        if not isinstance(data, dict):
            raise SchemeFormatError("not a certificate: it must be an object")
        try:
            fields = dict(data)
            proofs = tuple(
                Proof(**{**proof, "primes": tuple(proof.get("primes", ()))}) for proof in fields.pop("proofs")
            )
            certificate = cls(proofs=proofs, **fields)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise SchemeFormatError(f"not a certificate: {error}") from error
        texts = (certificate.target, certificate.ring, certificate.digest, certificate.version)
        if not proofs or not all(isinstance(text, str) for text in texts) or type(certificate.rank) is not int:
            raise SchemeFormatError("not a certificate: a field is missing or of the wrong type")
        for proof in proofs:
            numbers = (proof.equations, proof.rounds, proof.full, proof.half, *proof.primes)
            if not isinstance(proof.method, str) or not all(type(number) is int for number in numbers):
                raise SchemeFormatError("not a certificate: a proof has a field of the wrong type")
            if type(proof.error_log2) not in (type(None), int, float):
                raise SchemeFormatError("not a certificate: error_log2 must be a number")
        return certificate
