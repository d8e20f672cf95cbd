"""Feed damaged sample files to the readers: `fuzz_formats.py CASES SEED [FORMAT...]`, CASES a format.

It runs in a process of its own under a limit of 1 GiB of memory, with an alarm after 5 s of processor
time a case. Every case must give readings or a SchemeFormatError of one line; what does not is
printed, and the exit code is 1.
"""

import random
import resource
import signal
import sys
import warnings
from pathlib import Path

from lcma.errors import SchemeFormatError
from lcma.schemes_db import formats, parse_target
from lcma.schemes_db.ring import Z2, Z3

HERE = Path(__file__).parent
FOLDERS = (
    HERE / "samples",
    HERE / "published",
    HERE / "published" / "structured",
    HERE / "handwritten",
    HERE / "dialects",
)
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


def by_format() -> dict[str, list[tuple[str, bytes]]]:
    """The samples of each format."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for path in sorted(path for folder in FOLDERS for path in folder.iterdir()):
        if path.is_dir() or path.name == "README.md":
            continue
        readings = formats.read_file(path, allow_pickle=True, **OPTIONS.get(path.name, {}))
        raw = path.read_bytes()
        if path.name.startswith(("slp_", "sms_")):
            raw = b"\n#\n".join(part.read_bytes() for part in formats.parts.companions(path))
        found.setdefault(readings[0].format, []).append((path.name, raw))
    return found


def fault(raw: bytes, name: str, format: str | None) -> str | None:
    """Return the fault of a case, or None."""
    signal.setitimer(signal.ITIMER_PROF, 5)
    try:
        formats.parse_bytes(raw, format, allow_pickle=True, **OPTIONS.get(name, {}))
    except SchemeFormatError as error:
        if "\n" in str(error) or "in the memory there is" in str(error):
            return f"more than one line, or all of the memory: {error!s:.200}"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.200}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def too_slow(number: int, frame: object) -> None:
    raise TimeoutError("5 s are over")


def main(cases: int, seed: int, chosen: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    signal.signal(signal.SIGPROF, too_slow)
    warnings.simplefilter("error")
    samples = by_format()
    contents = [raw for pairs in samples.values() for _, raw in pairs]
    bad = done = 0
    for format in chosen or samples:
        rng = random.Random(f"{seed} {format}")
        for case in range(cases):
            name, raw = rng.choice(samples[format])
            content = damaged(rng, raw, rng.choice(contents))
            # Half of the cases are sniffed, and may then be read as another format.
            if found := fault(content, name, rng.choice((None, format))):
                bad += 1
                print(f"{format} {name} case {case}: {found}")
            done += 1
    print(f"{done} cases of {len(chosen or samples)} formats, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
