"""Code blocks of Markdown pages: executed in one folder a page, outputs compared with times and paths masked.

```console    lines that start with `$ ` are run by bash, the lines below are their output, `...` any number of lines,
              `[exit code N]` ends a command that fails
```python     run in one namespace a page; a ```output block below is what it prints
<!-- file: NAME -->   the next block is the content of that file
<!-- skip: REASON --> the next block is not run
"""

import contextlib
import io
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?:<!-- (?P<mark>file|skip): (?P<value>.*?) -->\n+)?```(?P<language>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)

NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
UNITS = r"(?:ns|us|ms|s|min|kB|MB|GB|GFLOP/s|TFLOP/s|M/s|G/s|M flips|rounds)"
MASKS = (
    (re.compile(rf"{NUMBER} effective GFLOP/s"), "# GFLOP/s"),
    (re.compile(rf"{NUMBER} ?{UNITS}\b"), "#"),
    (re.compile(r"relative error [\d.e+-]+"), "relative error #"),
    (re.compile(r"\(classical float32: [\d.e+-]+\)"), "(classical float32: #)"),
    (re.compile(r"/(?:tmp|home|root)/\S+"), "PATH"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, line in the page, and what a comment above says of it."""

    language: str
    body: str
    line: int
    mark: str = ""
    value: str = ""


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page that have a language."""
    return blocks_in(page.read_text(encoding="utf-8"))


def blocks_in(text: str) -> list[Block]:
    """The fenced blocks of a text that have a language."""
    return [
        Block(
            found["language"],
            found["body"],
            text.count("\n", 0, found.start("body")),
            found["mark"] or "",
            found["value"] or "",
        )
        for found in FENCE.finditer(text)
    ]


def masked(text: str) -> list[str]:
    """The lines with times, rates, errors and paths replaced; empty ones left out."""
    lines = []
    for line in text.splitlines():
        for pattern, replacement in MASKS:
            line = pattern.sub(replacement, line)
        if line.strip():
            lines.append(line.strip())
    return lines


def matches(wanted: list[str], got: list[str]) -> bool:
    """Return whether the lines agree; `...` stands for any number of lines, and within a line for any text."""
    if not wanted:
        return not got
    first, rest = wanted[0], wanted[1:]
    if first == "...":
        return any(matches(rest, got[skipped:]) for skipped in range(len(got) + 1))
    if not got:
        return False
    pattern = ".*".join(re.escape(part.strip()) for part in first.split("..."))
    return re.fullmatch(pattern, got[0]) is not None and matches(rest, got[1:])


def commands_of(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    command, output = "", ""
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:].strip(), ""
        else:
            output += line
    if command:
        yield command, output


def shown_and_code(output: str) -> tuple[str, int]:
    """What a page shows of a command's output, and the exit code that the output ends with, 0 by default."""
    found = re.search(r"^\[exit code (\d+)\]\n?\Z", output, re.M)
    return (output[: found.start()], int(found[1])) if found else (output, 0)


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run the blocks of a page in `folder` and return how many were run.

    Raises:
        AssertionError: an output is not that of the page.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    count = 0
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.mark == "file":
            (folder / block.value).write_text(block.body, encoding="utf-8")
        elif block.mark == "skip":
            assert block.value, f"{where}: a block is skipped without a reason"
        elif block.language == "console":
            for command, wanted in commands_of(block.body):
                _run_command(command, wanted, where, folder, environment)
                count += 1
        elif block.language == "python":
            assert not printed, f"{where}: the block above prints {printed!r}, and the page does not show it"
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.chdir(folder):
                exec(compile(block.body, where, "exec"), namespace)
            printed = out.getvalue()
            count += 1
        elif block.language == "output":
            assert printed is not None, f"{where}: an output without code"
            assert matches(masked(block.body), masked(printed)), f"{where}: the code prints\n{printed}"
            printed = None
    assert not printed, f"{page.name}: the last block prints {printed!r}, and the page does not show it"
    return count


def _run_command(command: str, wanted: str, where: str, folder: Path, environment: Mapping[str, str]) -> None:
    shown, code = shown_and_code(wanted)
    ran = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == code, f"{where}: $ {command} ended with {ran.returncode}: {ran.stdout}{ran.stderr}"
    got = ran.stdout or ran.stderr if shown.strip() else ""
    assert matches(masked(shown), masked(got)), f"{where}: $ {command} says\n{got}\nthe page says\n{shown}"
