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

from scripts.progress import run
from scripts.setup_errors import Trouble, check_compiler, check_disk, check_python, explained

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
LOCKS = PROJECT / "requirements"
STAMPS = VENV / "poolhouse-setup.json"
LOG = VENV / "poolhouse-setup.log"

# The pip that comes with Python suffices. The network may fail: few retries, and no questions.
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2"]
LOCKED = ["install", "--no-deps", "--require-hashes"]

# Each kind of processor or device gets a shared library of its own, and a worker loads those that it needs. They belong
# next to libllama: without these folders, CMake installs them where nothing looks for them.
CMAKE_ARGS = (
    "-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DCMAKE_INSTALL_BINDIR=llama_cpp/lib "
    "-DCMAKE_INSTALL_LIBDIR=llama_cpp/lib -DCMAKE_INSTALL_INCLUDEDIR=llama_cpp/include"
)

# Prints the names of the engine's back ends, once the engine has loaded.
ASK_ENGINE = (
    "from backends.llamacpp import backend_libraries, binding\n"
    "folder = binding.libraries_folder(binding.load())\n"
    "print('loaded', *backend_libraries.libraries(folder))"
)


def main() -> int:
    """Run the setup, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m scripts.setup", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also the tools that `make test` needs")
    parser.add_argument("--release", action="store_true", help="engine without RPC, as it ships")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways to stop end the compiler
    try:
        set_up(chosen.dev, Build(rpc=not chosen.release))
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

    @property
    def cmake_args(self) -> str:
        return f"{CMAKE_ARGS} -DGGML_RPC={'ON' if self.rpc else 'OFF'}"


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
    due = due_of(stamps)
    for number, step in enumerate(due, start=1):
        say(f"[{number}/{len(due)}] {TITLES[step]}")
        write_stamps({**read_stamps(), step: "begun"})
        STEPS[step](build)
        write_stamps({**read_stamps(), step: stamps[step]})
    say("Ready.")
    command = [venv_python(), "-m", "scripts.engine_pack.offer"]  # imports packages that are installed only now
    subprocess.run(command, cwd=PROJECT, check=False, stderr=subprocess.DEVNULL, env=clean_environment())


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
    # pip keeps what it has compiled, but does not distinguish the options it was compiled with
    options = stamp(build.cmake_args)
    command = [*LOCKED, "--no-build-isolation", "--verbose", "--force-reinstall", "-r", str(LOCKS / "engine.txt")]
    pip(command, "engine", {"CMAKE_ARGS": build.cmake_args}, cache=f"poolhouse-{options}")
    if wrong := built_wrongly(engine_says(), build):
        raise Trouble(f"The engine was {wrong}, which was not requested. See {LOG}.")


def built_wrongly(report: str, build: Build) -> str:
    """Describe how the engine differs from the requested build, or return "".

    report: the word `loaded`, and the names of the engine's back ends.
    """
    is_loaded, *names = report.split() or [""]
    if is_loaded != "loaded":
        return "built so that it does not load"
    if not any(name.startswith("cpu-") for name in names):
        return "built for one kind of processor"
    if ("rpc" in names) != build.rpc:
        return f"built {'with' if 'rpc' in names else 'without'} RPC"
    return ""


def engine_says() -> str:
    """Return the report of the installed engine on its back ends, or "" if it cannot be loaded."""
    command = [venv_python(), "-c", ASK_ENGINE]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, env=clean_environment(), cwd=PROJECT
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


def pip(arguments: list[str], label: str, more: dict[str, str] | None = None, *, cache: str = "") -> None:
    """Run pip in the environment. Raises Trouble, with the cause if its output names one.

    cache: a subfolder of pip's cache to use in place of the whole.
    """
    if cache and (folder := cache_folder()):
        arguments = [*arguments, "--cache-dir", str(folder / cache)]
    with LOG.open("a", encoding="utf-8") as log:
        command = [venv_python(), *PIP, *arguments]
        code, output = run(command, {**clean_environment(), **(more or {})}, label, log)
    if code != 0:
        raise Trouble(
            explained(output) or f"Installing the {label} failed: {last_line(output)} All of its output is in {LOG}."
        )


def cache_folder() -> Path | None:
    """Return the folder of pip's cache, or None if it keeps none."""
    command = [venv_python(), *PIP, "cache", "dir"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    return Path(finished.stdout.strip()) if finished.returncode == 0 else None


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
    "engine": "Compiling the engine, llama.cpp (10 minutes on two idle cores; seconds if it was compiled before)",
    "project": "Installing Poolhouse itself",
    "tools": "Installing the tools for tests",
}
STEPS = {"packages": install_packages, "engine": install_engine, "project": install_project, "tools": install_tools}

if __name__ == "__main__":
    sys.exit(main())
