"""What the tests of products on a GPU share, which need none."""

import pytest

from lcma.kernels import Request


@pytest.fixture
def dispatched(monkeypatch):
    """dispatched(recipe, a, b, ...): the product of torch's operator, as if tensors of a processor were on a GPU."""
    from lcma.kernels.torch import dispatch
    from lcma.kernels.torch.recipe import ProductRecipe

    def request_of(a, b, precision=None, **more):
        dtype = str(a.dtype).removeprefix("torch.")
        return Request(*a.shape, b.shape[1], dtype, device="cuda", precision=precision, **more)

    monkeypatch.setattr(dispatch, "index_of", lambda device: 0)
    monkeypatch.setattr(dispatch, "require_device", lambda index=None: None)
    monkeypatch.setattr(dispatch, "request_of", request_of)
    return lambda recipe, *tensors, **more: dispatch.run(ProductRecipe.parse(recipe), *tensors, **more)
