"""`python3 -m scripts.setup` creates .venv from the lock files and compiles the engine.

It only needs Python itself. Finished steps are not repeated, so a second run takes no time and an interrupted one
is resumed.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "Poolhouse needs Python 3.11 or newer; this is {}.{}. Install a newer one and start again, "
        "for example `make run PYTHON=python3.12`.".format(*sys.version_info[:2])
    )

import argparse
import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from scripts import cpu_features
from scripts.progress import run
from scripts.setup_errors import Trouble, check_compiler, check_disk, check_python, explained

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
LOCKS = PROJECT / "requirements"
STAMPS = VENV / "poolhouse-setup.json"
LOG = VENV / "poolhouse-setup.log"
FAST = "fast"  # the stamp that requests an engine compiled for this very processor

# The pip that comes with Python suffices. The network may fail: few retries, and no questions.
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2"]
LOCKED = ["install", "--no-deps", "--require-hashes"]

# llama_cpp imports diskcache, which is deliberately not installed: an empty module replaces it.
ASK_ENGINE = (
    "import sys, types; sys.modules['diskcache'] = types.ModuleType('diskcache')\n"
    "import llama_cpp\n"
    "print(int(llama_cpp.llama_supports_rpc()), llama_cpp.llama_print_system_info().decode())"
)


def main() -> int:
    """Run the setup, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m scripts.setup", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also the tools that `make test` needs")
    parser.add_argument("--release", action="store_true", help="engine without RPC, as it ships")
    fast = "the engine for this very processor, now and from now on"
    parser.add_argument("--fast", action="store_const", const=True, help=fast)
    portable = "the engine as it runs on every computer again"
    parser.add_argument("--portable", action="store_const", const=False, dest="fast", help=portable)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways to stop end the compiler
    try:
        set_up(chosen.dev, build_of(not chosen.release, chosen.fast))
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on with this step; a half compiled engine begins anew.", file=sys.stderr)
        return 130
    return 0


class Build(NamedTuple):
    """The build options of the engine."""

    rpc: bool  # only for the benchmark's baseline; never shipped
    cpu_flags: str  # build flags

    @property
    def cmake_args(self) -> str:
        return f"{self.cpu_flags} -DGGML_RPC={'ON' if self.rpc else 'OFF'}"

    @property
    def is_fast(self) -> bool:
        """Return whether the build is optimized for this processor."""
        return self.cpu_flags != cpu_features.PORTABLE


def build_of(rpc: bool, fast: bool | None) -> Build:
    """Return the build options. If `fast` is None, the choice made in the last run applies. Raises Trouble."""
    known = cpu_features.features() if fast or (fast is None and read_stamps().get(FAST)) else frozenset()
    build = Build(rpc, cpu_features.flags(known))
    if fast and not build.is_fast:
        raise Trouble(
            "The engine already uses everything that this processor offers: `make fast` helps only with AVX-512 or "
            "AVX-VNNI, on Linux. It was left as it is."
        )
    return build


def set_up(dev: bool, build: Build) -> None:
    """Bring .venv up to date with the lock files and build options. Raises Trouble."""
    stamps = wanted_stamps(dev, build, place())
    if not due_of(stamps):
        return
    say(f"Setting up Poolhouse in {VENV.name} (details: {VENV.name}/{LOG.name}).")
    check_python()
    if "engine" in due_of(stamps):
        check_disk(PROJECT)
        check_compiler()
    make_venv()
    write_stamps({**read_stamps(), FAST: "yes" if build.is_fast else ""})
    due = due_of(stamps)
    for number, step in enumerate(due, start=1):
        say(f"[{number}/{len(due)}] {TITLES[step]}")
        write_stamps({**read_stamps(), step: "begun"})
        STEPS[step](build)
        write_stamps({**read_stamps(), step: stamps[step]})
    say("Ready.")


def due_of(stamps: dict[str, str]) -> list[str]:
    """Return the steps that still have to run, in order."""
    done = read_stamps()
    return [step for step, stamp_ in stamps.items() if done.get(step) != stamp_]


def wanted_stamps(dev: bool, build: Build, python: str) -> dict[str, str]:
    """Return a hash of all inputs for each step. A step whose stamp has not changed is skipped."""
    stamps = {
        "packages": stamp(python, lock("run"), lock("build")),
        "engine": stamp(python, lock("engine"), lock("build"), build.cmake_args),
        "project": stamp(python, (PROJECT / "pyproject.toml").read_text(encoding="utf-8")),
    }
    return {**stamps, "tools": stamp(python, lock("dev"))} if dev else stamps


def stamp(*parts: str) -> str:
    """Return a short hash of these parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def lock(name: str) -> str:
    """Return the text of a lock file."""
    return (LOCKS / f"{name}.txt").read_text(encoding="utf-8")


def place() -> str:
    """Return the Python used for .venv and the location of .venv. If either changes, all steps must run again."""
    return f"{sys.version} {sys.platform} {VENV}"


def read_stamps() -> dict[str, str]:
    """Return the stamps of the steps finished by earlier runs, or {} if they cannot be read."""
    try:
        known = json.loads(STAMPS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_stamps(stamps: dict[str, str]) -> None:
    """Replace the stamps atomically, so that an interruption preserves the old ones."""
    part = STAMPS.with_suffix(".part")
    part.write_text(json.dumps(stamps, indent=1), encoding="utf-8")
    part.replace(STAMPS)


def make_venv() -> None:
    """Create .venv, unless there is a working one with the same Python."""
    here = stamp(place())
    same_python = f"import sys, pip; sys.exit(sys.version_info[:3] != {sys.version_info[:3]})"
    if read_stamps().get("place", here) == here and answers(same_python):
        return
    say("Creating the Python environment.")
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    if made.returncode != 0:
        cause = explained(made.stdout + made.stderr) or last_line(made.stdout + made.stderr)
        raise Trouble(f"The Python environment could not be created in {VENV}: {cause}")
    write_stamps({"place": here})


def install_packages(_build: Build) -> None:
    """Install the dependencies of the app, and the packages that compile the engine (such as cmake and ninja)."""
    pip([*LOCKED, "-r", str(LOCKS / "run.txt"), "-r", str(LOCKS / "build.txt")], "packages")


def install_tools(_build: Build) -> None:
    """Install the additional tools for `make test`."""
    pip([*LOCKED, "-r", str(LOCKS / "dev.txt")], "tools")


def install_project(_build: Build) -> None:
    """Install Poolhouse itself in editable mode."""
    pip(["install", "--no-deps", "--no-build-isolation", "--editable", str(PROJECT)], "poolhouse")


def install_engine(build: Build) -> None:
    """Install llama.cpp from its hashed source. Raises Trouble if the result is not as requested."""
    command = [*LOCKED, "--no-build-isolation", "--verbose", "-r", str(LOCKS / "engine.txt")]
    flags = {"CMAKE_ARGS": build.cmake_args}
    fresh = ["--no-cache-dir", "--force-reinstall"]
    pip(command, "engine", flags)
    wrong = built_wrongly(engine_says(), build)
    if wrong:
        say(f"      The earlier build was {wrong}, so the engine is compiled again.")
        pip([*command, *fresh], "engine", flags)
        wrong = built_wrongly(engine_says(), build)
    if wrong:
        raise Trouble(f"The engine was {wrong}, which was not requested. See {LOG}.")


def built_wrongly(report: str, build: Build) -> str:
    """Describe how the engine differs from the requested build, or return "".

    report: the engine's own features (`1 CPU : SSE3 = 1 | …`).
    """
    has_rpc, _, features = report.partition(" ")
    if has_rpc not in ("0", "1"):
        return "built so that it does not load"
    if cpu_features.signs_in(features) != cpu_features.signs_of(build.cpu_flags):
        return "built for another processor"
    if (has_rpc == "1") != build.rpc:
        return f"built {'with' if has_rpc == '1' else 'without'} RPC"
    return ""


def engine_says() -> str:
    """Return the report of the installed engine about its features, or "" if it cannot be loaded."""
    finished = subprocess.run(
        [venv_python(), "-c", ASK_ENGINE], capture_output=True, text=True, check=False, env=clean_environment()
    )
    with LOG.open("a", encoding="utf-8") as log:
        log.write(finished.stdout + finished.stderr)
    return finished.stdout.strip() if finished.returncode == 0 else ""


def answers(code: str) -> bool:
    """Return whether the environment's Python runs this code without an error."""
    try:
        command = [venv_python(), "-c", code]
        return subprocess.run(command, capture_output=True, check=False, env=clean_environment()).returncode == 0
    except OSError:
        return False


def pip(arguments: list[str], label: str, more: dict[str, str] | None = None) -> None:
    """Run pip in the environment. Raises Trouble, with the cause if its output names one."""
    with LOG.open("a", encoding="utf-8") as log:
        command = [venv_python(), *PIP, *arguments]
        code, output = run(command, {**clean_environment(), **(more or {})}, label, log)
    if code != 0:
        raise Trouble(
            explained(output) or f"Installing the {label} failed: {last_line(output)} All of its output is in {LOG}."
        )


def last_line(output: str) -> str:
    """Return the last line that is not empty, ending in a period."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = lines[-1] if lines else "no reason was given"
    return reason if reason.endswith(".") else reason + "."


def venv_python() -> str:
    """Return the path of the environment's Python."""
    return str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def clean_environment() -> dict[str, str]:
    """Return our environment variables, except those that would mislead pip. An empty HOME is treated as unset."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    if not kept.get("HOME"):
        kept.pop("HOME", None)
    return {**kept, "PYTHONUNBUFFERED": "1"}


def say(text: str) -> None:
    """Print a line immediately."""
    print(text, flush=True)


TITLES = {
    "packages": "Installing the packages that Poolhouse needs",
    "engine": "Compiling the engine, llama.cpp (4 minutes on two idle cores; seconds if it was compiled before)",
    "project": "Installing Poolhouse itself",
    "tools": "Installing the tools for tests",
}
STEPS = {"packages": install_packages, "engine": install_engine, "project": install_project, "tools": install_tools}

if __name__ == "__main__":
    sys.exit(main())
