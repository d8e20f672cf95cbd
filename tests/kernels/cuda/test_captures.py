"""The mode of a thread that must not break another thread's capture of a CUDA graph."""

import ctypes

import pytest

from lcma.kernels.cuda import captures


def test_a_thread_is_relaxed_within_and_as_before_after(monkeypatch):
    mode = ctypes.c_int(0)  # global, the driver's default

    def exchange(given):
        pointer = ctypes.cast(given, ctypes.POINTER(ctypes.c_int))
        mode.value, pointer[0] = pointer[0], mode.value
        return 0

    monkeypatch.setattr(captures, "_exchange", lambda: exchange)
    with captures.beside_captures():
        assert mode.value == captures.RELAXED
        with pytest.raises(MemoryError), captures.beside_captures():
            raise MemoryError
        assert mode.value == captures.RELAXED
    assert mode.value == 0


def test_without_a_driver_nothing_is_exchanged(monkeypatch):
    def missing(name):
        raise OSError(name)

    captures._exchange.cache_clear()
    monkeypatch.setattr(captures.ctypes, "CDLL", missing)
    with captures.beside_captures():
        assert captures._exchange() is None
    captures._exchange.cache_clear()
