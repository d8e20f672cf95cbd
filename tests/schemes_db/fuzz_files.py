"""Read and verify damaged sample files: `fuzz_files.py CASES SEED [FORMAT...]`, CASES a format.

It runs in a process of its own under a limit of 1 GiB of memory, with an alarm after 5 s of processor time a case.
Every case must be refused with a SchemeFormatError of one line, or read and judged: valid, or refuted with its first
wrong equation. What is not is printed, and the exit code is 1. Half of the archives have one member damaged and are
packed again, so that checksums do not stop them at the door.
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

from lcma.errors import LcmaError
from lcma.schemes_db import formats, parse_target
from lcma.schemes_db.ring import Z2, Z3
from lcma.verify import judge

FOLDERS = ("samples", "published", "published/structured", "handwritten", "dialects")
OPTIONS = {
    "flip_mod2.npy": {"target": parse_target("2x3x4"), "ring": Z2},
    "flip_mod3.npy": {"target": parse_target("2x3x4"), "ring": Z3},
}
SNIPPETS = [b"1000000000000", b"-", b"/0", b"1e999", b"(", b"[[[[", b"{", b"}", b"\n", b";", b"#", b",", b"i", b"\x00"]
SNIPPETS += [b"0.1", b"None", b"\xff", b'"', b"c99", b"a[128,128]", b"9" * 50, b"nan", b"=", b"  ", b"\xe2\x88\x92"]
# What makes a careless pattern try every way to part it.
SNIPPETS += [text * 2000 for text in (b"# ", b"(* ", b"(", b"[ ", b"\n", b"  ", b"1 ", b"# name: x ", b"Bini ", b"; ")]


def damaged(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    """The content with one to four faults: cut, bytes changed, removed, doubled, put in, or taken from another file."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 1, 2, 4, 16, 64))
        match rng.randrange(8):
            case 0:
                del data[at:]
            case 1 | 2:
                for _ in range(length):
                    if data:
                        data[rng.randrange(len(data))] = rng.randrange(256)
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = data[at : at + length]
            case 5 | 6:
                data[at : at + rng.randint(0, 2)] = rng.choice(SNIPPETS)
            case 7:
                start = rng.randrange(len(other) + 1)
                data[at:at] = other[start : start + length]
    return bytes(data)


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
    if rng.random() < 0.5:
        return damaged(rng, raw, other)
    return repacked(rng, raw, other) if raw.startswith(b"PK") else nudged(rng, raw)


def by_format() -> dict[str, list[tuple[str, bytes]]]:
    """The samples of each format."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for path in sorted(path for folder in FOLDERS for path in (Path(__file__).parent / folder).iterdir()):
        if path.is_dir() or path.name == "README.md":
            continue
        readings = formats.read_file(path, allow_pickle=True, **OPTIONS.get(path.name, {}))
        raw = path.read_bytes()
        if path.name.startswith(("slp_", "sms_")):
            raw = b"\n#\n".join(part.read_bytes() for part in formats.parts.companions(path))
        found.setdefault(readings[0].format, []).append((path.name, raw))
    return found


def outcome(content: bytes, name: str, format: str | None) -> str:
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
        if "\n" in str(error) or "in the memory there is" in str(error):
            return f"bad: more than one line, or all of the memory: {error!s:.200}"
        return "refused"
    except BaseException as error:
        return f"bad: {type(error).__name__}: {error!s:.200}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def too_slow(number: int, frame: object) -> None:
    raise TimeoutError("5 s are over")


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
            # Half of the cases are sniffed, and may then be read as another format.
            found = outcome(content, name, rng.choice((None, format)))
            kinds[found.partition(":")[0]] += 1
            if found.startswith("bad"):
                print(f"{format} {name} case {case}: {found}")
    print(f"{sum(kinds.values())} cases of {len(chosen or samples)} formats: {dict(kinds)}")
    return 0 if {"valid", "refuted", "refused"} >= set(kinds) and kinds["refuted"] else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
