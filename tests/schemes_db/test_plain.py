"""Plain texts read as a whole: the same readings as statement by statement, and nothing that those refuse."""

import random
from pathlib import Path

import pytest

from lcma import naive, tensor
from lcma.errors import SchemeFormatError
from lcma.schemes_db import parse_target
from lcma.schemes_db.formats import equations, exp, plain, render
from lcma.schemes_db.shipped import shipped

HERE = Path(__file__).parent
READERS = {"equations": (equations, "read_equations"), "exp": (exp, "read_trilinear")}


def schemes():
    strassen, laderman = shipped("strassen").scheme, shipped("laderman").scheme
    return [strassen, laderman, naive(parse_target("2x3x1")), tensor(strassen, laderman).replace(name="36 = 6 6")]


TEXTS = {(name, number): render(scheme, name).decode() for name in READERS for number, scheme in enumerate(schemes())}
SNIPPETS = [
    *"+-*()[],=\n \t#ab cm0129",
    "a11",
    "b[1,2]",
    "a10",
    "m1",
    "M1",
    "2*",
    "02*",
    "9" * 19,
    "\r\n",
    "\f",
    "()",
    "+ 3*",
]
SNIPPETS += [
    "m1 = (a11)(b11)\n",
    "c11 = m1\n",
    "(a11)*(b11)*(c11)\n",
    " = ",
    ")*(",
    ") (",
    "a[129,1]",
    "# x\n",
    "\\",
    "\x85",
]


def read_as_a_whole(reader, text):
    lines = plain.scan(text)
    return lines is not None and getattr(plain, reader)(lines) is not None


def outcome(module, text):
    """Return the result of reading a text, in a form that can be compared."""
    try:
        (reading,) = module.parse(text)
    except SchemeFormatError:
        return "refused"
    return [
        (convention, scheme.target.name, scheme.ring, scheme.name, scheme.factors)
        for convention, scheme in reading.candidates
    ] + [reading.notes, reading.declared, reading.approximations]


def damaged(rng, text):
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(text) + 1)
        snippet = rng.choice(SNIPPETS)
        match rng.randrange(4):
            case 0:
                text = text[:at] + snippet + text[at:]
            case 1:
                text = text[:at] + snippet + text[at + len(snippet) :]
            case 2:
                text = text[:at] + text[at + rng.randint(1, 6) :]
            case 3:
                lines = text.splitlines(keepends=True)
                rng.shuffle(lines)
                text = "".join(lines)
    return text


@pytest.mark.parametrize("format", READERS)
def test_texts_are_read_as_by_statements(format, monkeypatch):
    module, reader = READERS[format]
    rng = random.Random(5)
    texts = [text for (name, _), text in TEXTS.items() if name == format]
    texts += [damaged(rng, rng.choice(texts[:3])) for _ in range(400)]
    quick = [read_as_a_whole(reader, text) for text in texts]
    outcomes = [outcome(module, text) for text in texts]
    assert all(quick[:4])
    assert 50 < sum(quick) < 350  # both ways are tried
    monkeypatch.setattr(module, reader, lambda lines: None)
    for text, found in zip(texts, outcomes, strict=True):
        assert found == outcome(module, text), text


@pytest.mark.parametrize("format", READERS)
def test_a_line_that_is_too_long_is_left_to_the_other_readers(format, monkeypatch):
    module, reader = READERS[format]
    text = TEXTS[format, 3]
    whole = outcome(module, text)
    assert read_as_a_whole(reader, text)
    monkeypatch.setattr(plain, "MAX_LINE", 20)
    assert not read_as_a_whole(reader, text)
    assert outcome(module, text) == whole
