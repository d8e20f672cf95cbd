"""The Fourier transform as Kronecker-sparse factors against the libraries' own."""

import numpy as np
import pytest

from lcma import kronecker

from ...refusal import refuses

LIMITS = {"complex64": 1e-6, "complex128": 1e-14}


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("size", [2, 16, 24, 60, 256, 4096])
def test_it_is_the_transform(size, dtype):
    rng = np.random.default_rng(size)
    x = (rng.standard_normal((5, size)) + 1j * rng.standard_normal((5, size))).astype(dtype)
    transform = kronecker.dft(size, dtype)
    truth = np.fft.fft(x.astype(np.complex128))
    for found in (transform.apply(x), transform.apply(np.ascontiguousarray(x.T), "bsl").T):
        assert found.dtype == dtype
        assert np.linalg.norm(found - truth) <= LIMITS[dtype] * np.linalg.norm(truth)


def test_the_factors_of_radix_2_are_the_square_dyadic_ones():
    transform = kronecker.dft(32, radix=2)
    assert transform.matrix.patterns == kronecker.square_dyadic(32)
    assert len(kronecker.dft(4096).matrix.patterns) == 3
    full = kronecker.dft(12, "complex128").matrix.dense()[:, np.argsort(kronecker.dft(12).order)]
    np.testing.assert_allclose(full, np.fft.fft(np.eye(12)), atol=1e-13)


def test_inputs_of_another_size_are_refused():
    refuses("of 8 points", kronecker.dft(8).apply, np.zeros((3, 4), np.complex64))


def test_a_layer_of_its_factors_transforms_tensors_and_their_gradients():
    torch = pytest.importorskip("torch")
    from lcma import KSLinear

    transform = kronecker.dft(24, "complex128")
    layer, order = KSLinear.from_matrix(transform.matrix), torch.from_numpy(transform.order)
    x = torch.randn(3, 24, dtype=torch.complex128, requires_grad=True)
    truth, weights = torch.fft.fft(x), torch.randn(3, 24, dtype=torch.complex128)
    torch.testing.assert_close(layer(x[:, order]), truth)
    (found,) = torch.autograd.grad((layer(x[:, order]) * weights).abs().sum(), x)
    (wanted,) = torch.autograd.grad((truth * weights).abs().sum(), x)
    torch.testing.assert_close(found, wanted)
