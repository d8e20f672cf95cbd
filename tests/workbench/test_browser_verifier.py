"""The verifier of the catalogue's page, run by node and in Chromium: the same verdict as `lcma verify`."""

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import lcma
from lcma.errors import LcmaError
from lcma.schemes_db import Provenance
from lcma.schemes_db.formats import render
from lcma.schemes_db.shipped import shipped, shipped_names

SCRIPT = Path(lcma.__file__).parent / "workbench" / "site" / "static" / "verify.js"
FORMATS = ("lcma-json", "equations", "fmm-json")


@pytest.fixture(scope="module", params=["node", "chromium"])
def judge(request):
    """Return the script's verdict on each of a list of texts, with milliseconds; skip if nothing runs JavaScript."""
    if request.param == "chromium":
        browser, (folder, _) = request.getfixturevalue("browser"), request.getfixturevalue("site")
        browser.open(folder / "out" / "verify.html")
        return lambda texts: in_page(browser, texts)
    if shutil.which("node") is None:
        pytest.skip("node is not installed: the script is JavaScript")
    return in_node


def in_page(browser, texts):
    """The answers of the script that the page has loaded, a text at a time."""
    call = "(() => { const start = performance.now(); const answer = LCMA_VERIFY(%s);"
    call += " return { ...answer, milliseconds: performance.now() - start }; })()"
    return [browser.js(call % json.dumps(text)) for text in texts]


def in_node(texts):
    run = subprocess.run(
        ["node", str(Path(__file__).with_name("verify_texts.js")), str(SCRIPT)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(run.stdout)


def by_command(text, folder):
    """Return the command's verdict: (ok or None, headline without the time and what is near, convention)."""
    path = folder / "scheme"
    path.write_text(text)
    try:
        (report,) = lcma.verify_file(path)
    except LcmaError:
        return None, "", ""
    headline = re.sub(r", [\d.]+ m?s\)$", ")", report.headline()).removesuffix(f"; {getattr(report, 'hint', '')}")
    return report.ok, headline, report.conventions[0]


def written(names, bare=False):
    """The files of shipped schemes, `bare` without provenance; a format that can't hold a target is left out."""
    for name in names:
        scheme = shipped(name).scheme
        scheme = scheme.replace(provenance=Provenance()) if bare else scheme
        for format in FORMATS:
            try:
                yield name, format, render(scheme, format).decode()
            except LcmaError:
                assert format == "fmm-json"


@pytest.mark.parametrize("largest", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_shipped_schemes_have_the_verdict_of_the_command(judge, tmp_path, largest):
    names = [name for name in shipped_names() if shipped(name).scheme.rank <= largest]
    files = list(written(names))
    assert len(files) > 2 * len(names) > 50
    for (name, format, text), answer in zip(files, judge([text for *_, text in files]), strict=True):
        wanted = by_command(text, tmp_path)
        assert wanted[0] is True
        assert (answer["ok"], answer["headline"], answer["convention"]) == wanted, (name, format)
        assert answer["format"] == format


def with_another(pattern, change):
    """Returns a fault: one match of a pattern changed, None where the text has none."""

    def fault(rng, text):
        places = [match.start() for match in re.finditer(pattern, text)]
        at = rng.choice(places) if places else None
        return None if at is None else text[:at] + change(rng, text[at]) + text[at + 1 :]

    return fault


with_wrong_number = with_another(r"(?<=[:,\[( ])[012](?=[,}\] *])", lambda rng, old: str(int(old) + rng.choice((1, 2))))
with_wrong_sign = with_another(r"(?<=[ (\[])[-+](?=[ a-c0-9m])", lambda rng, old: "-" if old == "+" else "+")


def with_line_lost(rng, text):
    """One line lost, but for those that make a JSON file one of this format."""
    lines = text.split("\n")
    del lines[rng.choice([place for place, line in enumerate(lines[:-1]) if not re.match(r'\s*"[nm]":', line)])]
    return "\n".join(lines)


def with_rows_exchanged(rng, text):
    """The right sides of two equations, or two rows of a JSON file, in each other's place."""
    lines = text.split("\n")
    rows = [place for place, line in enumerate(lines) if re.match(r'\s*(\{"u"|\[|[mc]\d+ =)', line)]
    first, second = rng.sample(rows, 2)
    if "=" in lines[first]:
        (left, one), (right, other) = (lines[place].split("=", 1) for place in (first, second))
        lines[first], lines[second] = f"{left}={other}", f"{right}={one}"
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def with_character_lost(rng, text):
    """One character lost, wherever it is."""
    at = rng.randrange(len(text))
    return text[:at] + text[at + 1 :]


@pytest.fixture(scope="module")
def small_files():
    return [text for *_, text in written([name for name in shipped_names() if shipped(name).scheme.rank < 60], True)]


FAULTS = (with_wrong_number, with_wrong_sign, with_line_lost, with_rows_exchanged)


def test_corrupted_files_have_the_verdict_of_the_command(judge, small_files, tmp_path):
    rng = random.Random(20)
    texts = []
    while len(texts) < 160:
        text = FAULTS[len(texts) % len(FAULTS)](rng, rng.choice(small_files))
        texts += [text] if text else []
    seen = {True: 0, False: 0, None: 0}
    for text, answer in zip(texts, judge(texts), strict=True):
        wanted = by_command(text, tmp_path)
        assert answer["ok"] is wanted[0], (answer["headline"], wanted, text[:3000])
        if wanted[0] is not None:
            assert (answer["headline"], answer["convention"]) == wanted[1:]
        seen[wanted[0]] += 1
    assert seen[False] >= 60
    assert seen[None] >= 6
    assert seen[True] >= 2  # equal rows exchanged, a lost comment


def test_a_mutilated_text_is_left_to_the_command_or_judged_alike(judge, small_files, tmp_path):
    """The command skips prose and knows more spellings, so the page may decline; it never says the opposite."""
    rng = random.Random(21)
    texts = [with_character_lost(rng, rng.choice(small_files)) for _ in range(60)]
    declined = 0
    for text, answer in zip(texts, judge(texts), strict=True):
        wanted = by_command(text, tmp_path)
        if answer["ok"] is None:
            declined += wanted[0] is not None
        else:
            assert (answer["ok"], answer["headline"], answer["convention"]) == wanted, text[:3000]
    assert declined < 4


def test_what_the_page_does_not_read_is_left_to_the_command(judge):
    texts = ["", "nothing", '{"a": 1}', "{", '{"n": [2, 2], "m": 1, "u": []}', "# ring: Q(i)\nm1 = a11 b11\nc11 = m1"]
    answers = judge([*texts, "m1 = a11 b11\nm2 = a21 b11\nm3 = a22 b21\nc11 = m1\nc21 = m2 + m3"])  # names no target
    assert [answer["ok"] for answer in answers] == [None] * len(answers)
    assert all(answer["headline"] for answer in answers)


def test_numbers_are_exact(judge):
    big = 3**60
    text = f"m1 = {big} a11 * b11\nc11 = 1/{big}*m1\n"
    (good, bad) = judge([text, text.replace(f"1/{big}", f"1/{big + 1}")])
    assert good["ok"] is True
    assert good["headline"] == "OK 1x1x1 rank 1 over Q (exact, 1 equations)"
    assert bad["ok"] is False
    assert f"is {big}/{big + 1}, wanted 1" in bad["headline"]


def test_5x5x5_takes_less_than_a_second(judge):
    text = render(shipped("5x5x5-r93").scheme, "equations").decode()
    (answer,) = judge([text])
    assert answer["ok"] is True
    assert answer["milliseconds"] < 1000
