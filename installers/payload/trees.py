"""Folders with the same content and the same bytes: copying, compiling, dates, modes and hashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from app.machine.versions.tree_hash import files_in
from scripts.setup_errors import Trouble

# `unchecked-hash` files contain no dates. One process compiles all files in sorted order, so that each gets the same
# bytes in every build.
COMPILE = """
import py_compile, sys
for name in sys.stdin.read().split("\\0"):
    source, shown = name.split("\\t")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(source, dfile=shown, doraise=True, invalidation_mode=mode)
"""
FILE_MODE, PROGRAM_MODE, FOLDER_MODE = 0o644, 0o755, 0o755


def compile_all(python: Path, folder: Path, shown: str) -> None:
    """Compile all Python files below a folder.

    python: the interpreter of the payload. shown: the folder that tracebacks name. Raises Trouble.
    """
    sources = [path for path in files_in(folder) if path.suffix == ".py"]
    lines = [f"{path}\t{shown}/{path.relative_to(folder).as_posix()}" for path in sources]
    environment = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    command = [str(python), "-c", COMPILE]
    done = subprocess.run(command, input="\0".join(lines), capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise Trouble(f"The Python files of {shown} could not be compiled: {done.stderr.strip()[-500:]}")


def normalize(folder: Path, seconds: int, *, has_programs: bool = True) -> None:
    """Give everything below a folder the same date and the usual modes, and leave no empty folders.

    has_programs: whether files keep the mode of a program. Windows has none, so its installed files would have others.
    """
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
                continue
            path.chmod(FOLDER_MODE)
        elif not path.is_symlink():
            path.chmod(PROGRAM_MODE if has_programs and _is_program(path) else FILE_MODE)
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    folder.chmod(FOLDER_MODE)
    os.utime(folder, (seconds, seconds))


def _is_program(path: Path) -> bool:
    """Return whether a file can be run. Some wheels mark libraries and modules so, which are only loaded."""
    return os.access(path, os.X_OK) and path.suffix != ".py" and ".so" not in path.suffixes


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder, as hard links where the disk allows it: nothing that was built is ever changed in place."""
    try:
        shutil.copytree(source, target, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    except OSError:
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def tool(*words: str, label: str, **options: object) -> str:
    """Run a tool and return its output. Raises Trouble with the last line that it said."""
    if shutil.which(words[0]) is None:
        raise Trouble(f"{label} needs the program {words[0]}. docs/installers.md lists the packages that bring it.")
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        raise Trouble(f"{label} failed: {said[-1]}")
    return str(done.stdout)


def build_python() -> str:
    """Return the Python that runs the build, which has the tools of `make setup`."""
    return sys.executable
