"""Floor 2: proofs that a scheme, a program or a callable is exact."""

from .approximate import ApproximateReport
from .certify import METHODS, certify, check, recheck
from .exact import check_exact
from .outcome import Mismatch, Outcome
from .program import check_program
from .report import AnyReport, Report, certified_scheme, judge, load, recheck_file, verify_file
from .traced import check_traced

__all__ = [
    "METHODS",
    "AnyReport",
    "ApproximateReport",
    "Mismatch",
    "Outcome",
    "Report",
    "certified_scheme",
    "certify",
    "check",
    "check_exact",
    "check_program",
    "check_traced",
    "judge",
    "load",
    "recheck",
    "recheck_file",
    "verify_file",
]
