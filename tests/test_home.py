import os
import sys
import tempfile

import pytest

import lcma
from lcma.home import _private_folder, cache_folder, data_folder, home, writable, write_atomic


def test_one_folder_holds_everything(monkeypatch, tmp_path):
    monkeypatch.setenv("LCMA_HOME", str(tmp_path / "x"))
    assert home() == tmp_path / "x"
    assert data_folder().parent == cache_folder().parent == home()
    monkeypatch.delenv("LCMA_HOME")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(lcma.LcmaError, match="set LCMA_HOME"):
        home()


def test_by_default_it_is_the_platforms_place(monkeypatch):
    pytest.importorskip("platformdirs")
    monkeypatch.delenv("LCMA_HOME")
    assert home().name == "lcma"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write_atomic(path, "first")
    assert path.read_text() == "first"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"second")
    assert path.read_text() == "first"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_an_unwritable_cache_falls_back_to_the_temporary_folder(tmp_path):
    (tmp_path / "file").write_text("")
    fallback = writable(tmp_path / "file" / "cache")
    assert fallback.is_dir()
    assert tmp_path not in fallback.parents
    assert fallback.stat().st_mode & 0o077 == 0  # nobody else can put code there
    assert writable(tmp_path / "file" / "other") == fallback
    assert writable(tmp_path / "good") == tmp_path / "good"


def test_a_cache_without_any_place_is_an_error_that_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    _private_folder.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(OSError, match="none"):
        writable(tmp_path / "file" / "cache")
    _private_folder.cache_clear()
