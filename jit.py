"""numba.njit with a disk cache that is never stale, never fatal, and in our own cache folder.

numba's own cache checks only the file of the function itself: it reuses stale machine code after a
helper in another file changed. It fails on a corrupt entry, it raises where no folder is writable,
and processes that need the same function at the same time all compile it. Here an entry is stamped
with a hash of every source file of the function's folder and of NUMBA_OPT, an entry that cannot be read or written
counts as missing, and one process compiles while the others wait for its entry.

Modules that use this are imported only by the functions that need compiled code: importing numba
takes a quarter of a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

from .home import cache_folder, exclusive, writable

LONGEST_WAIT = 120.0
"""Seconds that a process waits for another one's compilation before it compiles the function itself."""


@functools.lru_cache(maxsize=64)
def _folder_stamp(folder: Path, deep: bool) -> str:
    hasher = hashlib.sha256(f"{numba.__version__} {numba.config.OPT}".encode())  # type: ignore[attr-defined]
    for path in sorted(folder.rglob("*.py") if deep else folder.glob("*.py")):
        hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()[:24]


@functools.lru_cache(maxsize=1)
def _cache_root() -> Path:
    folder = cache_folder() / "numba"
    with contextlib.suppress(OSError):  # every write of an entry then fails, which is the same as no cache
        return writable(folder)
    return folder


class _Locator(caching._CacheLocator):
    """Locator that stores the entries of a function in a folder named by the stamp of its sources."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._line = py_func.__code__.co_firstlineno
        covered = getattr(py_func, "stamped_folder", None)
        self._stamp = _folder_stamp(covered or Path(py_file).parent, covered is not None)

    def get_cache_path(self) -> str:
        return str(_cache_root() / self._stamp)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        return cls(py_func, py_file) if Path(py_file).is_file() else None


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  # numba's own attribute


class _Cache(caching.FunctionCache):
    """Function cache whose failures cause recompilation, never an error."""

    _impl_class = _Implementation

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return numba's key, or for a closure one with its variant: the functions in its cells hash anew a process."""
        variant = getattr(self._py_func, "variant", None)
        return super()._index_key(sig, codegen) if variant is None else (sig, codegen.magic_tuple(), variant)

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            # Unpickling a damaged entry can raise anything. In every case the function is compiled as if
            # there were no entry; flushing the index allows a new one to be written.
            with contextlib.suppress(Exception):
                self.flush()

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Exclude other processes from compiling this function, for LONGEST_WAIT at most.

        A function is compiled while the locks of its callers are held; the call graph is acyclic, so processes cannot
        deadlock.
        """
        return exclusive(Path(self._cache_path, f"{self._impl.filename_base}.lock"), LONGEST_WAIT)


def njit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    stamped: Path | None = None,
    variant: str | None = None,
    **options: Any,
) -> Any:
    """`numba.njit(cache=True)` with the cache above.

    Helpers must be in the same folder, or in or below the folder `stamped`. A closure over other compiled functions is
    cached if `variant` says which of all that its source may become it is; closures that it calls are `named` so, too.
    """
    if function is None:
        return functools.partial(njit, stamped=stamped, variant=variant, **options)
    if variant is not None:
        function.variant = variant  # type: ignore[attr-defined]  # read by the index of the cache
        named(function, variant)
    if stamped is not None:
        function.stamped_folder = stamped  # type: ignore[attr-defined]
    # Nobody calls it from C: without that wrapper it compiles in nine tenths of the time.
    dispatcher = numba.njit(**{"no_cfunc_wrapper": True, **options})(function)
    if hasattr(dispatcher, "enable_caching"):  # absent under NUMBA_DISABLE_JIT
        with contextlib.suppress(RuntimeError):  # no source file: run without a cache
            dispatcher._cache = cache = _Cache(function)
            dispatcher.compile = functools.partial(_compile_once, cache, dispatcher.compile)
    return dispatcher


def named(function: Callable[..., Any], variant: str) -> Callable[..., Any]:
    """Add the variant of a closure to its name, which becomes that of its machine code; return the closure.

    numba tells closures of one name apart by a number that counts the functions of a process. Code from the cache has
    the numbers of the process that compiled it: with equal ones the linker took the code of another variant.
    """
    function.__qualname__ += f"_{hashlib.sha256(variant.encode()).hexdigest()[:16]}"
    return function


def _compile_once(cache: _Cache, compiling: Callable[[Any], Any], signature: Any) -> Any:
    """Load or compile a function for these types, one process at a time."""
    # Acquire numba's own lock first: in the other order two threads of one process could deadlock.
    with global_compiler_lock, cache.alone():
        return compiling(signature)
