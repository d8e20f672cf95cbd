"""Certificates: what was proven about a scheme, by which methods, with their parameters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..errors import SchemeFormatError


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


@dataclass(frozen=True)
class Certificate:
    """Proof that the scheme with this digest computes its target over its ring. Created by `lcma.certify` only."""

    target: str
    ring: str
    rank: int
    digest: str
    proofs: tuple[Proof, ...]
    version: str

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
