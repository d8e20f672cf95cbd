"""Scheme files: found by their content or named, read into `Reading`s, written from schemes."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...arguments import PATH, need
from ...errors import LcmaError, SchemeFormatError, unknown_name
from ...home import write_atomic
from ..certificate import Certificate
from ..ring import Ring
from ..scheme import Scheme
from ..target import Target
from . import (
    alphatensor,
    coefficients,
    coq,
    dense,
    equations,
    flip_cpd,
    fmm_database,
    lcma_json,
    lcma_npz,
    literals,
    named_arrays,
    slp,
    sparse_npz,
    written,
)
from .archive import NPY_MAGIC, array_of
from .characters import in_ascii
from .header import stated
from .layouts import named_target
from .parts import PART_SUFFIXES, companions
from .reading import C_TRANSPOSED, C, Reading, UnknownFormatError, Wanted
from .sections import naming_sections

MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class Format:
    """A file format: the functions that recognise, read and write its files, which are text or bytes."""

    name: str
    suffix: str
    convention: str
    """The third factor as the format documents it: indexed by C, or by its transpose (C^T)."""

    sniff: Callable[[Any], bool] = lambda content: False
    parse: Callable[[Any, Wanted], list[Reading]] = lambda content, wanted: []
    render: Callable[[Scheme], str | bytes] | None = None


# In the order in which they are tried on an unknown file: formats with a mark of their own first.
_BINARY = (
    Format("lcma-npz", ".npz", C, lcma_npz.sniff, lcma_npz.parse, lcma_npz.render),
    Format("sparse-npz", ".npz", C, sparse_npz.sniff, sparse_npz.parse),
    Format("alphatensor", ".npz", C_TRANSPOSED, alphatensor.sniff, alphatensor.parse),
    Format("flip-cpd", ".npy", C, flip_cpd.sniff, flip_cpd.parse),
    Format("arrays-npz", ".npz", C, named_arrays.sniff, named_arrays.parse),
)
_TEXT = (
    Format("lcma-json", ".json", C, lcma_json.sniff, lcma_json.parse, lcma_json.render),
    Format("fmm-reduced", ".json", C_TRANSPOSED, fmm_database.sniff_reduced, fmm_database.parse),
    Format("fmm-json", ".json", C_TRANSPOSED, fmm_database.sniff, fmm_database.parse, written.fmm_json),
    Format("maple", ".mpl", C_TRANSPOSED, literals.sniff_maple, literals.parse, written.maple),
    Format("mathematica", ".m", C_TRANSPOSED, literals.sniff_mathematica, literals.parse),
    Format("sms", ".sms", C, dense.sniff_sms, dense.parse_sms, written.sms),
    Format("bini", ".txt", C, dense.sniff_bini, dense.parse_bini),
    Format("slp", ".slp", C, slp.sniff, slp.parse),
    Format("fmm-text", ".txt", C_TRANSPOSED, dense.sniff_fmm_text, dense.parse_fmm_text),
    Format("fast-matmul", ".txt", C, dense.sniff_fast_matmul, dense.parse_fast_matmul),
    Format("alphaevolve", ".py", C_TRANSPOSED, literals.sniff_alphaevolve, literals.parse),
    Format("coefficients", ".csv", C, coefficients.sniff, coefficients.parse),
    Format("equations", ".txt", C, equations.sniff, equations.parse, written.equations),
    Format("exp", ".exp", C_TRANSPOSED, equations.sniff_products, equations.parse, written.exp),
    Format("arrays", ".json", C, literals.sniff, literals.parse),
)
_JSON = frozenset(("lcma-json", "fmm-reduced", "fmm-json"))
"""Formats whose texts are kept as they are written."""

_MARKED = _JSON | {"maple", "lcma-npz", "sparse-npz"}
"""Formats with a mark of their own: a file that has it is of no other."""

FORMATS = {one.name: one for one in (*_TEXT, *_BINARY)}
"""All formats that are read."""

_ALL = {**FORMATS, "coq": Format("coq", ".v", C, render=coq.render)}
_WRITTEN = ("lcma-json", "lcma-npz", "fmm-json", "equations", "exp", "maple", "sms", "coq")
WRITERS = {name: _ALL[name] for name in _WRITTEN}
"""The formats that can also be written; of several with one suffix, the first is the suffix's default."""


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        LcmaError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise unknown_name("format", name, FORMATS) from None


def render(scheme: Scheme, format: str, certificate: Certificate | None = None) -> bytes:
    """A file of the scheme in a format, with its certificate where the format can hold one.

    Raises:
        LcmaError: the format is not written.
        SchemeFormatError: the format can't say what the scheme is.
    """
    if format not in WRITERS:
        raise LcmaError(f"format {format!r} is not written; choose one of {', '.join(WRITERS)}")
    write: Any = WRITERS[format].render
    content = write(scheme, certificate) if format in ("lcma-json", "lcma-npz") else write(scheme)
    return content.encode() if isinstance(content, str) else content


def format_for(path: str | Path) -> str:
    """The first written format whose files end as a path does.

    Raises:
        LcmaError: there is none.
    """
    for name, format_ in WRITERS.items():
        if Path(path).suffix == format_.suffix:
            return name
    mend = f"name one (format=, or --to of lcma convert): {', '.join(WRITERS)}"
    raise LcmaError(f"can't tell the format of {str(path)!r}; {mend}")


def write_file(
    path: str | Path,
    scheme: Scheme,
    certificate: Certificate | None = None,
    format: str | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a scheme to a file that `read_file` and `load` read, in a format or in that of the path's suffix.

    The certificate is stored where the format can hold one (lcma-json and lcma-npz).

    Raises:
        LcmaError: the file exists and `overwrite` is False, it can't be written, or its format is not known.
        SchemeFormatError: the format can't say what the scheme is.
    """
    need(PATH, path=path)
    need(Scheme, scheme=scheme)
    need(Certificate | None, certificate=certificate)
    need(str | None, format=format)
    need(bool, overwrite=overwrite)
    path = Path(path)
    content = render(scheme, format or format_for(path), certificate)
    if not overwrite and path.exists():
        raise LcmaError(f"{path} exists; pass overwrite=True to replace it")
    try:
        write_atomic(path, content)
    except OSError as error:
        raise LcmaError(f"{path} can't be written: {error.strerror}") from None


def parse_text(
    text: str, format: str | None = None, target: Target | None = None, ring: Ring | None = None
) -> list[Reading]:
    """Read the schemes of a text, its format found by content unless named.

    Raises:
        SchemeFormatError: no format fits, or the one that fits finds a fault.
    """
    return parse_bytes(text.encode(), format, target, ring)


def parse_bytes(
    raw: bytes,
    format: str | None = None,
    target: Target | None = None,
    ring: Ring | None = None,
    allow_pickle: bool = False,
) -> list[Reading]:
    """Read the schemes of a file's content, its format found by that content unless named.

    Pickled object arrays are read with `allow_pickle` only, and then as arrays of numbers without
    unpickling.

    Raises:
        SchemeFormatError: no format fits, or the one that fits finds a fault.
    """
    if format is not None:
        format_named(format)
    wanted = Wanted("", target, ring, allow_pickle)
    if binary := _matching(_BINARY, raw, format):
        return _first_reading(binary, raw, raw, wanted)
    text = _decoded(raw)
    if not text.strip():
        raise SchemeFormatError("is empty")
    if "\0" in text:
        raise SchemeFormatError(_what_binary(raw))
    plain = in_ascii(text)
    if not (texts := _matching(_TEXT, plain, format)):
        said = f"{len(text.splitlines())} lines without factors, or an equation such as m1 = (a11 + a22)(b11 + b22)"
        raise UnknownFormatError(
            f"{said}, not a scheme in any known format ({', '.join(FORMATS)}); name one with --format"
        )
    try:
        readings = _first_reading(texts, plain, text, wanted)
        # What is said of several schemes in one text may be said of any of them.
        return readings if len(readings) > 1 else [one.fitting(*stated(plain)) for one in readings]
    except SchemeFormatError as error:
        raise naming_sections(error, plain) from None


def _matching(formats: Sequence[Format], content: str | bytes, named: str | None) -> list[Format]:
    """The formats that a content may be of, in the order in which they are tried; the named one alone."""
    if named is not None:
        return [one for one in formats if named == one.name]
    found: list[Format] = []
    for one in formats:
        if one.sniff(content):
            found.append(one)
            if one.name in _MARKED:
                break
    return found


def _first_reading(
    matching: Sequence[Format], content: str | bytes, written: str | bytes, wanted: Wanted
) -> list[Reading]:
    """The result of the first reader of matching formats, of a content and of it as it is written."""
    failures: list[tuple[str, SchemeFormatError]] = []
    names = [one.name for one in matching]
    for one in matching:
        name = one.name
        formulas = [error for other, error in failures if other in ("equations", "exp")]
        if name == "arrays" and any(not isinstance(error, UnknownFormatError) for error in formulas):
            break  # of formulas that are not understood, the arrays beside them are not taken alone
        try:
            asked = dataclasses.replace(wanted, format=name)
            readings = _guarded(partial(one.parse, written if name in _JSON else content, asked))
        except SchemeFormatError as error:
            failures.append((name, error))
            continue
        if len(matching) == 1 or any(reading.approximations for reading in readings):
            return readings
        why = "the first" if not failures else f"as {', '.join(f'{other}: {error}' for other, error in failures)}"
        note = f"matched {', '.join(names)}; read as {name}, {why}"[:300]
        return [reading.noting(note) for reading in readings]
    _, first = failures[0]
    if len(failures) > 1:
        others = ", ".join(name for name, _ in failures)
        raise SchemeFormatError(f"{first.message} (tried {others})", first.file, first.line)
    raise first


def _decoded(raw: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, or Latin-1 where nothing in it is a control character."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1")
        except UnicodeDecodeError:
            text = "\0"
        plain = sum(character.isascii() for character in text)
        if 2 * plain > len(text) and all(one.isprintable() or one in "\t\r\n\f" for one in text):
            return text
        raise SchemeFormatError(_what_binary(raw)) from None


def _what_binary(raw: bytes) -> str:
    """Return a one-line description of a file that is not text."""
    if raw.startswith(b"PK\x03\x04"):
        return "is a zip archive without numpy arrays; put U, V and W into it with numpy.savez"
    return "is not UTF-8 text, nor an array of a known format"


def read_file(
    path: str | Path,
    format: str | None = None,
    target: Target | None = None,
    ring: Ring | None = None,
    allow_pickle: bool = False,
) -> list[Reading]:
    """Read the schemes of a file; of three files or a folder of them, where a format parts a scheme so.

    Raises:
        SchemeFormatError: the file is missing, too large, or not a scheme.
    """
    need(PATH, path=path)
    need(str | None, format=format)
    need(Target | None, target=target)
    need(Ring | None, ring=ring)
    need(bool, allow_pickle=allow_pickle)
    path = Path(path)
    try:
        parts = companions(path)
        if not parts and path.is_dir():
            raise SchemeFormatError("is a folder, and not of three files ..L, ..R and ..P; name a file", path)
        if parts and (path.is_dir() or path.suffix in PART_SUFFIXES):
            return _read_parts(parts, format, target, ring, allow_pickle)
        raw = _content(path)
        targets = dict.fromkeys((target or named_target(path.stem), target))
        attempts = [partial(parse_bytes, raw, format, one, ring, allow_pickle) for one in targets]
        attempts += [partial(_read_parts, parts, format, target, ring, allow_pickle)] if parts else []
        for attempt in attempts[:-1]:
            with contextlib.suppress(SchemeFormatError):
                return attempt()
        return attempts[-1]()
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror}", path) from None
    except SchemeFormatError as error:
        raise error.located(path) from None


def _read_parts(
    parts: Sequence[Path], format: str | None, target: Target | None, ring: Ring | None, allow_pickle: bool
) -> list[Reading]:
    """Read the scheme of three files."""
    raws = [_content(part) for part in parts]
    note = f"three files: {', '.join(part.name for part in parts)}"
    if all(raw.startswith(NPY_MAGIC) for raw in raws):
        arrays = dict(zip("uvw", (array_of(raw, allow_pickle) for raw in raws), strict=True))
        readings = [named_arrays.reading_of_arrays(arrays, Wanted("arrays-npz", target, ring))]
    else:
        # A comment line parts the three: it ends a line that was left open, and a program.
        readings = parse_bytes(b"\n#\n".join(raws), format, target, ring, allow_pickle)
    return [one.noting(note) for one in readings]


def _content(path: Path) -> bytes:
    with path.open("rb") as stream:
        raw = stream.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise SchemeFormatError(f"is larger than {MAX_FILE_BYTES >> 20} MiB", path)
    return raw


def _guarded(parse: Callable[[], list[Reading]]) -> list[Reading]:
    """The result of a reader; errors that hostile content causes deep inside are raised as faults of the file.

    The garbage collector waits: a reader makes millions of tuples, of which none refers to itself, and a third of its
    time would be spent on looking at them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return parse()
    except SchemeFormatError:
        raise
    except LcmaError as error:  # a size or a name in the file that means nothing
        raise SchemeFormatError(str(error)) from None
    except OverflowError:
        raise SchemeFormatError("a number too large") from None
    except RecursionError:
        raise SchemeFormatError("parentheses, or names that need other names, nested too deep") from None
    except MemoryError:
        raise SchemeFormatError("too large to be read in the memory there is") from None
    finally:
        if collects:
            gc.enable()
