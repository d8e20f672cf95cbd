"""Verify damaged sample files: `fuzz_verdicts.py CASES SEED [FORMAT...]`, CASES a format.

What the readers still take must be judged: valid, or refuted with its first wrong equation. It runs
as `fuzz_formats.py` does, in a process of its own under 1 GiB of memory, 5 s of processor time a case. Members of
archives are damaged one by one and packed again, so that checksums do not stop them at the door.
"""

import io
import random
import resource
import signal
import sys
import warnings
import zipfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "schemes_db"))

from fuzz_formats import OPTIONS, by_format, damaged, too_slow

from lcma.errors import LcmaError
from lcma.schemes_db import formats
from lcma.verify import judge


def nudged(rng: random.Random, raw: bytes) -> bytes:
    """A text with one digit or sign changed, which most readers still take."""
    places = [i for i, byte in enumerate(raw) if byte in b"0123456789+-"]
    data = bytearray(raw)
    if places:
        data[rng.choice(places)] = rng.choice(b"0123456789+-")
    return bytes(data)


def repacked(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    """An archive with one member damaged."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(packed, "w") as new:
        members = old.namelist()
        victim = rng.choice(members)
        for name in members:
            content = old.read(name)
            new.writestr(name, damaged(rng, content, other) if name == victim else content)
    return packed.getvalue()


def broken(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    if raw.startswith(b"PK"):
        return repacked(rng, raw, other)
    return nudged(rng, raw) if rng.random() < 0.7 else damaged(rng, raw, other)


def verdict(content: bytes, name: str, format: str | None) -> str:
    """Return the outcome of a case; a fault starts with "bad"."""
    signal.setitimer(signal.ITIMER_PROF, 5)
    try:
        readings = formats.parse_bytes(content, format, allow_pickle=True, **OPTIONS.get(name, {}))
        reports = [judge(reading, name) for reading in readings]
        lines = [report.headline() for report in reports]
        if any("\n" in line or not line.startswith(("OK ", "FAIL ")) for line in lines):
            return f"bad: headline {lines!r:.200}"
        return "valid" if all(report.ok for report in reports) else "refuted"
    except LcmaError as error:
        return f"bad: more than one line: {error!s:.200}" if "\n" in str(error) else "refused"
    except BaseException as error:
        return f"bad: {type(error).__name__}: {error!s:.200}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main(cases: int, seed: int, chosen: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    signal.signal(signal.SIGPROF, too_slow)
    warnings.simplefilter("error")
    samples = by_format()
    contents = [raw for pairs in samples.values() for _, raw in pairs]
    kinds: Counter[str] = Counter()
    for format in chosen or samples:
        rng = random.Random(f"{seed} {format}")
        for case in range(cases):
            name, raw = rng.choice(samples[format])
            content = broken(rng, raw, rng.choice(contents))
            said = verdict(content, name, rng.choice((None, format)))
            kinds[said.partition(":")[0]] += 1
            if said.startswith("bad"):
                print(f"{format} {name} case {case}: {said}")
    print(f"{sum(kinds.values())} cases of {len(chosen or samples)} formats: {dict(kinds)}")
    return 0 if {"valid", "refuted", "refused"} >= set(kinds) and kinds["refuted"] else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
