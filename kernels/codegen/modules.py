"""Generated Python modules on disk: written once under the hash of their text, and imported."""

from __future__ import annotations

import contextlib
import hashlib
import linecache
import sys
import threading
from pathlib import Path
from types import ModuleType

from ...home import cache_folder, write_atomic

_lock = threading.RLock()


def load(text: str) -> ModuleType:
    """Return the module of this text, imported from its own file.

    The file's folder is named by the hash of the text. A file whose content differs from the text is
    rewritten. If none can be written the module has no file, and is compiled again by every process.
    """
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    qualified = f"lcma_generated_{name}"
    with _lock:
        if qualified in sys.modules:
            return sys.modules[qualified]
        path = _file(text, name)
        origin = f"<{qualified}>" if path is None else str(path)
        module = ModuleType(qualified)
        if path is not None:
            module.__file__ = origin
        else:
            # inspect, which Triton calls, and tracebacks look the lines up here.
            linecache.cache[origin] = len(text), None, text.splitlines(keepends=True), origin
        sys.modules[qualified] = module
        try:
            # importlib is avoided: its .pyc beside the file could be stale or damaged.
            exec(compile(text, origin, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[qualified]
            raise
        return module


def _file(text: str, name: str) -> Path | None:
    """Return the path of a file with this text in the cache folder; None if it cannot be written."""
    path = cache_folder() / "kernels" / name / "kernel.py"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == text:
            return path
    with contextlib.suppress(OSError):
        write_atomic(path, text)
        return path
    return None
