"""Provenance as steps: written, read, repeated, and told where nothing can be repeated."""

import dataclasses
import functools
import json
import re

import numpy as np
import pytest

import lcma
from lcma.errors import CatalogError, TargetError
from lcma.schemes_db import Provenance, migrations
from lcma.schemes_db.algebra import naive, permute, reverse, tensor, transpose
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.composition import best_composition, build
from lcma.schemes_db.constructions import change_of_basis, direct_sum, extend, project
from lcma.schemes_db.formats import lcma_json
from lcma.schemes_db.provenance import Step
from lcma.schemes_db.reproduce import reproduced
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.schemes_db.uneven import uneven_product
from lcma.verify import certify
from lcma.workbench.commands import show
from lcma.workbench.commands.show import _harmless, lifted_again

from ..refusal import read_beside, refuses_with


def no_search(step):
    raise CatalogError("no searches here")


def again(scheme, *kept):
    """The scheme that the steps make from kept schemes, read back from JSON first."""
    read = lcma_json.parse(lcma_json.render(scheme))[0].scheme
    assert read.provenance == scheme.provenance
    by_digest = {one.digest: one for one in kept}

    def find(digest):
        if digest not in by_digest:
            raise CatalogError(f"no scheme {digest[:12]}")
        return by_digest[digest]

    return reproduced(read, find, no_search)


def constructions(strassen):
    basis = change_of_basis(strassen, [[1, 2], [0, 1]], [[1, 0], [-3, 1]], np.eye(2, dtype=int))
    return {
        "tensor": tensor(strassen, strassen),
        "sum": direct_sum(strassen, naive(lcma.parse_target("2x2x3")), "n"),
        "extended": extend(permute(extend(strassen, "k"), "nkm"), "m", 2),
        "projected": project(transpose(extend(strassen, "m")), "n", 1),
        "basis": tensor(basis, reverse(basis)),
        "uneven": uneven_product(
            extend(strassen, "n"),
            ((2, 1), (1, 1), (2, 1, 1)),
            [naive(lcma.Target.general(*shape)) for shape in ((1, 1, 1), (1, 1, 2), (2, 1, 1), (2, 1, 2))],
        ),
        "permuted": permute(tensor(strassen, permute(extend(strassen, "n"), "kmn")), "nmk"),
        "naive": naive(lcma.parse_target("3x3x4:tri-left")),
    }


@pytest.mark.parametrize("name", list(constructions(lcma.resolve("strassen")[0])))
def test_constructions_are_made_again(name, strassen):
    made = constructions(strassen)[name]
    assert made.provenance.steps
    found = again(made, strassen)
    assert found.digest == made.digest
    assert found == made


def test_a_composition_of_the_catalogue_is_made_again_from_what_it_names():
    with Catalog.in_memory() as catalog:
        part = best_composition((6, 7, 8), catalog.best_ranks())
        made = build(part, (6, 7, 8), lambda name: catalog.find(name)[0])
        assert reproduced(made, lambda digest: catalog.find(digest)[0], no_search).digest == made.digest


def test_three_rotations_do_not_grow_the_steps(strassen):
    turned = strassen
    for _ in range(9):
        turned = lcma.schemes_db.algebra.rotate(turned)
    assert turned == strassen
    assert len(turned.provenance.steps) <= 3


def test_steps_that_can_not_be_repeated_say_so(strassen):
    for name, message in (("laderman", "printed, not computed"), ("strassen", "printed, not computed")):
        refuses_with(CatalogError, message, again, lcma.resolve(name)[0])
    imported = strassen.replace(provenance=Provenance("import", source="mine.txt", file_sha256="ab"))
    refuses_with(CatalogError, r"step 1 \(read file=mine.txt sha256=ab\) can't be repeated: the file", again, imported)
    refuses_with(CatalogError, "no scheme", again, tensor(strassen, strassen))
    refuses_with(CatalogError, "has no step", again, strassen.replace(provenance=Provenance()))
    searched = strassen.replace(provenance=Provenance("search", command="lcma search 2x2x2", seed=1))
    refuses_with(CatalogError, "no searches here", again, searched)


def test_a_step_with_another_result_is_named(strassen):
    made = tensor(extend(strassen, "n"), strassen)
    first, *rest = made.provenance.steps
    forged = dataclasses.replace(made.provenance, steps=(dataclasses.replace(first, makes="0" * 64), *rest))
    refuses_with(CatalogError, r"step 1 .* gives", again, made.replace(provenance=forged), strassen)


@pytest.mark.parametrize("step", [
    Step("tensor", ("a",)),
    Step("sum", ("S", "S"), (("axis", "q"),)),
    Step("project", ("S",), (("axis", "m"), ("index", "-1"))),
    Step("basis", ("S",), (("p", "x"), ("q", "1"), ("r", "1"))),
    Step("naive", (), (("target", "mask(/etc/passwd)"), ("ring", "Z"))),
])  # fmt: skip
def test_steps_with_values_that_mean_nothing_end_in_one_line(step, strassen):
    made = strassen.replace(provenance=Provenance("composition", steps=(step,)))
    refuses_with(CatalogError, "can't be repeated", reproduced, made, lambda digest: strassen, no_search)


def test_the_catalogue_notes_the_steps_of_older_rows(tmp_path, monkeypatch, strassen):
    steps = migrations.STEPS
    monkeypatch.setattr(migrations, "STEPS", steps[: steps.index(migrations._note_steps)])
    path = tmp_path / "catalog.db"
    squared = tensor(strassen, strassen)
    old = {
        "squared": dataclasses.replace(squared.provenance, steps=()),
        "odd": Provenance("composition", relation="made by hand"),
    }
    schemes = {"squared": squared, "odd": transpose(squared)}
    with Catalog.open(path) as catalog:
        for name, scheme in schemes.items():
            older = scheme.replace(name=name, provenance=old[name])
            catalog.add(older, certify(older))
    monkeypatch.setattr(migrations, "STEPS", steps)
    with Catalog.open(path) as catalog:
        found, _ = catalog.find("squared")
        assert found.provenance.steps == (Step("tensor", (strassen.digest, strassen.digest)),)
        assert dataclasses.replace(found.provenance, steps=()) == old["squared"]
        assert catalog.find("odd")[0].provenance == old["odd"]
        document = catalog._found("squared")[1]
        assert len(document.splitlines()) > squared.rank  # a product a line, as before
        assert json.loads(document)["name"] == "squared"


@functools.cache
def every_shipped():
    return {name: shipped(name).scheme for name in shipped_names()}


@pytest.mark.parametrize(("largest", "number"), [(30, 9), pytest.param(130, 47, marks=pytest.mark.slow)])
def test_the_lifts_of_shipped_schemes_are_made_again(largest, number):
    lifted = [one for one in every_shipped().values() if one.provenance.steps[-1].do == "lift" and one.rank <= largest]
    again = [one for one in lifted if one.provenance.steps[-1].repeatable]
    assert len(again) >= number
    for scheme in again:
        (*_, before, last) = scheme.provenance.steps
        assert last.of == (before.makes,) == (scheme.over_z2().digest,), scheme.name
        seed = int(last.value("seed") or 0)
        assert lifted_again(scheme.over_z2(), scheme.ring, seed).digest == scheme.digest, scheme.name


def test_two_thin_masked_schemes_beside_each_other_are_made_again():
    scheme = every_shipped()["6x6x6-tri-out-r106"]
    assert reproduced(scheme, by_digest, no_search).digest == scheme.digest
    half = every_shipped()["6x3x6-tri-out-r53"]
    certify(direct_sum(half, half, "k"))
    refuses_with(TargetError, ".", direct_sum, half, half, "m")
    refuses_with(TargetError, ".", direct_sum, half, every_shipped()["6x6x6-r153"], "k")


def by_digest(digest):
    return next(one for one in every_shipped().values() if one.digest == digest)


def test_every_command_of_a_shipped_scheme_is_allowed():
    commands = {
        step.value("command")
        for name in shipped_names()
        for step in shipped(name).scheme.provenance.history
        if step.do == "search" and step.repeatable and "--device" not in step.value("command")
    }
    assert len(commands) > 30
    for command in commands:
        assert command.split()[2].strip("'") == _harmless(command)[0]
    assert _harmless("lcma search --seed=1 -v 3x3x3 --json") == ["3x3x3", "--seed=1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "2x2x3-r11", "2x3x3-r15", "3x3x3-r23", "4x4x4-band1-r34", "3x4x6-r56", "2x4x13-r83", "2x9x10-r135",
])  # fmt: skip
def test_shipped_searches_give_the_same_scheme_now(home, name, run):
    said = run.ok("show", name, "--reproduce")
    assert re.search("1 step makes the same scheme|2 steps make the same scheme", said)


NOT_REPEATED = read_beside(__file__, "not_repeated.toml")


@pytest.mark.parametrize(("text", "reason"), [(text, why) for why, texts in NOT_REPEATED.items() for text in texts])
def test_searches_that_are_not_repeated_open_no_file_and_no_connection(text, reason, strassen, monkeypatch):
    """Commands, or options of a search of 2x2x2."""
    command = f"lcma search 2x2x2 --seed 1 {text}" if text.startswith("-") else text
    monkeypatch.setattr(show.subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    step = Step("search", (), (("command", command),))
    refuses_with((CatalogError, TargetError), reason, show.searched_again, step, strassen.digest)


def test_the_steps_of_shipped_schemes_are_data():
    shipped_digests = {one.digest for one in every_shipped().values()}
    for scheme in every_shipped().values():
        origin, kept, mod2 = scheme.provenance, shipped_digests, scheme.over_z2()
        assert origin.steps[-1].makes == ""
        assert all(step.makes for step in origin.steps[:-1])
        # What a step starts from is shipped, was made before, is the scheme modulo 2, or is named as not kept.
        if mod2 is not None and mod2.digest != scheme.digest:
            kept = kept | {mod2.digest}
        used = {digest for step in origin.steps for digest in (*step.of, step.makes) if digest} | set(origin.parents)
        known = {digest for digest in used if any(one.startswith(digest) for one in kept)}
        assert used - known == set(origin.not_kept)
        for step in origin.steps:
            command = step.value("command")
            assert step.do != "search" or re.match(r"lcma search \S+.* --seed \d+", command)
            # A step that claims to be repeatable has no budget of time, and starts from what is kept.
            assert "--time" not in command
            assert not step.repeatable or step.do == "print" or not set(step.of) & set(origin.not_kept)
            assert not step.repeatable or step.do != "search" or "--rounds" in command
        texts = " ".join([origin.command, origin.remark, *map(str, origin.steps)])
        assert not re.search(r"lcma\.\w+|\(\.\.\.|=\w+\(|--time|--improve|seconds=", texts)
