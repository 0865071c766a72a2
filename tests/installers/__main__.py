"""`make installers-test` builds the installers, runs all tests in this folder, and prints what was tried.

Builds two versions, because an update needs a newer one. Needs root, and the packages that docs/installers.md lists;
what cannot run here is listed with the reason.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from app.core.reasons import size
from app.machine.versions.tree_hash import file_hash
from installers.payload.places import PROJECT, RESULTS
from installers.windows import cross
from scripts.progress import clock_face

NEWER = "0.2.0"
FOLDER = Path(__file__).parent
BUILT = "--built"  # only try what is in dist/
MOST_SECONDS = 1200  # for a test and its preparations, on a computer that is busy with other things
STOPPED = 130
BUILDS = ((), ("deb", "--version", NEWER))
WINDOWS = ("windows", "--stand-in")
WINDOWS_TOOLS = ("makensis", "wine", cross.C)


@dataclass(frozen=True)
class Tried:
    """A test, how long it took with its preparations, and how it ended: passed, failed, or skipped for a reason.

    reason: for one that passed, what it measured.
    """

    name: str
    seconds: float
    end: str
    reason: str = ""

    def line(self) -> str:
        """Return its line of the summary."""
        why = f": {self.reason}" if self.reason else ""
        return f"  {self.seconds:7.1f} s  {self.end:8} {self.name}{why}"


def main(arguments: list[str]) -> int:
    """Build, test, and print the summary. Other arguments than `--built` go to pytest. Return the exit code."""
    started = time.monotonic()
    lines: list[str] = []
    lacking = [name for name in WINDOWS_TOOLS if not shutil.which(name)]
    if lacking:
        lines.append(f"             skipped  installers windows: needs {', '.join(lacking)}")
    builds = BUILDS if lacking else (*BUILDS, WINDOWS)
    for words in () if BUILT in arguments else builds:
        begun = time.monotonic()
        code = subprocess.run([sys.executable, "-m", "installers", *words], cwd=PROJECT, check=False).returncode
        if code:
            return code
        lines.append(f"  {time.monotonic() - begun:7.1f} s  built    installers {' '.join(words)}".rstrip())
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # Each of the other targets leaves out these marks, so here they are named.
        command = [sys.executable, "-m", "pytest", "-m", "installers or not installers", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1"]  # the later form has no place for what a test measures
        command += [f"--timeout={MOST_SECONDS}", str(FOLDER), *(word for word in arguments if word != BUILT)]
        code = run_to_its_end(command)
        tests = read_report(report) if report.exists() else []
    print("\n".join(summary(lines, tests, artifacts(RESULTS))))
    print(f"{clock_face(time.monotonic() - started)} in all.")
    return code


def run_to_its_end(command: list[str]) -> int:
    """Run pytest. After Ctrl-C, wait until it has cleaned up and written its report."""
    with subprocess.Popen(command, cwd=PROJECT) as running:
        try:
            return running.wait()
        except KeyboardInterrupt:
            running.wait()
            return STOPPED


def read_report(report: Path) -> list[Tried]:
    """Return the tests in a report of pytest, in the order in which they ran."""
    return [_tried(case) for case in ET.parse(report).iter("testcase")]  # noqa: S314  pytest has just written it


def _tried(case: ET.Element) -> Tried:
    name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
    seconds = float(case.get("time", "0"))
    for tag, end in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (ending := case.find(tag)) is not None:
            return Tried(name, seconds, end, ending.get("message", "").partition("\n")[0][:120])
    measured = ", ".join(f"{part.get('name')} {part.get('value')}" for part in case.iter("property"))
    return Tried(name, seconds, "passed", measured)


def artifacts(folder: Path) -> list[str]:
    """Return a line for each built file, with its size and hash."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [f"  {size(path.stat().st_size):>9}  {path.name}  SHA-256 {file_hash(path)}" for path in files]


def summary(builds: list[str], tests: list[Tried], files: list[str]) -> list[str]:
    """Return the lines of the summary."""
    counts = {end: sum(test.end == end for test in tests) for end in ("passed", "failed", "skipped")}
    counted = ", ".join(f"{count} {end}" for end, count in counts.items())
    return ["== what was built", *builds, *files, f"== what was tried: {counted}", *(test.line() for test in tests)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
