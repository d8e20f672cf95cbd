"""The suite of transformers with Kronecker-sparse layers, at tiny sizes."""

import pytest

torch = pytest.importorskip("torch")

from lcma.workbench.bench import layer_models  # noqa: E402
from lcma.workbench.bench.requirements import inferred  # noqa: E402
from lcma.workbench.bench.suites import e2e_ks  # noqa: E402
from lcma.workbench.bench.transformers import Sizes  # noqa: E402

PATTERNS = dict.fromkeys("qkvo", ((1, 12, 3, 2), (2, 3, 12, 1)))
PATTERNS |= {"up": ((1, 48, 12, 2), (6, 4, 4, 1)), "down": ((1, 8, 8, 3), (6, 4, 16, 1))}
PARTS = [one.part for one in e2e_ks.PARTS if one.name == "vit-s"]
TINY = Sizes(24, 2, 96, 2, 5, 2, False, layers=PATTERNS)


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_both_kinds_compute_the_same(part):
    where = {"dtype": torch.float64}
    ours, theirs = (layer_models.part_of(TINY, part, kind, **where) for kind in ("auto", "bmm"))
    layer_models.copy_parameters(ours, theirs)
    x = torch.randn(2, 5, 96 if part == "down" else 24, **where)
    torch.testing.assert_close(inferred(ours, x)(), inferred(theirs, x)())
    dense = layer_models.part_of(TINY, part, "dense", **where)
    assert inferred(dense, x)().shape == inferred(ours, x)().shape


def test_the_patterns_are_those_of_the_layers():
    for sizes in layer_models.KRONECKER.values():
        n = sizes.features
        for place in sizes.layers:
            inputs, outputs = {"up": (n, 4 * n), "down": (4 * n, n)}.get(place, (n, n))
            layer = layer_models.kronecker_sparse(sizes, "auto", device="meta")(place, inputs, outputs)
            assert (layer.out_features, layer.in_features) == (outputs, inputs)


def test_the_share_of_linear_layers_is_that_of_their_time(tmp_path, run, monkeypatch):
    tiny = Sizes(16, 2, 64, 2, 5, 2, False)
    monkeypatch.setattr(layer_models, "VISION", dict.fromkeys(layer_models.VISION, tiny))
    arguments = ("--measure", "shares", "--dtype", "float32", "--rounds", 2, "--out", tmp_path)
    rows = [row["figures"] for row in run.json("bench", "e2e-ks", *arguments)]
    assert len(rows) == 4
    assert all(0 < row["share"] == row["ms"]["linear"] / row["ms"]["model"] for row in rows)
    assert [round(row["paper"], 2) for row in rows] == [0.44, 0.53, 0.58, 0.62]
    assert len(layer_models.feed_forward_layers(tiny)) == 4
    assert layer_models.VISION.keys() == {name for name, _ in e2e_ks.SHARES}


def test_the_suite_runs_and_compares_first(tmp_path, run, monkeypatch):
    monkeypatch.setitem(layer_models.KRONECKER, "vit-s", TINY)
    arguments = ("bench", "e2e_ks", "--rows", "vit-s*", "--rounds", 2, "--out", tmp_path)
    rows = run.json(*arguments)
    assert [row["key"].split()[1] for row in rows] == PARTS
    assert all(row["figures"]["over_dense"] > 0 and row["figures"]["difference"] < 1e-5 for row in rows)
    monkeypatch.setattr(layer_models, "copy_parameters", lambda source, target: None)
    run.refused(1, "came out wrong", *arguments, "--fresh")
