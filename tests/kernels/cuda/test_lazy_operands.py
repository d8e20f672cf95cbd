"""Executors of tensors read and write memory: views that conjugate or negate it are resolved first."""

import pytest

torch = pytest.importorskip("torch")

from lcma.kernels.cuda.executor import TensorCore, TensorExecutor  # noqa: E402
from lcma.kernels.request import Request  # noqa: E402


class Classical(TensorCore):
    """The classical product, of operands whose memory holds their elements."""

    def run(self, a, b, out):
        assert not any(map(lazy, (a, b, out)))
        out.copy_(a @ b)


def lazy(x):
    return x.is_conj() or x.is_neg()


@pytest.mark.parametrize("which", ["a", "b", "out"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_lazy_views_are_resolved(which, dtype):
    def made(name, rows, cols):
        if name != which:
            return torch.randn(rows, cols, dtype=getattr(torch, dtype))
        conjugate = torch.randn(rows, cols, dtype=torch.complex128).conj()
        view = conjugate.imag if dtype == "float64" else conjugate
        assert lazy(view)
        return view

    a, b, out = made("a", 3, 4), made("b", 4, 5), made("out", 3, 5)
    executor = TensorExecutor(Request(3, 4, 5, dtype), Classical(Request(3, 4, 5, dtype)), 0)
    wanted = a @ b
    torch.testing.assert_close(executor.run(a, b), wanted)
    assert executor.run(a, b, out) is out
    torch.testing.assert_close(out, wanted)
