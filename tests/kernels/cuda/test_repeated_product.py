"""Products that are repeated as one graph, on a processor with launches of torch and a fake driver."""

import contextlib
import ctypes
from types import SimpleNamespace

import pytest
import torch

from lcma.kernels.cuda import kernel_node, repeated_product
from lcma.kernels.cuda.kernel_node import Driver, KernelNode, Parameters
from lcma.kernels.cuda.launch import REPETITIONS
from lcma.kernels.cuda.repeated_product import MOST_PLACES, RepeatedProduct, captured

SLABS, SIZE = 3, 40
SHAPES = [(SLABS, SIZE, SIZE)] * 3


class Launch:
    """Writes matrix or stack by torch; `aligned` makes nodes, as after a launch of Triton's."""

    def __init__(self, run):
        self.run, self.calls, self.aligned = run, 0, self

    def __call__(self, matrix, stack):
        self.calls += 1
        self.run(matrix, stack)

    def node(self, pair):
        return KernelNode(Parameters(), [ctypes.c_void_p(x.data_ptr()) for x in pair], len(pair), False)


class FakeDriver:
    """Records the nodes of graphs, after which nodes they run, and the addresses of each launch."""

    def __init__(self):
        self.after, self.set, self.launched, self.freed, self.captures, self.failing = {}, {}, [], [], [], set()
        self.handles = iter(range(100, 10_000))
        self.functions = Driver(
            create=lambda made, flags: self._made("create", made),
            add_kernel=lambda made, graph, needed, count, parameters: self._add(made, "kernel", needed, count),
            add_graph=lambda made, graph, needed, count, inner: self._add(made, inner.value, needed, count),
            begin_capture=lambda stream, mode: self._capture("begin", stream),
            end_capture=lambda stream, made: self._capture("end", stream) or self._made("end", made),
            set_attribute=None,
            instantiate=lambda made, graph, flags: self._made("instantiate", made),
            destroy=lambda graph: self.freed.append(getattr(graph, "value", graph)),
            parameter_size=None,
            set_arguments=self._set,
            launch=lambda graph, stream: self.launched.append(dict(self.set)) or 0,
            free=self.freed.append,
        )

    def _made(self, name, made):
        made.value = next(self.handles)
        return int(name in self.failing)

    def _add(self, made, what, needed, count):
        self._made("add", made)
        self.after[made.value] = what, [needed[i] for i in range(count)]
        return 0

    def _capture(self, what, stream):
        self.captures.append((what, stream))
        return int(what in self.failing)

    def _set(self, graph, node, at):
        arguments = Parameters.from_address(at).arguments
        places = (ctypes.c_void_p * 2).from_address(arguments)
        self.set[node] = [ctypes.c_void_p.from_address(place).value for place in places]
        return 0


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeDriver()
    for module in (kernel_node, repeated_product):
        monkeypatch.setattr(module, "driver", lambda: fake.functions)
    monkeypatch.setattr(repeated_product, "allows_graphs", lambda index: True)
    monkeypatch.setattr(repeated_product, "_captures", lambda index: (SimpleNamespace(cuda_stream=5), None))
    for name in ("use_mem_pool", "stream"):
        monkeypatch.setattr(torch.cuda, name, lambda _: contextlib.nullcontext(), raising=False)
    return fake


@pytest.fixture
def places(monkeypatch):
    """Tensors of scratch memory; calls get the one at the index `places[0]`."""
    usual, kept = torch.empty_like, [0]

    def empty_like(model):
        return usual(model) if model.dim() > 1 else kept[1 + kept[0]]

    size = SLABS * SIZE * SIZE + 128 - SLABS * SIZE * SIZE % 128
    kept += [torch.zeros(3 * size) for _ in range(MOST_PLACES + 2)]
    monkeypatch.setattr(torch, "empty_like", empty_like)
    return kept


@pytest.fixture
def product():
    """C = SLABS A B, as the sum of equal products."""
    launches = [
        Launch(lambda matrix, stack: stack.copy_(matrix.expand_as(stack))),
        Launch(lambda matrix, stack: stack.copy_(matrix.expand_as(stack))),
        Launch(lambda matrix, stack: matrix.copy_(stack.sum(0))),
    ]
    made = RepeatedProduct(launches, lambda a, b, c: torch.bmm(a, b, out=c), SHAPES, torch.empty(SIZE, SIZE))
    made.launches = launches
    return made


def operands():
    return torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)


def test_calls_become_one_graph_with_the_addresses_of_each(gpu, places, product):
    for i in range(REPETITIONS + 2):
        a, b = operands()
        out = product(a, b)
        if i < REPETITIONS:
            torch.testing.assert_close(out, SLABS * (a @ b))
    assert [launch.calls for launch in product.launches] == [REPETITIONS] * 3
    left, right, inner, merge = gpu.after
    assert [needed for _, needed in gpu.after.values()] == [[], [], [left, right], [inner]]
    assert gpu.captures == [("begin", 5), ("end", 5)]
    assert gpu.after[inner][0] in gpu.freed
    place = places[1].data_ptr()
    step = 4 * (len(places[1]) // 3)
    wanted = {
        left: [a.data_ptr(), place],
        right: [b.data_ptr(), place + step],
        merge: [out.data_ptr(), place + 2 * step],
    }
    assert len(gpu.launched) == 2
    assert gpu.launched[-1] == wanted


def test_addresses_that_stay_are_not_set_again(gpu, places, product):
    a, b = operands()
    for _ in range(REPETITIONS + 1):
        product(a, b)
    gpu.set.clear()
    c = torch.randn_like(a[:, :])
    out = product(a, c)
    assert [values[0] for values in gpu.set.values() if values[0] != out.data_ptr()] == [c.data_ptr()]


def test_each_address_of_scratch_memory_has_its_graph_and_the_oldest_goes(gpu, places, product):
    a, b = operands()
    for place in range(MOST_PLACES + 1):
        places[0] = place
        for _ in range((place + 1) * REPETITIONS):
            product(a, b)
    addresses = [scratch.data_ptr() for scratch in places[1:]]
    assert list(product._graphs) == addresses[1 : MOST_PLACES + 1]
    assert not gpu.launched
    places[0] = 2
    product(a, b)
    assert len(gpu.launched) == 1
    assert {values[1] - addresses[2] for values in gpu.launched[0].values()} == set(product._offsets[:3])
    places[0] = 0
    torch.testing.assert_close(product(a, b), SLABS * (a @ b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_another_setting_of_cublas_is_another_graph(gpu, monkeypatch, dtype):
    setting = f"allow_{'fp16' if dtype is torch.float16 else 'bf16'}_reduced_precision_reduction"
    settings = SimpleNamespace(**{setting: getattr(torch.backends.cuda.matmul, setting)})
    monkeypatch.setattr(torch.backends.cuda, "matmul", settings)
    launches = [Launch(lambda matrix, stack: None) for _ in range(3)]
    product = RepeatedProduct(launches, lambda a, b, c: None, SHAPES, torch.empty(SIZE, SIZE, dtype=dtype))
    usual, scratch = torch.empty_like, torch.empty_like(product._of_scratch)
    monkeypatch.setattr(torch, "empty_like", lambda model: usual(model) if model.dim() > 1 else scratch)
    a, b = (x.to(dtype) for x in operands())
    for _ in range(REPETITIONS + 1):
        product(a, b)
    assert len(gpu.launched) == 1
    setattr(settings, setting, not getattr(settings, setting))
    product(a, b)
    assert len(gpu.launched) == 1
    assert [launch.calls for launch in launches] == [REPETITIONS + 1] * 3


@pytest.mark.parametrize("failing", ["begin", "end", "create", "instantiate"])
def test_what_the_driver_refuses_is_launched_as_usual(gpu, places, product, failing):
    gpu.failing.add(failing)
    a, b = operands()
    for _ in range(REPETITIONS + 3):
        torch.testing.assert_close(product(a, b), SLABS * (a @ b))
    assert not gpu.launched


def test_a_capture_ends_where_the_work_fails(gpu):
    def work():
        raise torch.OutOfMemoryError("no memory")

    with captured(work, 0) as graph:
        assert graph is None
    assert gpu.captures == [("begin", 5), ("end", 5)]
    assert len(gpu.freed) == 1


def test_without_a_driver_nothing_is_captured(monkeypatch):
    monkeypatch.setattr(repeated_product, "driver", lambda: None)
    with captured(lambda: pytest.fail("was run"), 0) as graph:
        assert graph is None
