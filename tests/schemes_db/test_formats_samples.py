"""Every format read from a committed sample of <2,3,4:22>, verified, written and read again, and damaged samples."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db import formats
from lcma.schemes_db.constructions import direct_sum, extend
from lcma.schemes_db.formats import FORMATS, WRITERS, parse_bytes, read_file, render
from lcma.schemes_db.ring import QI, Q
from lcma.verify.report import judge

from ..refusal import read_beside, refuses_with
from ..reports import reading_of, report_of
from .archives import zipped
from .fuzz_files import OPTIONS

SAMPLES = Path(__file__).parent / "samples"
TARGET = lcma.parse_target("2x3x4")

SAMPLES_OF = read_beside(__file__, "samples.toml")
CONTENTS = {name: (kind, held.split()) for kind, files in SAMPLES_OF.items() for name, held in files.items()}

RINGS = {"z": "Z", "q": "Q", "qi": "Q(i)", "2": "Z2", "3": "Z3"}


def ternary():
    """<2,3,4:22> over Z: two of Strassen's schemes beside each other, and one more row of B."""
    strassen = lcma.resolve("strassen")[0]
    return extend(direct_sum(strassen, strassen, "n"), "k")


def rational():
    """The same with U of every third product doubled and W halved."""
    u, v, w = (factor.dense.copy() for factor in ternary().factors)
    u[::3] *= 2
    w *= 2
    w[::3] //= 2
    return lcma.Scheme.from_arrays(TARGET, u, v, w, Q, denominators=(1, 1, 2))


def complex_():
    """The same with U of every third product times 1 + i and W times (1 - i)/2."""
    u, v, w = (np.stack([factor.dense, 0 * factor.dense], axis=3) for factor in ternary().factors)
    w *= 2
    u[::3, ..., 1], w[::3] = u[::3, ..., 0], w[::3] // 2
    w[::3, ..., 1] = -w[::3, ..., 0]
    return lcma.Scheme.from_arrays(TARGET, u, v, w, QI, denominators=(1, 1, 2))


SCHEMES = {"z": ternary, "q": rational, "qi": complex_}


@pytest.fixture(scope="module")
def digests():
    z = ternary()
    residues = {p: z.replace(ring=lcma.parse_ring(f"Z{p}")).digest for p in "23"}
    return {name: make().digest for name, make in SCHEMES.items()} | residues


def read(name, **options):
    return read_file(SAMPLES / name, allow_pickle=True, **OPTIONS.get(name, {}), **options)


def test_every_sample_and_every_format_is_there():
    assert {path.name for path in SAMPLES.iterdir()} == set(CONTENTS)
    assert {format_ for format_, _ in CONTENTS.values()} == set(FORMATS)


@pytest.mark.parametrize("name", list(CONTENTS))
def test_samples_are_read_verified_written_and_read_again(name, digests):
    format_, wanted = CONTENTS[name]
    readings = read(name)
    assert [reading.format for reading in readings] == [format_] * len(wanted)
    for reading, key in zip(readings, wanted, strict=True):
        report = judge(reading, name)
        assert report.ok
        assert report.over_z2_only == (key == "2")
        assert report.conventions == (FORMATS[format_].convention,)
        assert report.scheme.digest == digests[key]
        assert report.scheme.ring.name == RINGS[key]
        to = format_ if format_ in WRITERS else "lcma-json"
        again = reading_of(render(report.scheme, to), format=to, ring=report.scheme.ring)
        assert again.scheme.digest == report.scheme.digest


@pytest.mark.parametrize("name", ["lcma.json", "fmm.json", "equations.txt", "gaussian.exp", "triads.mpl", "one.sms"])
def test_what_is_written_stays_the_same_to_the_byte(name):
    format_, (scheme,) = CONTENTS[name]
    assert render(SCHEMES[scheme](), format_) == (SAMPLES / name).read_bytes()


@pytest.mark.parametrize("name", list(CONTENTS))
def test_a_forced_format_reads_the_same_as_a_sniffed_one(name):
    forced = read(name, format=CONTENTS[name][0])
    assert [reading.scheme.digest for reading in forced] == [reading.scheme.digest for reading in read(name)]


def test_a_third_factor_by_c_where_the_format_says_transpose_is_found_out(digests):
    scheme = ternary()
    lines = ["2 3 4 22"]
    lines += [" ".join(map(str, factor.dense.ravel().tolist())) for factor in scheme.factors]
    report = report_of("\n".join(lines))
    assert report.conventions == ("C",)
    assert report.notes == ("third factor indexed by C, where the format documents C^T",)
    assert report.scheme.digest == digests["z"]


def test_three_files_are_read_by_their_folder_too(tmp_path, digests):
    for role in "LRP":
        (tmp_path / f"x_{role}.sms").write_bytes((SAMPLES / f"sms_{role}.sms").read_bytes())
    assert reading_of(tmp_path).scheme.digest == digests["q"]
    (tmp_path / "x_P.sms").unlink()
    refuses_with(SchemeFormatError, "is a folder", read_file, tmp_path)
    refuses_with(SchemeFormatError, "1 matrices, where L, R and P belong", read_file, tmp_path / "x_L.sms")


@pytest.mark.parametrize("format_", list(WRITERS))
def test_gaussian_coefficients_are_written_or_refused(format_):
    scheme = complex_()
    if format_ in ("fmm-json", "maple", "sms", "coq"):
        refuses_with(SchemeFormatError, r"not real|over the integers", render, scheme, format_)
    else:
        assert reading_of(render(scheme, format_)).scheme.digest == scheme.digest


def test_an_encrypted_or_doubled_member_is_refused(strassen):
    raw = bytearray(render(strassen, "lcma-npz"))
    directory = raw.rindex(b"PK\x01\x02")
    raw[directory + 8] |= 1
    refuses_with(SchemeFormatError, "encrypted", parse_bytes, bytes(raw))
    with pytest.warns(UserWarning, match="Duplicate name"):
        doubled = zipped([("lcma_scheme.npy", b"1"), ("lcma_scheme.npy", b"2")])
    refuses_with(SchemeFormatError, "two members of one name", parse_bytes, doubled)


@pytest.mark.parametrize("own", [formats.lcma_json, formats.lcma_npz])
def test_our_formats_keep_provenance_and_certificate(own):
    reading = lcma.schemes_db.shipped.shipped("eca-stage1")
    written = own.render(reading.scheme, reading.certificate)
    again = reading_of(written)
    assert again.certificate == reading.certificate
    assert again.scheme.provenance == reading.scheme.provenance
    assert own.render(again.scheme, again.certificate) == written


@pytest.mark.parametrize(("cases", "seed"), [(8, 1), pytest.param(200, 2, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_judged(cases, seed):
    """So many of each format, never with a traceback, never a hang, always one line; `make fuzz` tries 10,000."""
    # Every thread of OpenBLAS reserves memory that counts against the limit.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("fuzz_files.py")), str(cases), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-4000:] + done.stderr[-4000:]
