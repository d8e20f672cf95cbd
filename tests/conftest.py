"""Fixtures that every test has: a home of its own, command lines, and figures of no machine in particular."""

import contextlib
import gc
import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

# Before numpy and torch start their threads: those that wait for work sleep. By default each spins for some 25 ms after
# every product, a third of the processor time of tests of products.
os.environ |= {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}

import platformdirs
import pytest
from threadpoolctl import threadpool_limits

_LARGEST_CACHE = 1 << 30
_LONGEST_UNTOUCHED = 7 * 24 * 3600


def _prune(folder: Path) -> None:
    """Delete the compiled code of sources that nothing was compiled from for a week, and the oldest beyond a gigabyte.

    A run that still needs it compiles again: an entry that has gone counts as missing.
    """
    total = 0
    for stamped in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
        total += sum(path.stat().st_size for path in stamped.iterdir())
        if total > _LARGEST_CACHE or stamped.stat().st_mtime < time.time() - _LONGEST_UNTOUCHED:
            shutil.rmtree(stamped, ignore_errors=True)


def _shared_folder(name: str) -> Path:
    """The code that numba or this package's own generator compiled in all runs of all clones of this user.

    Most of the time of a first run is compiling. An entry is stamped with the sources that it comes from and with what
    compiled it, and is found by the processor's features. An empty XDG_CACHE_HOME makes a run a first one.
    """
    folder = platformdirs.user_cache_path("lcma-tests", appauthor=False) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # this user can write no such folder: one for this run
        folder = Path(_HOME.name, f"compiled-{name}")
        folder.mkdir()
    with contextlib.suppress(OSError):  # another run prunes it at the same time
        _prune(folder)
    return folder


# Until all tests are collected: looking through the modules that are imported meanwhile is a quarter of that time.
gc.disable()

# Before anything reads it: no test may see or touch the user's own catalogue. Workers of pytest-xdist
# inherit the first process's environment: each has a home of its own inside that one's, and they
# share compiled code.
_HOME = tempfile.TemporaryDirectory(prefix="lcma-tests-")
if "PYTEST_XDIST_WORKER" in os.environ:
    _CACHE = Path(os.environ["LCMA_HOME"], "cache")
    _CACHE.mkdir(exist_ok=True)
    Path(_HOME.name, "cache").symlink_to(_CACHE)
else:
    Path(_HOME.name, "cache").mkdir()
    for _name in ("numba", "kernels"):
        Path(_HOME.name, "cache", _name).symlink_to(_shared_folder(_name))
os.environ["LCMA_HOME"] = _HOME.name

# No test times products behind its back; those of learning switch it on.
os.environ["LCMA_LEARN"] = "0"

import lcma  # noqa: E402
from lcma import jit  # noqa: E402
from lcma.schemes_db.shipped import shipped_names  # noqa: E402

# A process looks once where its compiled code is: not in the home of the test that happens to be first.
jit._cache_root()


_OF_ALL_KINDS = {
    *("strassen", "laderman", "eca-stage1", "eca-stage2", "2x3x4-r20", "2x7x9-r96", "4x4x4-r47-mod2"),
    *("3x3x3-tri-left-r17", "3x3x3-upper-lower-r13", "4x4x4-band1-r34", "4x4x4-upper-upper-r19", "5x2x5-tri-out-r26"),
}
"""Shipped schemes of every ring and structure."""


@pytest.hookimpl(tryfirst=True)  # before a choice by marks
def pytest_collection_modifyitems(items):
    """Mark the tests whose coverage `make coverage` measures."""
    covered = tuple(os.path.join(Path(__file__).parent, name, "") for name in ("schemes_db", "verify"))
    for item in items:
        if str(item.path).startswith(covered):
            item.add_marker("covered")


def pytest_collection_finish():
    """Leave the modules and tests that are there out of collections of garbage: they stay to the end of the run."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def pytest_sessionfinish():
    """Collect garbage once; what is left stays to the end of the process, which would look through all of it again."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc):
    """`representative`: twelve shipped schemes of all kinds; `shipped_name`: all, those others in the slow suite."""
    if "representative" in metafunc.fixturenames:
        metafunc.parametrize("representative", sorted(_OF_ALL_KINDS))
    if "shipped_name" in metafunc.fixturenames:
        slow = pytest.mark.slow
        names = [name if name in _OF_ALL_KINDS else pytest.param(name, marks=slow) for name in shipped_names()]
        assert len(_OF_ALL_KINDS) == 12 == sum(isinstance(name, str) for name in names)
        metafunc.parametrize("shipped_name", names)


@pytest.fixture(autouse=True)
def _same_tensors_in_every_run():
    """Seed torch where a test has imported it: torch itself starts every process with another seed."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(0)  # a tenth of the time of torch.manual_seed, which is for GPUs too
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(0)


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """An LCMA_HOME that is yet to be made."""
    monkeypatch.setenv("LCMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def new_catalogue(tmp_path_factory):
    """The file of a catalogue without schemes of the user's: writing it takes many times as long as copying it."""
    path = tmp_path_factory.mktemp("catalogue") / "catalog.db"
    lcma.Catalog.open(path).close()
    return path


@pytest.fixture
def home(empty_home, new_catalogue):
    """A fresh LCMA_HOME with the catalogue that the first command would make there."""
    (empty_home / "data").mkdir(parents=True)
    shutil.copy(new_catalogue, empty_home / "data")
    return empty_home


@pytest.fixture
def one_thread():
    """BLAS and torch run on one thread: in several processes of tests threads wait longer for others than they work."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """What calls write, wrong ones too, is no file of the project."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def link_compiled():
    """link_compiled(home): link the compiled code of all runs of tests into a home: a new process would compile it."""

    def link(home: Path) -> Path:
        (home / "cache").mkdir(parents=True)
        for name in ("numba", "kernels"):
            (home / "cache" / name).symlink_to(Path(_HOME.name, "cache", name))
        return home

    return link


@pytest.fixture
def warm_home(home, link_compiled):
    """A fresh LCMA_HOME with compiled code."""
    return link_compiled(home)


@pytest.fixture
def strassen() -> lcma.Scheme:
    return lcma.resolve("strassen")[0]


@pytest.fixture
def flat_rates(monkeypatch):
    """This machine has fixed rates, whatever it is."""
    from lcma.kernels.cpu import machine
    from lcma.kernels.exact import cpu
    from lcma.kernels.planning.profile import GemmRate, Profile

    def flat(dtype):
        return Profile("flat", "test", (), (GemmRate(dtype, 64, 64, 64, 1e11),), 5e10, 5e10)

    bits = tuple(GemmRate("bit", 1024, 1024, 1024, 1.6e13, mode, "affine") for mode in ("whole", "tasks"))
    monkeypatch.setattr(machine, "profile_for", flat)
    monkeypatch.setattr(cpu, "measured_rates", lambda threads: bits)


@pytest.fixture
def no_gpu(monkeypatch):
    """This machine has no GPU, whatever it is."""
    from lcma.kernels.cuda import machine

    monkeypatch.setattr(machine, "device_reason", lambda index=None: "torch sees no GPU")


class Command:
    """Runs command lines that begin with some arguments: exit code, stdout, stderr."""

    def __init__(self, capsys, *first):
        self.capsys, self.first = capsys, first

    def __call__(self, *arguments):
        from lcma.workbench.cli import main

        code = main([str(argument) for argument in (*self.first, *arguments)])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def of(self, *first):
        """Command lines that begin with other arguments."""
        return Command(self.capsys, *first)

    def ok(self, *arguments):
        """What is printed, with exit code 0."""
        code, out, err = self(*arguments)
        assert code == 0, (arguments, err)
        return out

    def said(self, wanted, *arguments):
        """What is printed on both streams, with an exit code."""
        code, out, err = self(*arguments)
        assert code == wanted, (arguments, err)
        return out + err

    def json(self, *arguments):
        """What is printed with --json, with exit code 0."""
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, wanted, message, *arguments):
        """Nothing on stdout, one line with a message on stderr, at most after lines of progress, and an exit code."""
        code, out, err = self(*arguments)
        lines = err.splitlines() or [""]
        ours = all(line.startswith("lcma: ") for line in lines)
        assert (code, out, ours, message in lines[-1]) == (wanted, "", True, True), (arguments, err)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line: exit code, stdout, stderr without the lines of progress of a slow machine; see `Command`."""
    from lcma.workbench import progress

    monkeypatch.setattr(progress, "QUIET_SECONDS", math.inf)
    return Command(capsys)
