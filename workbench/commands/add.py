"""`lcma add`"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import click

from ...errors import LcmaError, VerificationError, VerifyOnlyError
from ...schemes_db import Certificate, Scheme, Target
from ...schemes_db.catalog import Catalog
from ...schemes_db.formats import FORMATS
from ...schemes_db.names import checked_new_name, file_stem, is_free_of_meaning, tidy_name, visible
from ...schemes_db.shipped import shipped_names
from ...verify import certified_scheme, verify_file
from ..help import lcma_command
from ..options import TARGET, Choice, argument, option
from ..output import answer, scheme_facts


@lcma_command
def command(
    *,
    files: tuple[str, ...] = argument("FILE..."),
    name: str | None = option(),
    source: str = option(default=""),
    improved: bool = option(),
    keep_both: bool = option(),
    allow_pickle: bool = option(),
    target: Target | None = option(type=TARGET, metavar="TARGET"),
    format_: str | None = option("--format", type=Choice(list(FORMATS))),
) -> None:
    if improved and keep_both:
        raise click.UsageError("--improved and --keep-both exclude each other")
    policy = "improved" if improved else "never" if keep_both else "distinct"
    reports = []
    for file in files:
        reports += verify_file(file, format=format_, target=target, allow_pickle=allow_pickle)
    if name:
        checked_new_name(name)
    if name and len(reports) != 1:
        raise LcmaError(f"--name is for one scheme, not {len(reports)}")
    try:
        proven = [(report.label, *certified_scheme(report)) for report in reports]
    except (VerificationError, VerifyOnlyError) as error:
        raise type(error)(f"{error}; nothing was added") from None
    for _, found, _ in proven:
        checked_new_name(name or found.name)
    added = []
    with Catalog.open() as catalog:
        for label, found, certificate in proven:
            path = Path(label.partition("#")[0])
            origin = found.provenance
            if not origin.kind:
                sha = hashlib.sha256(path.read_bytes()).hexdigest()
                origin = replace(origin, kind="import", source=source or path.name, file_sha256=sha)
            own = name or _free(catalog, found.name or tidy_name(path.stem), found.digest)
            scheme = found.replace(name=own, provenance=origin)
            line = _kept(catalog, scheme, certificate, policy, name)
            added.append({"file": label, "name": own, **scheme_facts(scheme), "result": line})
    answer(added, "\n".join(visible(str(one["result"])) for one in added))


def _free(catalog: Catalog, name: str, digest: str) -> str:
    """The name, or that with the start of the digest where it means something else."""
    free = catalog.named(name) in (None, digest) and name not in shipped_names() and is_free_of_meaning(name)
    return name if free else file_stem(name, digest)


def _kept(catalog: Catalog, scheme: Scheme, certificate: Certificate, policy: str, alias: str | None) -> str:
    """Add a scheme and return one line with the result; `alias` is an additional name."""
    subject = f"{scheme.name} {scheme!r} {scheme.digest[:12]}"
    entries = catalog.entries(scheme.target.name, scheme.ring.name)
    if own := next((entry for entry in entries if entry.digest == scheme.digest), None):
        known = own.name or own.digest[:12]
        if alias and alias != own.name:
            catalog.alias(alias, own.digest)
            return f"there already as {known}; {alias} is now a name of it, too: {scheme!r} {own.digest[:12]}"
        return f"not kept, there already as {known}: {subject}"
    alike = catalog.alike(scheme) if policy != "improved" else []
    twin = f", the same up to symmetry as {alike[0].name or alike[0].digest[:12]}" if alike else ""
    if catalog.add(scheme, certificate, policy):
        return f"added {subject}{twin}"
    return f"not kept{f'{twin} and no better' if twin else ', dominated'}: {subject}"
