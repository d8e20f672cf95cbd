"""Wrong calls of every public name end in an LcmaError of one line, or in the TypeError of Python's own signature."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import lcma
from lcma import block_low_rank, kronecker
from lcma.errors import LcmaError
from lcma.schemes_db.formats import lcma_json
from lcma.search import RunConfig

torch = pytest.importorskip("torch")

WRONG = {
    "none": lambda: None,
    "number": lambda: 3,
    "negative": lambda: -1,
    "fraction": lambda: 1.5,
    "text": lambda: "no such thing",
    "list": lambda: ["x", 1],
    "object": object,
    "dict": lambda: {"a": 1},
    "vector": lambda: np.ones(3),
    "texts": lambda: np.array([["a", "b"], ["c", "d"]]),
    "cube": lambda: np.ones((2, 3, 4)),
    "tensor": lambda: torch.ones(3, 5),
}
"""Values of another type or shape than most parameters have."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """A wrong call may be a right one of another path: what it writes is no file of the project."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """A right call of every public name: its positional and its keyword arguments, made anew each time."""
    folder = tmp_path_factory.mktemp("calls")
    scheme, certificate = lcma.resolve("strassen")
    file = folder / "strassen.json"
    file.write_text(lcma_json.render(scheme, certificate))
    target, program = lcma.parse_target("2x2x2"), lcma.program_of(scheme)
    square = np.ones((4, 4))
    heads = torch.ones(1, 2, 4, 8)

    def model():
        return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))

    def compressed():
        lcma.compress_(found := model(), lcma.CompressConfig("low-rank"))
        return found

    made = {
        "AccelerateConfig": lambda: ((), {"rows": (512,), "max_extra_bytes": 0, "device": "cpu", "measure": False}),
        "BitMatrix": lambda: ((np.zeros((2, 1), np.uint64), 5), {}),
        "BlastLinear": lambda: ((64, 32, 4, 2, True), {}),
        "Catalog": lambda: ((), {}),
        "Certificate": lambda: (("2x2x2", "Z", 7, "0" * 64, certificate.proofs, "1"), {}),
        "CompressConfig": lambda: (("monarch",), {"budget": 0.5, "blocks": 4, "steps": 3, "rank": 1, "tolerance": 0.0}),
        "FastLinear": lambda: ((8, 8, True), {"scheme": "strassen", "levels": 1, "precision": None}),
        "KSFeedForward": lambda: (
            ((2, 3, 4, 5), (2, 4, 3, 5), True, "bsf"),
            {"approximate": "none", "precision": None},
        ),
        "KSLinear": lambda: (((2, 3, 4, 5), True, "bsf"), {"strategy": None, "precision": None}),
        "LowRankLinear": lambda: ((8, 8, 2, True), {}),
        "MonarchLinear": lambda: ((64, 32, 4, 2, True), {}),
        "Prepared": lambda: ((square, 4, "strassen", 1), {}),
        "Program": lambda: ((target, scheme.ring, program.ops, ()), {}),
        "Provenance": lambda: (("paper", "a source"), {}),
        "Ring": lambda: (("Z", 0, False), {}),
        "Scheme": lambda: ((target, scheme.u, scheme.v, scheme.w, scheme.ring, "", scheme.provenance), {}),
        "Target": lambda: ((2, 2, 2, target.a, target.b, target.c), {}),
        "accelerate_": lambda: ((model(), lcma.AccelerateConfig((512,), device="cpu"), None), {}),
        "causal_attention": lambda: ((heads, heads, heads, None, 0.0, True, 1.0), {"strategy": None, "scheme": None}),
        "causal_pv": lambda: ((square, square), {"strategy": None, "scheme": None}),
        "causal_qk": lambda: ((square, square), {"strategy": None, "scheme": None}),
        "certify": lambda: ((scheme, ("exact",)), {}),
        "check": lambda: ((scheme, "exact"), {}),
        "check_program": lambda: ((program,), {}),
        "check_traced": lambda: ((np.matmul, target), {"sizes": (2, 2, 2), "dtype": "int64", "seed": 1}),
        "compile_products": lambda: (([],), {"scheme": "auto"}),
        "compress_": lambda: ((model(), lcma.CompressConfig("low-rank", steps=1), None), {"batch": 8}),
        "einsum": lambda: (("ij,jk->ik", square, square), {"scheme": "strassen", "levels": 1, "strategy": None}),
        "learn": lambda: ((), {"seconds": 0.0, "on_event": str}),
        "evaluate": lambda: ((program, square, square), {}),
        "find": lambda: (
            ("2x2x2",),
            {"rank": 7, "seed": 1, "walks": 1, "steps": 10, "rounds": 1, "jobs": 1, "ring": "Z"},
        ),
        "finite": lambda: ((square,), {}),
        "fold_into": lambda: (
            ([lcma.MonarchLinear(8, 8, 2, 2, interleaved=True)], torch.nn.Linear(8, 8)),
            {},
        ),
        "lift": lambda: ((lcma.resolve("4x4x4-r47-mod2")[0].over_z2(),), {"tries": 1}),
        "load": lambda: ((file, "lcma-json", target, scheme.ring), {}),
        "load_compressed_": lambda: ((model(), file), {}),
        "masked_matmul": lambda: ((square, square, np.ones((2, 2), bool)), {"scheme": None}),
        "matmul": lambda: (
            (square, square, "strassen", 1, None),
            {"max_error": 1.0, "max_workspace": 1 << 20, "effort": "predict", "learn": False},
        ),
        "naive": lambda: ((target, scheme.ring), {}),
        "parse_ring": lambda: (("Z",), {}),
        "parse_target": lambda: (("2x2x2", True), {}),
        "permute": lambda: ((scheme, "kmn"), {}),
        "plan": lambda: ((square, square, "strassen", 1), {"max_error": 1.0, "strategy": None}),
        "prepare": lambda: (([(4, 4, 4)], "float32", "strassen"), {}),
        "program_of": lambda: ((scheme, True), {}),
        "read_file": lambda: ((file, "lcma-json", target, scheme.ring), {}),
        "recheck": lambda: ((scheme, certificate), {}),
        "recheck_file": lambda: ((file,), {}),
        "resolve": lambda: (("strassen", None), {}),
        "restore_": lambda: ((model(),), {}),
        "reverse": lambda: ((scheme,), {}),
        "rotate": lambda: ((scheme,), {}),
        "syrk": lambda: ((square, True, False), {"strategy": None, "scheme": None}),
        "tensor": lambda: ((scheme, scheme), {}),
        "transpose": lambda: ((scheme,), {}),
        "trmm": lambda: ((square, square, "left", True, False, False), {"strategy": None, "scheme": None}),
        "write_file": lambda: ((folder / "new.json", scheme, certificate, "lcma-json"), {"overwrite": True}),
        "verify_file": lambda: ((file, ("exact",), "lcma-json", target, scheme.ring), {}),
    }
    return made


@pytest.fixture(scope="module")
def structured_calls(tmp_path_factory):
    """A right call of every public name of `lcma.kronecker` and `lcma.block_low_rank`."""
    file = tmp_path_factory.mktemp("matrices") / "k.npz"
    patterns = kronecker.monarch(8, 8, 2)
    pattern = kronecker.Pattern(2, 3, 4, 5)
    rng = np.random.default_rng(0)
    found = kronecker.factorize(rng.standard_normal((8, 8)), patterns)
    dense, chain = rng.standard_normal((8, 8)), found.matrix
    monarch = block_low_rank.Monarch(8, 8, 2, 2, 2, interleaved=True)
    factored = block_low_rank.decompose(dense, monarch)
    matrix = block_low_rank.FactoredMatrix.of(monarch, factored.factors)
    papers = block_low_rank.to_layout(matrix)
    x = np.ones((3, 8), matrix.dtype)
    options = {"out": None, "strategy": None, "effort": "predict", "max_workspace": None, "max_extra_bytes": 0}
    kronecker.save(file, chain)
    return {
        "kronecker.KroneckerSparse": lambda: ((patterns,), {}),
        "kronecker.Pattern": lambda: ((2, 3, 4, 5), {}),
        "kronecker.FactoredMatrix": lambda: ((chain.structure, chain.factors, chain.dtype), {}),
        "kronecker.block_butterfly": lambda: ((8, 2), {}),
        "kronecker.deformable_butterfly": lambda: ((patterns,), {}),
        "kronecker.dense": lambda: ((3, 4), {}),
        "kronecker.dft": lambda: ((8, "complex64", 4), {}),
        "kronecker.factorize": lambda: ((dense, patterns, "hierarchical"), {"seed": 1}),
        "kronecker.from_layout": lambda: ((np.zeros((pattern.rows, pattern.cols)), pattern, "dense"), {}),
        "kronecker.kaleidoscope": lambda: ((8,), {}),
        "kronecker.linear_operator": lambda: ((chain,), {}),
        "kronecker.load": lambda: ((file,), {}),
        "kronecker.low_rank": lambda: ((8, 8, 2), {}),
        "kronecker.matmul": lambda: ((chain, x, "bsf"), dict(options)),
        "kronecker.monarch": lambda: ((8, 8, 2), {}),
        "kronecker.save": lambda: ((file, chain), {}),
        "kronecker.square_dyadic": lambda: ((8,), {}),
        "kronecker.to_layout": lambda: ((np.zeros((2, 5, 3, 4)), pattern, "dense"), {}),
        "block_low_rank.Blast": lambda: ((8, 8, 2, 2, 3), {}),
        "block_low_rank.FactoredMatrix": lambda: ((chain.structure, chain.factors, chain.dtype), {}),
        "block_low_rank.LowRank": lambda: ((8, 8, 2), {}),
        "block_low_rank.Monarch": lambda: ((8, 8, 2, 2, 2, True), {}),
        "block_low_rank.decompose": lambda: ((dense, monarch, 3, 0), {"tolerance": 0.0}),
        "block_low_rank.from_kronecker": lambda: ((block_low_rank.to_kronecker(matrix),), {}),
        "block_low_rank.from_layout": lambda: ((monarch, papers["V"], papers["U"], None, "b1,b2,r"), {}),
        "block_low_rank.load": lambda: ((file,), {}),
        "block_low_rank.matmul": lambda: ((matrix, x, "bsf"), dict(options)),
        "block_low_rank.save": lambda: ((file, matrix), {}),
        "block_low_rank.to_kronecker": lambda: ((matrix,), {}),
        "block_low_rank.to_layout": lambda: ((matrix, "b1,b2,r"), {}),
    }


def public_callables():
    values = {name: getattr(lcma, name) for name in lcma.__all__}
    return [
        name
        for name, value in values.items()
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception))
    ]


def fault_of(call):
    """What a call ends in, as text, where it is neither a value, one line of ours, nor Python's own refusal."""
    try:
        call()
    except LcmaError as error:
        return None if str(error) and "\n" not in str(error) and len(str(error)) < 600 else f"{error!r} is no line"
    except TypeError as error:
        inside = error.__traceback__.tb_next.tb_next  # this frame, the call's
        return None if inside is None else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def faults_of(function, right):
    """The faults of a call without arguments, and of calls with one argument of another type or shape."""
    faults = {"no arguments": fault_of(lambda: function()), "unknown": fault_of(lambda: function(no_such_name=1))}
    positional, named = right()
    assert fault_of(lambda: function(*positional, **named)) is None
    for place in [*range(len(positional)), *named]:
        for kind, wrong in WRONG.items():
            args, kwargs = right()
            if isinstance(place, int):
                args = (*args[:place], wrong(), *args[place + 1 :])
            else:
                kwargs = {**kwargs, place: wrong()}
            faults[f"{place}: {kind}"] = fault_of(lambda args=args, kwargs=kwargs: function(*args, **kwargs))
    return {key: fault for key, fault in faults.items() if fault}


@pytest.mark.parametrize("name", public_callables())
def test_a_wrong_call_ends_in_one_line(calls, name):
    assert faults_of(getattr(lcma, name), calls[name]) == {}


@pytest.mark.parametrize(
    "name",
    [
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (kronecker, block_low_rank)
        for name in module.__all__
    ],
)
def test_a_wrong_call_of_structured_products_ends_in_one_line(structured_calls, name):
    module, function = name.split(".")
    assert faults_of(getattr(getattr(lcma, module), function), structured_calls[name]) == {}


def test_the_message_names_the_mend():
    square = np.ones((4, 4))
    model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    for call, text in (
        (lambda: lcma.prepare(square, square), "dtype must be a text, not ndarray of shape (4, 4)"),
        (lambda: lcma.prepare(square), "prepare([(1024, 1024, 1024)])"),
        (lambda: lcma.Catalog(), "Catalog.open()"),
        (lambda: lcma.KSLinear(96, 64), "patterns must be a Pattern or a tuple or a list, not 96"),
        (lambda: lcma.certify("strassen"), "a Scheme, as lcma.resolve(name)[0] gives, not 'strassen'"),
        (lambda: lcma.FastLinear(8, -8), "out_features must be at least 0, not -8"),
        (lambda: lcma.compress_(model, "monarh"), "kind 'monarh' is not known; did you mean monarch?"),
    ):
        with pytest.raises(LcmaError) as caught:
            call()
        assert text in str(caught.value)
    assert lcma.compress_(model, "low-rank:rank=2:steps=1")[0].structure == "low-rank 8x8, r 2"
    assert lcma.parse_target("2x2x2", files=np.bool_(True)) == lcma.Target.general(2, 2, 2)


def test_find_names_every_setting_of_a_run():
    names = set(inspect.signature(lcma.find).parameters)
    assert names == {*RunConfig.__dataclass_fields__, "jobs", "out", "on_event", "stop"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'rnk'"):
        lcma.find("2x2x2", rnk=7)
    with pytest.raises(LcmaError, match="rank must be int"):
        lcma.find("2x2x2", rank="7")
