"""`lcma verify`"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...errors import LcmaError, SchemeFormatError
from ...schemes_db import Ring, Target, costs
from ...schemes_db.formats import FORMATS, MAX_FILE_BYTES, lcma_json
from ...schemes_db.names import file_stem, visible
from ...verify import METHODS, AnyReport, Report, recheck_file, verify_file
from ...verify.files import files_below, is_of_no_format
from ..destination import FORCE, claim, write
from ..help import lcma_command
from ..options import RING, TARGET, Choice, argument, group, option
from ..output import given, ratio, wants_json
from ..progress import Progress

EXIT_INVALID = 1

LONG_BYTES = 4 << 20
"""Files from this size on are announced while they are read and verified."""

STDIN = "-"

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Options:
    """The options, which apply to every file."""

    methods: tuple[str, ...] = option("--method", type=Choice(list(METHODS)))
    ring: Ring | None = option(type=RING, metavar="RING")
    target: Target | None = option(type=TARGET, metavar="TARGET")
    format: str | None = option(type=Choice(list(FORMATS)))
    allow_pickle: bool = option()
    recheck: bool = option()
    stability: bool = option()
    certificates: str | None = option("--certificate", metavar="FILE|FOLDER")
    jobs: int = option(type=click.IntRange(1, 256), default=1)
    quiet: bool = option("-q", "--quiet")
    as_json: bool = False
    force: bool = False
    many: bool = False
    """Whether there are several files, or a folder: lines name their file."""
    folders: bool = False

    @property
    def one_certificate(self) -> bool:
        """Whether --certificate names a file."""
        return bool(self.certificates and self.certificates.endswith(".json") and not Path(self.certificates).is_dir())

    @property
    def details(self) -> bool:
        """Whether a verdict has lines below it."""
        return not (self.quiet or self.folders)


@dataclass(frozen=True)
class Answer:
    """The output of one file for stdout and stderr, and its exit code."""

    code: int = 0
    out: str = ""
    err: str = ""
    schemes: int = 0
    valid: int = 0
    skipped: int = 0


@lcma_command
def command(*, files: tuple[str, ...] = argument("FILE|FOLDER|-..."), options: Options = group(Options)) -> int:
    if options.recheck and (options.methods or options.ring or options.target or options.format):
        raise click.UsageError("--recheck takes methods, ring and target from the certificates; leave them out")
    folders = [file for file in files if file != STDIN and Path(file).is_dir()]
    if options.one_certificate:
        if folders or len(files) > 1:
            raise click.UsageError("--certificate FILE.json takes one scheme; name a folder for several")
        claim(str(options.certificates), files)
    options = replace(options, methods=options.methods or ("exact",), as_json=wants_json(), force=given(FORCE))
    options = replace(options, many=len(files) > 1 or bool(folders), folders=bool(folders))
    code = schemes = valid = skipped = 0
    sources: list[tuple[str, bool]] = []
    for file in files:
        if file not in folders:
            sources.append((file, False))
            continue
        try:
            found, others = files_below(file, options.format)
        except SchemeFormatError as error:
            code = max(code, error.exit_code)
            click.echo(f"lcma: {error}", err=True)
            continue
        sources += [(str(path), True) for path in found]
        skipped += others
    for answer in _answers(sources, options, options.jobs):
        code = max(code, answer.code)
        schemes, valid, skipped = schemes + answer.schemes, valid + answer.valid, skipped + answer.skipped
        if answer.out:
            click.echo(answer.out, nl=False)
        if answer.err:
            click.echo(answer.err, nl=False, err=True)
    if folders:
        note = f"; {skipped} files are no schemes and were left out" if skipped else ""
        if schemes or code:
            click.echo(f"lcma: {valid} of {schemes} schemes are valid{note}", err=True)
        else:  # nothing was proven: scripts must not take it for a proof
            click.echo(f"lcma: no scheme lies below {', '.join(folders)}{note}; name the files themselves", err=True)
            code = SchemeFormatError.exit_code
    return code


def _answers(sources: Sequence[tuple[str, bool]], options: Options, jobs: int) -> Iterator[Answer]:
    """The answers in the order of the sources."""
    work = partial(_answer, options=options)
    if min(jobs, len(sources)) < 2:
        yield from map(work, sources)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context
    from unittest.mock import patch

    ignored = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    chunk = max(1, min(64, len(sources) // (4 * jobs)))
    with ProcessPoolExecutor(min(jobs, len(sources)), get_context("spawn"), signal.signal, ignored) as pool:
        try:
            # The processes start with the first of the work, each with one thread: with more they fight for the cores.
            with patch.dict(os.environ, dict.fromkeys(THREADS, "1") | os.environ):
                answers = pool.map(work, sources, chunksize=chunk)
            yield from answers
        except BrokenProcessPool:
            raise LcmaError("a process was killed, perhaps for its memory; take fewer --jobs") from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _answer(source: tuple[str, bool], options: Options) -> Answer:
    """The verdict on one file; `source` is its name, and whether it was found in a folder."""
    file, found = source
    try:
        reports = _reports(file, options)
        if options.one_certificate and len(reports) > 1:
            raise LcmaError(f"{file} holds {len(reports)} schemes: name a folder for their certificates")
        texts = [_text(report, options) for report in reports]
        for report in reports:
            _write_certificate(report, file, options)
    except SchemeFormatError as error:
        if found and options.format is None and is_of_no_format(error):
            return Answer(skipped=1)
        if options.as_json:
            out = json.dumps({"lcma_report": 1, "file": file, "ok": False, "unreadable": str(error)})
            return Answer(error.exit_code, out=f"{out}\n")
        return Answer(error.exit_code, err=f"lcma: {visible(str(error))}\n")
    except LcmaError as error:
        where = "" if file in str(error) else f"{file}: "
        return Answer(error.exit_code, err=f"lcma: {visible(f'{where}{error}')}\n")
    valid = sum(report.ok for report in reports)
    return Answer(0 if valid == len(reports) else EXIT_INVALID, "".join(texts), "", len(reports), valid)


def _reports(file: str, options: Options) -> list[AnyReport]:
    if file == STDIN:
        return _standard_input(options)
    size = Path(file).stat().st_size if Path(file).is_file() else 0
    long = size >= LONG_BYTES and not options.quiet
    with Progress(f"reading and verifying {file}, {size >> 20} MiB") if long else nullcontext() as progress:
        if progress is not None:
            progress.announce()
        if options.recheck:
            return recheck_file(file, options.allow_pickle)
        return verify_file(file, options.methods, options.format, options.target, options.ring, options.allow_pickle)


def _standard_input(options: Options) -> list[AnyReport]:
    """The reports on standard input, buffered in a file while it is read."""
    if sys.stdin is None:
        raise SchemeFormatError("can't be read: standard input is closed", STDIN)
    try:
        raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror}", STDIN) from None
    with tempfile.TemporaryDirectory(prefix="lcma-") as folder:
        path = Path(folder, "stdin")
        path.write_bytes(raw)
        try:
            reports = _reports(str(path), options)
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, STDIN, error.line) from None
        except LcmaError as error:
            raise type(error)(str(error).replace(str(path), STDIN)) from None
    return [replace(report, label=report.label.replace(str(path), STDIN)) for report in reports]


def _write_certificate(report: AnyReport, file: str, options: Options) -> None:
    """Our JSON of a valid scheme, which holds all that --recheck needs."""
    if options.certificates is None or not isinstance(report, Report) or report.certificate is None:
        return
    path = Path(options.certificates)
    if not options.one_certificate:
        stem = Path(report.label.replace("#", "-")).stem if report.label != STDIN else "stdin"
        path /= f"{file_stem(stem, report.scheme.digest)}.json"
        claim(path, [file], options.force)
    write(path, lcma_json.render(report.scheme, report.certificate))


def _text(report: AnyReport, options: Options) -> str:
    """The lines on stdout for a report."""
    if options.as_json:
        data: dict[str, Any] = report.to_json()
        if options.stability and isinstance(report, Report):
            data["stability"] = _stability(report)
        return json.dumps(data) + "\n"
    if options.quiet and report.ok and not (isinstance(report, Report) and report.warned):
        return ""
    lines = [f"{report.headline()}{f'  {visible(report.label)}' if options.many or options.quiet else ''}"]
    if options.details and isinstance(report, Report):
        lines += [f"  {f'{name}:':<14}{value}" for name, value in _details(report).items()]
    if options.stability and not options.quiet and isinstance(report, Report):
        lines += [f"  {'stability:':<14}{line}" for line in _stability_lines(report)]
    if options.details:
        lines += [f"  note: {visible(note)}" for note in report.notes]
    return "\n".join(lines) + "\n"


def _details(report: Report) -> dict[str, str]:
    scheme = report.scheme
    full, half = costs.full_and_half(scheme)
    known = report.known
    values = ", ".join(str(value) for value in scheme.coefficients[:12]) + (
        ", ..." if len(scheme.coefficients) > 12 else ""
    )
    lines = {
        "format": f"{report.format}, third factor by {' and by '.join(report.conventions)}",
        "coefficients": f"{{{values}}}{' (ternary)' if scheme.ternary and not scheme.ring.characteristic else ''}",
        "additions": str(costs.additions(scheme)),
        "digest": scheme.digest,
        "best known": f"rank {known.rank}" + (f", {known.full} full + {known.half} half" if known.half else "")
        if known
        else "no entry in the tables",
    }
    if half:
        lines["products"] = f"{full} full + {half} half; one level {ratio(costs.one_level_cost(scheme))}"
    return lines


def _stability(report: Report) -> dict[str, Any] | None:
    """Factors, bounds and measured errors of one level, or None where there is nothing to measure."""
    from ...verify.stability import UNIT_ROUNDOFF, measure, prefactor

    if not report.ok or report.scheme.ring.characteristic or report.scheme.gaussian:
        return None
    return {
        "growth_factor": costs.growth_factor(report.scheme),
        "prefactor": prefactor(report.scheme),
        "measured": [asdict(measure(report.scheme, dtype)) for dtype in UNIT_ROUNDOFF],
    }


def _stability_lines(report: Report) -> list[str]:
    figures = _stability(report)
    if figures is None:
        return ["nothing to measure: no valid scheme of real numbers"]
    lines = [f"growth factor {figures['growth_factor']:g}, prefactor {figures['prefactor']}, no part of the proof"]
    for one in figures["measured"]:
        shape = "x".join(map(str, one["shape"]))
        lines.append(
            f"{one['dtype']} {shape}, {one['levels']} level: error {one['error']:.1e} "
            f"(classical {one['classical']:.1e}, bound {one['bound']:.1e})"
        )
    return lines
