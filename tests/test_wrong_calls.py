"""Wrong calls of every public name end in an LcmaError of one line, or in the TypeError of Python's own signature."""

from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest

import lcma
from lcma import block_low_rank, kronecker
from lcma.errors import LcmaError
from lcma.schemes_db.formats import lcma_json
from lcma.search import RunConfig

from .refusal import read_beside, refuses_as_said, wrong_calls

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("elsewhere")

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


RIGHT = read_beside(__file__, "right_calls.toml")
"""The arguments of a right call of every public name."""


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names in arguments of right calls."""
    folder = tmp_path_factory.mktemp("calls")
    scheme, certificate = lcma.resolve("strassen")
    file, stored, rng = folder / "strassen.json", folder / "k.npz", np.random.default_rng(0)
    file.write_text(lcma_json.render(scheme, certificate))
    target, program, square = lcma.parse_target("2x2x2"), lcma.program_of(scheme), np.ones((4, 4))
    heads = torch.ones(1, 2, 4, 8)
    patterns, pattern = kronecker.monarch(8, 8, 2), kronecker.Pattern(2, 3, 4, 5)
    chain, dense = kronecker.factorize(rng.standard_normal((8, 8)), patterns).matrix, rng.standard_normal((8, 8))
    monarch = block_low_rank.Monarch(8, 8, 2, 2, 2, interleaved=True)
    matrix = block_low_rank.FactoredMatrix.of(monarch, block_low_rank.decompose(dense, monarch).factors)
    papers, x = block_low_rank.to_layout(matrix), np.ones((3, 8), matrix.dtype)
    kronecker.save(stored, chain)
    return {**globals(), **locals()}


def arguments(*positional, **named):
    return positional, named


def public_callables():
    """The public functions and classes; those of `lcma.kronecker` and `lcma.block_low_rank` by their module's name."""
    of = ("", lcma), ("kronecker.", kronecker), ("block_low_rank.", block_low_rank)
    values = {prefix + name: getattr(module, name) for prefix, module in of for name in module.__all__}
    errors = {name for name, value in values.items() if inspect.isclass(value) and issubclass(value, Exception)}
    return [name for name, value in values.items() if callable(value) and name not in errors]


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
def test_a_wrong_call_ends_in_one_line(names, name):
    function = operator.attrgetter(name)(lcma)
    assert faults_of(function, lambda: eval(f"arguments({RIGHT[name]})", names)) == {}


@wrong_calls(__file__)
def test_the_message_names_the_mend(modules, call, error):
    refuses_as_said(modules, call, error)


def test_what_looks_wrong_and_is_right():
    assert lcma.compress_(model(), "low-rank:rank=2:steps=1")[0].structure == "low-rank 8x8, r 2"
    assert lcma.parse_target("2x2x2", files=np.bool_(True)) == lcma.Target.general(2, 2, 2)


def test_find_names_every_setting_of_a_run():
    names = set(inspect.signature(lcma.find).parameters)
    assert names == {*RunConfig.__dataclass_fields__, "jobs", "out", "on_event", "stop"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'rnk'"):
        lcma.find("2x2x2", rnk=7)
