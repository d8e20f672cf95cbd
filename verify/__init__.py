"""Floor 2: proofs that a scheme is exact."""

from .certify import METHODS, certify, check, recheck
from .outcome import Mismatch, Outcome
from .report import Report, judge, load, verify_file

__all__ = ["METHODS", "Mismatch", "Outcome", "Report", "certify", "check", "judge", "load", "recheck", "verify_file"]
