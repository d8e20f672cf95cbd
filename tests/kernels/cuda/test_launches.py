"""Launches of Triton kernels and products that are repeated as one graph, with fake kernels and a fake driver."""

import contextlib
import ctypes
import gc
import itertools
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch

import lcma
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.triton_text import Combine, Direction
from lcma.kernels.cuda import kernel_node, launch, repeated_product
from lcma.kernels.cuda.combine import Combination
from lcma.kernels.cuda.kernel_node import KernelNode, Parameters
from lcma.kernels.cuda.launch import REPETITIONS, Repeated
from lcma.kernels.cuda.repeated_product import MOST_PLACES, RepeatedProduct, captured

from ..cases import table

METADATA = {"num_warps": 4, "num_ctas": 1, "shared": 512, "launch_pdl": False, "launch_cooperative_grid": False}
METADATA |= {"global_scratch_size": 0, "profile_scratch_size": 0}


@dataclass
class Kernel:
    """Counts what is looked up and compiled, what is started directly, and what a profiler sees of it."""

    arg_names: tuple = ("x", "y", "n", "scale", "sizes", "N")
    signature: tuple = ("*fp32", "*fp32", "i64", "fp32", ("i32", "constexpr"), "constexpr")
    metadata: dict = field(default_factory=METADATA.copy)
    found: list = field(default_factory=list)
    started: list = field(default_factory=list)
    watched: list = field(default_factory=list)

    def __getitem__(self, grid):
        def find(*arguments, num_warps, **form):
            self.found.append((grid, arguments[2:], tuple(form.values()), num_warps))
            return Compiled(self)

        return find


class Compiled:
    function, packed_metadata = 11, "packed"

    def __init__(self, kernel):
        self.kernel, self.metadata = kernel, SimpleNamespace(**kernel.metadata)
        self.src = SimpleNamespace(signature=dict(zip(kernel.arg_names, kernel.signature, strict=False)))

    def __getitem__(self, grid):
        return lambda *again: self.kernel.watched.append((grid, again[2:]))

    def run(self, x, y, z, stream, function, packed, metadata, enter, leave, *again):
        assert (function, packed, metadata, enter, leave) == (11, "packed", None, None, None)
        self.kernel.started.append(((x, y, z), stream, again[2:]))


@dataclass
class Tensor:
    """A GPU's tensor at an address."""

    address: int
    is_cuda, is_meta, device = True, False, torch.device("cuda", 0)

    def data_ptr(self):
        return self.address

    def get_device(self):
        return 0


class FakeDriver:
    """The driver's functions: records nodes, after which nodes each runs, and the arguments of each launch.

    It reads arguments as the driver does, when they are set. Functions in `failing` return an error.
    """

    sizes = (8, 8, 8, 4, 4, 8, 8)
    """Bytes of the kernel's parameters: two addresses, three numbers, two addresses of scratch memory."""

    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32
    """The types of the parameters that are read."""

    def __init__(self):
        self.handles, self.made = itertools.count(100), defaultdict(list)
        self.after, self.shapes, self.arguments = {}, {}, defaultdict(dict)
        self.launched, self.attributes, self.freed, self.captures, self.failing = [], [], [], [], set()

    def _make(self, name, made):
        made.value = next(self.handles)
        self.made[name].append(made.value)
        return int(name in self.failing)

    def create(self, made, flags):
        return self._make("create", made)

    def add_kernel(self, made, graph, needed, count, parameters):
        assert graph.value in self.made["create"]
        failed = self._make("add", made)
        self.after[made.value] = "kernel", [needed[i] for i in range(count)]
        return failed

    def add_graph(self, made, graph, needed, count, inner):
        failed = self.add_kernel(made, graph, needed, count, None)
        self.after[made.value] = inner.value, self.after[made.value][1]
        return failed

    def begin_capture(self, stream, mode):
        self.captures.append(("begin", stream))
        return int("begin" in self.failing)

    def end_capture(self, stream, made):
        self.captures.append(("end", stream))
        return self._make("end", made)

    def set_attribute(self, node, name, value):
        self.attributes.append((node.value, name, ctypes.c_int.from_address(value).value))
        return 0

    def instantiate(self, made, graph, flags):
        return self._make("instantiate", made)

    def destroy(self, graph):
        self.freed.append(getattr(graph, "value", graph))

    free = destroy

    def parameter_size(self, function, index, offset, size):
        if index >= len(self.sizes):
            return 1
        size.value = self.sizes[index]
        return 0

    def set_arguments(self, graph, node, at):
        assert graph in self.made["instantiate"]
        assert node in self.after
        if "set" in self.failing:
            return 1
        given = Parameters.from_address(at)
        places = (ctypes.c_void_p * len(self.kinds)).from_address(given.arguments)
        values = [kind.from_address(place).value for kind, place in zip(self.kinds, places, strict=True)]
        self.shapes[node] = [given.grid_x, given.grid_y, given.grid_z, given.block_x, given.shared]
        self.arguments[graph][node] = values
        return 0

    def launch(self, graph, stream):
        assert stream is None
        self.launched.append(dict(self.arguments[graph]))
        return int("launch" in self.failing)

    @property
    def of_one_node(self):
        """The arguments of every launch of a graph of one node."""
        return [values for (values,) in (arguments.values() for arguments in self.launched)]


@pytest.fixture
def driver(monkeypatch):
    fake = FakeDriver()
    for module in (kernel_node, repeated_product):
        monkeypatch.setattr(module, "driver", lambda: fake)
    return fake


@pytest.fixture
def gpu(driver, monkeypatch):
    """The fake driver; its `stream` is the current one."""
    pytest.importorskip("triton")
    driver.stream = 0
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: driver.stream, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch.cuda, "device", lambda device: pytest.MonkeyPatch.context())
    monkeypatch.setattr(launch._thread, "has_launched", False)
    return driver


def repeated(**options):
    """A fake kernel and a launch of it; its tuple of sizes has a number and a constant."""
    kernel = Kernel(**options)
    return kernel, Repeated(kernel, (5, 3), ("x", "y"), 1 << 40, 0.5, (7, 8), N=16, num_warps=4)


def call(*launches, times=1):
    """Launch all on the same aligned tensors, so many times."""
    for _ in range(times):
        for again in launches:
            again(Tensor(16), Tensor(16))


def test_a_repeated_launch_becomes_a_node_whose_addresses_are_set(gpu):
    kernel, again = repeated()
    for place in range(REPETITIONS + 3):
        again(Tensor(16 * place), Tensor(1 << 41))
    assert (len(kernel.found), len(kernel.started), len(gpu.launched)) == (1, REPETITIONS, 2)
    assert kernel.started[0] == ((5, 3, 1), 0, (1 << 40, 0.5, (7, 8), 16))
    first = 16 * (REPETITIONS + 1)
    assert gpu.of_one_node == [[x, 1 << 41, 1 << 40, 0.5, 7] for x in (first, first + 16)]
    assert [*gpu.shapes.values()] == [[5, 3, 1, 128, 512]]
    assert [*gpu.after.values()] == [("kernel", [])]
    gpu.stream = 9  # which a graph may capture
    again(Tensor(0), Tensor(0))
    assert (len(gpu.launched), kernel.started[-1][1]) == (2, 9)
    del again
    gc.collect()
    assert sorted(gpu.freed) == [*gpu.made["create"], *gpu.made["instantiate"]]


def test_tensors_that_are_not_aligned_are_another_kernels(gpu):
    kernel, again = repeated()
    for _ in range(2 + REPETITIONS):
        again(Tensor(8), Tensor(16))
        again(Tensor(16), Tensor(16))
    assert len(kernel.found) == 2
    assert [x for x, *_ in gpu.of_one_node] == [8, 16]


OTHERS = [{"metadata": METADATA | more} for more in table(__file__, "metadata")]
OTHERS += [
    {"signature": tuple(more.get(str(i), kind) for i, kind in enumerate(Kernel.signature))}
    for more in table(__file__, "signatures")
]
REFUSED = [(step, {}) for step in ("create", "add", "instantiate", "set", "launch")]


@pytest.mark.parametrize(("failing", "other"), [*REFUSED, *((None, other) for other in OTHERS)])
def test_what_the_driver_refuses_or_does_not_know_is_launched_as_usual(gpu, failing, other):
    kernel, again = repeated(**other)
    gpu.failing.add(failing)
    call(again, times=REPETITIONS + 5)
    assert len(kernel.started) == REPETITIONS + 4
    assert not gpu.launched or failing == "launch"


def test_a_cooperative_kernel_is_a_cooperative_node(gpu):
    _, again = repeated(metadata=METADATA | {"launch_cooperative_grid": True})
    call(again, times=REPETITIONS + 2)
    assert (gpu.attributes, len(gpu.launched)) == ([(*gpu.after, 2, 1)], 1)


def test_no_more_graphs_are_made_than_a_bound(gpu, monkeypatch):
    gc.collect()
    monkeypatch.setattr(kernel_node, "MOST_GRAPHS", 1 + len(kernel_node._alive))
    call(repeated()[1], repeated()[1], times=REPETITIONS + 2)
    assert len(gpu.launched) == 1


def test_threads_do_not_mix_their_addresses(gpu):
    kernel, again = repeated()
    call(again, times=REPETITIONS + 1)

    def work(place):
        call(again)  # the first launch of a thread is Triton's, which makes the context current
        for i in range(200):
            again(Tensor(place << 20 | i << 4), Tensor(place << 40 | i << 4))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = sorted((place << 20 | i << 4, place << 40 | i << 4) for place in range(1, 5) for i in range(200))
    assert sorted((x, y) for x, y, *_ in gpu.of_one_node) == wanted
    assert len(kernel.started) == REPETITIONS + len(threads)


def test_a_profiler_watches_triton_s_own_launch(gpu, monkeypatch):
    kernel, again = repeated()
    call(again)
    monkeypatch.setattr(pytest.importorskip("triton").knobs.runtime, "launch_enter_hook", lambda metadata: None)
    call(again)
    assert (kernel.watched, kernel.started) == ([((5, 3, 1), (1 << 40, 0.5, (7, 8), 16))], [])


def test_launches_of_a_combination_are_kept_by_the_shapes_of_its_tensors(monkeypatch):
    """What they are given: test_golden_launches.py."""
    maps, kernel = maps_of(lcma.program_of(lcma.resolve("strassen")[0])), Kernel(arg_names=())
    split = Combination(Combine(maps.left, Direction.TO_STACK, maps.left_blocks))
    monkeypatch.setattr(split, "_kernel", lambda *_: kernel)
    matrix, stack = torch.empty(3, 64, 1792), torch.empty(3, 7, 32, 896)
    for _ in range(3):
        split.run(matrix, stack)
    assert (len(kernel.found), len(set(kernel.found)), len(split._launches)) == (3, 1, 1)
    split.run(matrix[1:], stack[1:])
    split.run(torch.empty(3, 63, 1792), stack)
    assert len(split._launches) == 3
    split.run(matrix[:0], stack[:0])
    assert len(kernel.found) == 5


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


@pytest.fixture
def graphs(driver, monkeypatch):
    """The fake driver, whose kernels have two tensors and nothing else."""
    driver.kinds = ctypes.c_void_p, ctypes.c_void_p
    monkeypatch.setattr(repeated_product, "allows_graphs", lambda index: True)
    monkeypatch.setattr(repeated_product, "_captures", lambda index: (SimpleNamespace(cuda_stream=5), None))
    for name in ("use_mem_pool", "stream"):
        monkeypatch.setattr(torch.cuda, name, lambda _: contextlib.nullcontext(), raising=False)
    return driver


@pytest.fixture
def places(monkeypatch):
    """Tensors of scratch memory; calls get the one at the index `places[0]`."""
    usual, kept = torch.empty_like, [0]

    def empty_like(model):
        return usual(model) if model.dim() > 1 else kept[1 + kept[0]].view(model.dtype)

    size = SLABS * SIZE * SIZE + 128 - SLABS * SIZE * SIZE % 128
    kept += [torch.zeros(3 * size) for _ in range(MOST_PLACES + 2)]
    monkeypatch.setattr(torch, "empty_like", empty_like)
    return kept


def sums_of_products(dtype=torch.float32):
    """C = SLABS A B, as the sum of equal products, and operands."""
    launches = [
        Launch(lambda matrix, stack: stack.copy_(matrix.expand_as(stack))),
        Launch(lambda matrix, stack: stack.copy_(matrix.expand_as(stack))),
        Launch(lambda matrix, stack: matrix.copy_(stack.sum(0))),
    ]
    a, b = (torch.randn(SIZE, SIZE).to(dtype) for _ in range(2))
    product = RepeatedProduct(launches, lambda a, b, c: torch.bmm(a, b, out=c), SHAPES, torch.empty_like(a))
    product.launches = launches
    return product, a, b


def test_calls_become_one_graph_with_the_addresses_of_each(graphs, places):
    product, *_ = sums_of_products()
    for i in range(REPETITIONS + 2):
        a, b = torch.randn(2, SIZE, SIZE)
        out = product(a, b)
        if i < REPETITIONS:
            torch.testing.assert_close(out, SLABS * (a @ b))
    assert [launch.calls for launch in product.launches] == [REPETITIONS] * 3
    left, right, inner, merge = graphs.after
    assert [needed for _, needed in graphs.after.values()] == [[], [], [left, right], [inner]]
    assert graphs.captures == [("begin", 5), ("end", 5)]
    assert graphs.after[inner][0] in graphs.freed
    place = places[1].data_ptr()
    step = 4 * (len(places[1]) // 3)
    assert len(graphs.launched) == 2
    assert graphs.launched[-1] == {
        left: [a.data_ptr(), place],
        right: [b.data_ptr(), place + step],
        merge: [out.data_ptr(), place + 2 * step],
    }


def test_addresses_that_stay_are_not_set_again(graphs, places):
    product, a, b = sums_of_products()
    for _ in range(REPETITIONS + 1):
        product(a, b)
    graphs.arguments.clear()
    c = torch.randn_like(a[:, :])
    out = product(a, c)
    assert [x for x, _ in graphs.launched[-1].values() if x != out.data_ptr()] == [c.data_ptr()]


def test_each_address_of_scratch_memory_has_its_graph_and_the_oldest_goes(graphs, places):
    product, a, b = sums_of_products()
    for place in range(MOST_PLACES + 1):
        places[0] = place
        for _ in range((place + 1) * REPETITIONS):
            product(a, b)
    addresses = [scratch.data_ptr() for scratch in places[1:]]
    assert list(product._graphs) == addresses[1 : MOST_PLACES + 1]
    assert not graphs.launched
    places[0] = 2
    product(a, b)
    assert len(graphs.launched) == 1
    assert {values[1] - addresses[2] for values in graphs.launched[0].values()} == set(product._offsets[:3])
    places[0] = 0
    torch.testing.assert_close(product(a, b), SLABS * (a @ b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_another_setting_of_cublas_is_another_graph(graphs, places, monkeypatch, dtype):
    setting = f"allow_{'fp16' if dtype is torch.float16 else 'bf16'}_reduced_precision_reduction"
    settings = SimpleNamespace(**{setting: getattr(torch.backends.cuda.matmul, setting)})
    monkeypatch.setattr(torch.backends.cuda, "matmul", settings)
    product, a, b = sums_of_products(dtype)
    for _ in range(REPETITIONS + 1):
        product(a, b)
    assert len(graphs.launched) == 1
    setattr(settings, setting, not getattr(settings, setting))
    product(a, b)
    assert len(graphs.launched) == 1
    assert [launch.calls for launch in product.launches] == [REPETITIONS + 1] * 3


@pytest.mark.parametrize("failing", ["begin", "end", "create", "instantiate"])
def test_a_graph_that_the_driver_refuses_is_launched_as_usual(graphs, places, failing):
    product, a, b = sums_of_products()
    graphs.failing.add(failing)
    for _ in range(REPETITIONS + 3):
        torch.testing.assert_close(product(a, b), SLABS * (a @ b))
    assert not graphs.launched


def test_a_capture_ends_where_the_work_fails_and_needs_a_driver(graphs, monkeypatch):
    def work():
        raise torch.OutOfMemoryError("no memory")

    with captured(work, 0) as graph:
        assert graph is None
    assert graphs.captures == [("begin", 5), ("end", 5)]
    assert len(graphs.freed) == 1
    monkeypatch.setattr(repeated_product, "driver", lambda: None)
    with captured(lambda: pytest.fail("was run"), 0) as graph:
        assert graph is None
