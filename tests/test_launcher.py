"""The launcher as a program: which version it starts, how it watches a new one, and when it gives one up."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from app import launcher

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the versions here are shell scripts")
WORKS = 'mkdir -p "$MARKS"; touch "$MARKS/$NAME.window" "$MARKS/$NAME.node"; sleep 0.3; echo "$NAME $*"'
ENDS = "exit 3"
QUIET = "exec sleep 60"
SLOW = f"sleep 1; {WORKS}"
BASE = "import os, sys\nprint('base', *sys.argv[1:])\n"


@dataclass
class Computer:
    """An installed copy, and versions beside it that do what their script says."""

    folder: Path

    def install(self, version: str = "1.0", kind: str = "appimage") -> None:
        package = self.folder / "installed/app/app"
        package.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(launcher.__file__, package / "launcher.py")
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(BASE)
        self._manifest(self.folder / "installed", version, kind)

    def add(self, version: str, script: str) -> None:
        program = self.folder / "versions" / version / "python/bin/python3.11"
        program.parent.mkdir(parents=True)
        marks = self.folder / "versions/marks"
        program.write_text(f'#!/bin/sh\nMARKS="{marks}" NAME={version}\nshift 3\n{script}\n')
        program.chmod(0o755)
        self._manifest(self.folder / "versions" / version, version, "appimage")

    def choose(self, current: str, previous: str = "") -> None:
        (self.folder / "versions/current.json").write_text(json.dumps({"current": current, "previous": previous}))

    def mark(self, version: str, suffix: str, content: str = "") -> None:
        marks = self.folder / "versions/marks"
        marks.mkdir(exist_ok=True)
        (marks / f"{version}.{suffix}").write_text(content)

    def started(self, *words: str) -> subprocess.Popen[str]:
        start = self.folder / "installed/app/app/launcher.py"
        command = [sys.executable, "-c", PATH, str(start), *words]
        environment = {**os.environ, launcher.FOLDER: str(self.folder / "versions")}
        environment.pop("PYTHONPATH", None)
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=self.folder
        )

    def start(self, *words: str) -> tuple[str, int]:
        process = self.started(*words)
        said, _ = process.communicate(timeout=30)
        return said.strip(), process.returncode

    @property
    def failed(self) -> dict[str, str]:
        marks = sorted((self.folder / "versions/marks").glob("*.failed"))
        return {path.name.removesuffix(".failed"): json.loads(path.read_text())["how"] for path in marks}

    @property
    def tries(self) -> list[Path]:
        return list((self.folder / "versions/marks").glob("*.try-*"))

    @staticmethod
    def _manifest(folder: Path, version: str, kind: str) -> None:
        (folder / "installed.json").write_text(json.dumps({"version": version, "kind": kind}))


# As the installed Python does, it imports from the folder of the app.
PATH = """
import os, runpy, sys
start = sys.argv[1]
sys.path.insert(0, os.path.dirname(os.path.dirname(start)))
sys.argv = sys.argv[1:]
sys.path_importer_cache.clear()
source = open(start).read()
if seconds := os.environ.get("HUNG_SECONDS"):
    assert "HUNG_SECONDS = 60.0" in source
    source = source.replace("HUNG_SECONDS = 60.0", f"HUNG_SECONDS = {seconds}")
exec(compile(source, start, "exec"), {"__name__": "__main__", "__file__": start})
"""


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    made = Computer(tmp_path)
    made.install()
    (tmp_path / "versions").mkdir()
    return made


def test_without_updates_the_installed_copy_runs(computer: Computer) -> None:
    assert computer.start("status", "--json") == ("base status --json", 0)


def test_a_new_version_starts_with_the_same_words_and_is_watched_once(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    assert computer.start("--hidden") == ("2.0 --hidden", 0)
    assert computer.tries == []
    program = computer.folder / "versions/2.0/python/bin/python3.11"
    program.write_text("#!/bin/sh\necho $$\nexit 3\n")
    process = computer.started()
    said, _ = process.communicate(timeout=30)
    assert (int(said), process.returncode) == (process.pid, 3)  # the launcher itself became the new version
    assert computer.failed == {}


def test_a_version_that_ends_twice_gives_way_to_the_one_before(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.mark("2.0", "window")
    computer.add("3.0", ENDS)
    computer.choose("3.0", "2.0")
    assert computer.start() == ("2.0", 0)
    assert computer.failed == {"3.0": "ended"}
    assert computer.start() == ("2.0", 0)


def test_a_version_that_ends_gives_way_on_a_file_system_without_locks(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a network share: no attempt can be seen to be cut off, and the launcher must not start it forever."""

    def no_locks(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    starts = computer.folder / "starts"
    computer.add("2.0", f'echo started >> "{starts}"; [ $(wc -l < "{starts}") -lt 9 ] || exit 0; exit 3')
    marks = computer.folder / "versions/marks"
    command = [str(computer.folder / "versions/2.0/python/bin/python3.11"), "-P", "-m", "app"]
    assert launcher._watched(marks, "2.0", launcher.WINDOW, command) is None
    assert starts.read_text().split() == ["started"] * launcher.MOST_TRIES
    assert (marks / f"2.0.{launcher.FAILED}").exists()


def test_with_no_version_before_the_installed_copy_runs_again(computer: Computer) -> None:
    computer.add("2.0", ENDS)
    computer.choose("2.0")
    assert computer.start("node") == ("base node", 0)
    assert computer.failed == {"2.0": "ended"}


def test_a_version_that_runs_is_never_ended(computer: Computer) -> None:
    computer.add("2.0", QUIET)
    computer.choose("2.0")
    process = computer.started()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    assert computer.failed == {}
    process.terminate()
    process.communicate(timeout=20)


def test_a_version_that_hangs_gives_way_once_the_user_has_ended_it_twice(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNG_SECONDS", "0.5")
    computer.add("2.0", QUIET)
    computer.choose("2.0")
    for _ in range(launcher.MOST_TRIES):
        process = computer.started()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM
    assert computer.start() == ("base", 0)
    assert computer.failed == {"2.0": "unfinished"}


def test_two_starts_that_were_cut_off_count(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    computer.mark("2.0", "try-1-1")
    computer.mark("2.0", "try-2-2")
    assert computer.start() == ("base", 0)
    assert computer.failed == {"2.0": "unfinished"}


def test_an_impatient_user_is_no_failure(computer: Computer) -> None:
    computer.add("2.0", SLOW)
    computer.choose("2.0")
    processes = [computer.started() for _ in range(4)]
    said = [process.communicate(timeout=30)[0].strip() for process in processes]
    assert said == ["2.0"] * 4
    assert computer.failed == {}
    assert not computer.tries


@pytest.mark.parametrize(("code", "returned"), [(launcher.REFUSED, 1), (launcher.WRONG_USAGE, 2), (130, 130)])
def test_a_refusal_in_good_order_is_no_failure(computer: Computer, code: int, returned: int) -> None:
    computer.add("2.0", f"exit {code}")
    computer.choose("2.0")
    for _ in range(3):
        assert computer.start("node") == ("", returned)
    assert computer.failed == {}


def test_the_real_program_tells_a_refusal_from_a_crash(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    environment = {**os.environ, launcher.WATCHED: "1"}
    for words, code in (
        (["node", "--home", str(occupied)], launcher.REFUSED),
        (["node", "--nmae", "x"], launcher.WRONG_USAGE),
    ):
        done = subprocess.run([sys.executable, "-m", "app", *words], env=environment, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
    environment["PYTHONIOENCODING"] = "no such encoding"
    done = subprocess.run([sys.executable, "-m", "app", "node"], env=environment, capture_output=True, check=False)
    assert done.returncode not in launcher.ORDERLY


def test_where_nothing_can_be_noted_the_new_version_runs(computer: Computer) -> None:
    computer.add("2.0", 'echo "$NAME $*"')
    computer.choose("2.0")
    (computer.folder / "versions/marks").write_text("a file, so that no mark can be written")
    assert computer.start() == ("2.0", 0)


def test_a_new_program_that_cannot_be_run_gives_way_without_being_blamed(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    (computer.folder / "versions/2.0/python/bin/python3.11").chmod(0o644)
    assert computer.start() == ("base", 0)
    assert computer.failed == {}


def test_a_user_who_quits_at_once_is_no_failure(computer: Computer) -> None:
    computer.add("2.0", "exit 0")
    computer.choose("2.0")
    assert computer.start() == ("", 0)
    assert computer.failed == {}


def test_a_signal_is_passed_on_and_is_no_failure(computer: Computer) -> None:
    computer.add("2.0", QUIET)
    computer.choose("2.0")
    process = computer.started("node")
    while not computer.tries:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert computer.failed == {}
    assert not computer.tries


def test_the_installed_copy_ends_by_a_signal_after_a_new_version_was_given_up(computer: Computer) -> None:
    package = computer.folder / "installed/app/app"
    (package / "__main__.py").write_text("import time\nprint('base', flush=True)\ntime.sleep(20)\n")
    computer.add("2.0", ENDS)
    computer.choose("2.0")
    process = computer.started()
    assert process.stdout is not None
    assert process.stdout.readline() == "base\n"
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
    process.stdout.close()


def test_a_command_that_only_asks_is_not_watched(computer: Computer) -> None:
    computer.add("2.0", ENDS)
    computer.choose("2.0")
    computer.mark("2.0", "node")
    assert computer.start("status") == ("", 3)
    assert computer.failed == {}


def test_commands_leave_a_version_that_has_never_started(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.add("3.0", ENDS)
    computer.choose("3.0", "2.0")
    assert computer.start("status") == ("base status", 0)
    computer.mark("2.0", "window")
    assert computer.start("status") == ("2.0 status", 0)


def test_commands_are_of_the_version_whose_node_runs(computer: Computer) -> None:
    for version in ("2.0", "3.0"):
        computer.add(version, WORKS)
        computer.mark(version, "node")
    computer.choose("3.0", "2.0")
    home = computer.folder / "home"
    home.mkdir()
    for version, says in (("2.0", "2.0"), ("1.0", "base"), ("3.0", "3.0")):
        (home / "runtime.json").write_text(json.dumps({"pid": os.getpid(), "version": version}))
        assert computer.start("status", "--home", str(home)) == (f"{says} status --home {home}", 0)
    (home / "runtime.json").write_text(json.dumps({"pid": 2**22 + 1, "version": "2.0"}))
    assert computer.start("status", "--home", str(home))[0].startswith("3.0 ")


def test_going_back_is_not_left_to_the_version_to_leave(computer: Computer) -> None:
    computer.add("3.0", ENDS)
    computer.mark("3.0", "node")
    computer.choose("3.0")
    assert computer.start("update", "--rollback") == ("base update --rollback", 0)
    computer.add("2.0", WORKS)
    computer.mark("2.0", "node")
    computer.choose("3.0", "2.0")
    assert computer.start("update", "--rollback") == ("2.0 update --rollback", 0)


def test_an_installed_copy_that_is_newer_wins(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    computer.install("2.1")
    assert computer.start() == ("base", 0)


def test_a_package_of_the_system_is_never_replaced(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    computer.install("1.0", "deb")
    assert computer.start() == ("base", 0)


@pytest.mark.parametrize("damage", ["manifest", "program", "current"])
def test_a_damaged_version_is_passed_over(computer: Computer, damage: str) -> None:
    computer.add("2.0", WORKS)
    computer.choose("2.0")
    place = computer.folder / "versions"
    match damage:
        case "manifest":
            (place / "2.0/installed.json").write_text("{")
        case "program":
            (place / "2.0/python/bin/python3.11").unlink()
        case "current":
            (place / "current.json").write_text('["2.0"]')
    assert computer.start() == ("base", 0)


def test_a_program_that_cannot_be_run_gives_way_to_the_installed_copy(computer: Computer) -> None:
    computer.add("2.0", WORKS)
    computer.mark("2.0", "window")
    computer.choose("2.0")
    (computer.folder / "versions/2.0/python/bin/python3.11").chmod(0o644)
    assert computer.start() == ("base", 0)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "window"),
        (["--hidden"], "window"),
        (["--home", "/x"], "window"),
        (["--home=/x", "node"], "node"),
        (["node", "--name", "a"], "node"),
        (["node", "--help"], None),
        (["ask", "node"], None),
        (["--version"], None),
    ],
)
def test_what_is_started(words: list[str], what: str | None) -> None:
    assert launcher.started(words) == what


@pytest.mark.parametrize(
    ("version", "than", "is_newer"),
    [("0.10.0", "0.9.9", True), ("1.0", "1.0.0", False), ("1.0", "", True), ("main", "1.0", False), ("2", "1.9", True)],
)
def test_which_version_is_newer(version: str, than: str, is_newer: bool) -> None:
    assert launcher.is_newer(version, than) is is_newer
