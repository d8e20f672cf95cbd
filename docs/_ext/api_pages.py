"""Pages for the public names, which autodoc fills from their docstrings."""

from __future__ import annotations

import inspect
from collections import defaultdict
from importlib import import_module
from types import ModuleType

import lcma

FLOORS = ("lcma.schemes_db", "lcma.search", "lcma.verify")


def public_packages() -> list[str]:
    """The packages whose names are public beside those of `lcma`: the modules that it offers, and the lower floors."""
    offered = [getattr(lcma, name) for name in lcma.__all__]
    return sorted([*FLOORS, *(value.__name__ for value in offered if isinstance(value, ModuleType))])


def names_of(package: str) -> list[str]:
    """The public names of a package: `__all__`, or what it defines where it has none."""
    module = import_module(package)
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    public = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in public if (getattr(getattr(module, name), "__module__", "") or "").startswith(package)]


def page_name(package: str) -> str:
    """The page of a package: `kernels-kronecker` of `lcma.kernels.kronecker`."""
    return package.removeprefix("lcma.").replace(".", "-")


def public_names() -> list[str]:
    """The public names of `import lcma`, without modules and the version."""
    return [name for name in lcma.__all__ if name != "__version__" and not isinstance(getattr(lcma, name), ModuleType)]


def api_pages() -> dict[str, str]:
    """A page for each public name, one for each package, and `index`."""
    names = public_names()
    pages = {name: _page(f"lcma.{name}", getattr(lcma, name)) for name in names}
    described: set[int] = set()
    pages |= {page_name(package): _package(package, described) for package in public_packages()}
    return {"index": _index(names), **pages}


def _index(names: list[str]) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[(getattr(lcma, name).__module__ or "").split(".")[1]].append(name)
    titles = {
        "schemes_db": "Schemes, targets, catalogue",
        "verify": "Proofs",
        "search": "Search",
        "kernels": "Products of matrices",
        "errors": "Errors",
    }
    parts = ["# Python\n\n`import lcma` loads nothing heavy: a name is imported when it is first used."]
    for group, title in titles.items():
        rows = "\n".join(f"| [{name}]({name}.md) | {_summary(getattr(lcma, name))} |" for name in groups.pop(group))
        parts.append(f"## {title}\n\n| name | what |\n| --- | --- |\n{rows}")
    if groups:
        raise LookupError(f"no title for the names of {sorted(groups)}")
    rows = "\n".join(
        f"| [{package}]({page_name(package)}.md) | {_summary(import_module(package))} |"
        for package in public_packages()
    )
    parts.append(f"## Packages\n\n| package | what |\n| --- | --- |\n{rows}")
    tree = "\n".join([*names, *map(page_name, public_packages())])
    parts.append(f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n")
    return "\n\n".join(parts)


def _summary(value: object) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()).replace("|", "\\|")


def _page(path: str, value: object) -> str:
    return f"# {path}\n\n```{{eval-rst}}\n{_directive(path, value)}\n```\n"


def _directive(path: str, value: object, *options: str) -> str:
    if inspect.isclass(value):
        fields = getattr(value, "_fields", ())  # of a named tuple, whose docstring lists them
        hidden = [f":exclude-members: {', '.join(fields)}"] if fields else []
        kind, settings, body = "autoclass", [":members:", *hidden, *options], []
    elif callable(value):
        kind, settings, body = "autofunction", [*options], []
    else:
        kind, settings, body = "py:data", [*options], ["", _constant(value)]
    return "\n".join([f".. {kind}:: {path}", *(f"   {line}" if line else "" for line in [*settings, *body]), ""])


def _constant(value: object) -> str:
    """Return the content of a constant: its keys, its items, or its text."""
    if isinstance(value, dict | tuple | list | set | frozenset):
        return f"A {type(value).__name__} of {', '.join(f'`{item}`' for item in value)}."
    return f"`{value!r}`"


def _package(package: str, described: set[int]) -> str:
    """The page of a package; what a page before describes (`described`, by identity) is not indexed again."""
    module = import_module(package)
    directives = []
    for name in names_of(package):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        listed = (getattr(lcma, name, None) is value and name in lcma.__all__) or id(value) in described
        described.add(id(value))
        directives.append(_directive(f"{package}.{name}", value, *([":no-index:"] if listed else [])))
    body = "\n".join(directives)
    return f"# {package}\n\n{_summary(module)}\n\n```{{eval-rst}}\n{body}\n```\n"
