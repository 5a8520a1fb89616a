"""The gradebook in PostgreSQL, as CourseDirectory.db_url allows: a real server, the same rows as in SQLite."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graders.settings import CONFIG_FILE, Course, open_course
from pipeline.conftest import ROOT, hand_in, one_line, run
from pipeline.test_nbgrader import SLUG, a_class, rows

pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
pytestmark = pytest.mark.slow


def programs() -> Path | None:
    """The folder of PostgreSQL's programs: Debian does not put them on PATH."""
    on_path = shutil.which("initdb")
    found = [os.path.realpath(on_path)] if on_path else []
    found += sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)
    return Path(found[0]).parent if found else None


def unprivileged() -> list[str]:
    """What to put before a command, since PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    return ["runuser", "-u", "postgres" if "postgres" in names else "nobody", "--"]


class Server:
    """A PostgreSQL server in a folder of its own, on a loopback port and a socket in that folder."""

    def __init__(self, bin: Path, folder: Path) -> None:
        self.bin, self.folder = bin, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql+psycopg://grader@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Make the cluster of databases and wait until it answers."""
        data = str(self.folder / "data")
        self._run("initdb", "--auth", "trust", "--username", "grader", "--encoding", "UTF8", "--no-sync", "-D", data)
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", data, "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        """End it at once, connections included."""
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", str(self.folder / "data"))

    def _run(self, program: str, *words: str) -> None:
        command = [*unprivileged(), str(self.bin / program), *words]
        # Not through a pipe: the server would inherit it and hold it open.
        with open(self.folder.parent / "output", "a+b") as output:
            done = subprocess.run(command, cwd="/", stdout=output, stderr=output, check=False, timeout=60)
        if done.returncode:
            raise AssertionError((self.folder.parent / "output").read_text(errors="replace")[-2000:])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A running server; its folder lies where an unprivileged user may go, unlike pytest's."""
    bin = programs()
    if bin is None:
        reason = "PostgreSQL's initdb is neither on PATH nor in /usr/lib/postgresql; apt-get install postgresql"
        print(reason)
        pytest.skip(reason)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="qkv-pg-") as name:
        os.chmod(name, 0o711)
        folder = Path(name) / "server"
        folder.mkdir()
        if unprivileged():
            shutil.chown(folder, unprivileged()[2])
        server = Server(bin, folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def course_on(server: Server, folder: Path) -> Course:
    """A course folder with nothing but its source, whose gradebook is a database of its own on `server`."""
    folder.mkdir()
    name = f"course_{time.monotonic_ns()}"
    server._run(
        "psql", "-h", "127.0.0.1", "-p", str(server.port), "-U", "grader", "-c", f"CREATE DATABASE {name}", "postgres"
    )
    url = server.url.removesuffix("postgres") + name
    text = (ROOT / CONFIG_FILE).read_text()
    line = '    c.CourseDirectory.course_id = "qkv"\n'
    assert line in text
    (folder / CONFIG_FILE).write_text(text.replace(line, f"{line}    c.CourseDirectory.db_url = {url!r}\n"))
    shutil.copytree(ROOT / "source" / SLUG, folder / "source" / SLUG)
    return open_course(folder)


def test_release_and_grade_give_the_same_rows_as_with_sqlite(server, tmp_path, course_of):
    """`qkv release` and `qkv grade` on PostgreSQL: every mark, comment, penalty and time is the one that SQLite has."""
    lite, course = course_of(SLUG), course_on(server, tmp_path / "course")
    done = run(course.root, "qkv", "release", SLUG)
    assert done.returncode == 0, done.stderr
    a_class(lite)
    shutil.copytree(lite.folder("submitted"), course.folder("submitted"))
    here, there = run(lite.root, "qkv", "grade", SLUG), run(course.root, "qkv", "grade", SLUG)
    assert (here.returncode, there.returncode) == (3, 3), there.stderr
    assert rows(course) == rows(lite)
    assert not (course.root / "gradebook.db").exists()
    again = run(course.root, "qkv", "grade", SLUG, "--force")
    assert again.returncode == 3, again.stderr
    assert rows(course) == rows(lite)


def test_autograde_on_postgresql_gives_the_same_rows(server, tmp_path, course_of):
    """nbgrader's own commands work on the same database and leave the same marks."""
    lite, course = course_of(SLUG), course_on(server, tmp_path / "course")
    a_class(lite)
    shutil.copytree(lite.folder("submitted"), course.folder("submitted"))
    assert run(lite.root, "qkv", "grade", SLUG).returncode == 3
    assert run(course.root, "qkv", "release", SLUG).returncode == 0
    done = run(course.root, "nbgrader", "autograde", SLUG)
    assert done.returncode == 0, done.stderr[-2000:]
    assert rows(course) == rows(lite)


def test_server_that_is_gone_is_one_line(server, tmp_path):
    """A gradebook that cannot be reached is named, without traceback or password, and nothing is written."""
    course = course_on(server, tmp_path / "course")
    assert run(course.root, "qkv", "release", SLUG).returncode == 0
    text = (course.root / CONFIG_FILE).read_text()
    (course.root / CONFIG_FILE).write_text(
        text.replace(f"grader@127.0.0.1:{server.port}/", "grader:secret@127.0.0.1:1/")
    )
    hand_in(course, "a", SLUG, {})
    line = one_line(run(course.root, "qkv", "grade", SLUG), 2)
    assert "gradebook" in line
    assert "cannot be used" in line
    assert "secret" not in line
    assert not course.folder("autograded").exists()


def test_driver_that_is_not_installed_is_named(course_of):
    """A URL with another driver than the one that the extra installs says which to write."""
    course = course_of(SLUG)
    hand_in(course, "a", SLUG, {})
    with open(course.root / CONFIG_FILE, "a") as file:
        file.write('\nc.CourseDirectory.db_url = "postgresql+pg8000://grader@127.0.0.1/course"\n')
    line = one_line(run(course.root, "qkv", "grade", SLUG), 2)
    assert "qkv-graders[postgres]" in line
