"""Names of a package that are imported when they are first used, listed once: in the imports for type checkers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def names_on_first_use(
    module: str, optional: tuple[str, str] = ("", "")
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module, by its lines `    from .home import name as name`.

    These lines are below `if TYPE_CHECKING` and are read at the first use. `__all__` has their names, sorted, and the
    version. `optional` is a home and a package: where the package is not installed, names of modules below the home are
    not listed, and refused.
    """
    space, (below, package) = vars(sys.modules[module]), optional

    @cache
    def homes() -> dict[str, str]:
        import re

        source = space["__loader__"].get_source(module)
        return {name: home for home, name in re.findall(r"^    from (\.[\w.]*) import (\w+) as \2$", source, re.M)}

    @cache
    def missing() -> set[str]:
        from importlib.util import find_spec

        return {name for name, home in homes().items() if package and home.startswith(below) and not find_spec(package)}

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted({*homes(), *{"__version__"} & space.keys()} - missing())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if (home := homes()[name]) == ".":
            return import_module(home + name, space["__package__"])
        try:
            value = space[name] = getattr(import_module(home, space["__package__"]), name)
        except ModuleNotFoundError as error:
            if name not in missing():
                raise
            mend = f"pip install '{module}[{package}]'"
            raise ModuleNotFoundError(f"{module}.{name} needs {package}; {mend}", name=error.name) from None
        return value

    return load, lambda: sorted({*space, *homes()} - missing())


class LateModule:
    """A module that is imported when one of its names is first used; the name is relative to a package."""

    def __init__(self, name: str, package: str) -> None:
        self._place = name, package

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(*self._place), name)
