"""Files are written whole or not at all, and a lock file says who holds it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cxrspec.files import UNFINISHED, holding, write_whole, writing_whole


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """An exception while writing keeps the old content and no temporary file."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), writing_whole(path) as stream:
        stream.write(b"new")
        raise ZeroDivisionError
    assert (b"old", ["a"]) == (path.read_bytes(), [one.name for one in tmp_path.iterdir()])


def test_the_name_appears_only_when_the_content_is_whole(tmp_path: Path) -> None:
    """While a file is being written nothing stands under its name, and the temporary file has the glob's form."""
    path = tmp_path / "folder" / "a"
    with writing_whole(path) as stream:
        stream.write(b"new")
        assert not path.exists()
        assert 1 == len(list(path.parent.glob(UNFINISHED)))
    assert b"new" == path.read_bytes()


def test_the_same_bytes_are_not_written_again(tmp_path: Path) -> None:
    """A file that holds the bytes already keeps its identity on the disk."""
    path = tmp_path / "a"
    write_whole(path, b"same")
    before = path.stat()
    write_whole(path, b"same")
    assert (before.st_ino, before.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)


def test_a_link_into_a_cache_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """D2: writing to a path that is a link leaves the linked object as it was."""
    (tmp_path / "object").write_bytes(b"cached")
    (tmp_path / "a").symlink_to("object")
    write_whole(tmp_path / "a", b"new")
    assert (b"cached", b"new") == ((tmp_path / "object").read_bytes(), (tmp_path / "a").read_bytes())


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    """Colleagues who share a folder can read what was written there."""
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "a").stat().st_mode


def test_who_waits_too_long_learns_who_holds_the_lock(tmp_path: Path) -> None:
    """D4: the second holder is told the process of the first."""
    lock = tmp_path / "folder" / "one.lock"
    with holding(lock, 1), pytest.raises(TimeoutError, match=f"process {os.getpid()} on "), holding(lock, 0):
        pass


def test_a_lock_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    """D4: a stale lock cannot exist, because the operating system frees it."""
    lock = tmp_path / "one.lock"
    code = f"""
import time, pathlib, cxrspec.files
with cxrspec.files.holding(pathlib.Path({str(lock)!r}), 1):
    print("held", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert b"held\n" == child.stdout.readline()
        with pytest.raises(TimeoutError, match=f"process {child.pid} on "), holding(lock, 0):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
    with holding(lock, 0):
        assert lock.exists()
