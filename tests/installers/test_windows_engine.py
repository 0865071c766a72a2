"""The engine for Windows under Wine answers with the same tokens as the engine for Linux."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from installers.payload.models_layer import GUIDE
from installers.payload.places import WORK
from installers.windows import cross, engine
from scripts.engine_source import fetch
from tests.installers.wine import Windows, windows

LACKING = [name for name in ("wine", "gcc", cross.C) if not shutil.which(name)]
pytestmark = [
    pytest.mark.installers,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux" or bool(LACKING), reason=f"needs {', '.join(LACKING) or 'Linux'}"),
]
SOURCE = Path(__file__).with_name("engine_probe.c")
PROMPTS = ("How do I pair another computer?", "Was ist eine Schicht? Größe: 5 €")
NOT_HERE = "does not run here"
COUNT = "24"


@pytest.fixture(scope="module")
def built() -> Path:
    """The folder of the engine's libraries for Windows."""
    folder = WORK / "engine-windows" / engine.key() / "done"
    if not folder.exists():
        pytest.skip("needs the engine for Windows: `python -m installers windows --stand-in`")
    return folder / "llama_cpp" / "lib"


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program that loads the engine and answers, for both systems."""
    source = fetch(WORK / "engine-headers", ("include", "ggml/include"))
    folder = tmp_path_factory.mktemp("probe")
    words = ["-O1", "-Wall", "-Werror", f"-I{source / 'include'}", f"-I{source / 'ggml/include'}"]
    made = {"linux": folder / "probe", "windows": folder / "probe.exe"}
    subprocess.run(["gcc", *words, "-o", str(made["linux"]), str(SOURCE), "-ldl"], check=True)
    static = ["-municode", "-static", "-o", str(made["windows"])]
    subprocess.run([cross.C, *words, *static, str(SOURCE)], check=True)
    return made


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    with windows(tmp_path_factory.mktemp("wine") / "prefix") as made:
        yield made


@pytest.fixture(scope="module")
def place(computer: Windows, built: Path) -> Path:
    """A folder with the engine and the Guide, whose name is not ASCII, as below a user's."""
    folder = computer.local / "Grüße" / "lib"
    shutil.copytree(built, folder)
    shutil.copyfile(GUIDE, folder.parent / "größe.gguf")
    return folder


def linux_libraries() -> Path:
    from importlib.util import find_spec

    spec = find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "lib"


def on_linux(probes: dict[str, Path], variant: str, prompt: str) -> str:
    words = [probes["linux"], linux_libraries(), variant, GUIDE, prompt, COUNT]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=True, env={"LD_LIBRARY_PATH": str(words[1])}
    )
    return done.stdout.strip()


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("variant", engine.VARIANTS)
def test_each_variant_answers_as_on_linux(
    computer: Windows, place: Path, probes: dict[str, Path], variant: str, prompt: str
) -> None:
    expected = on_linux(probes, variant, prompt)
    done = computer.run(probes["windows"], place, variant, place.parent / "größe.gguf", prompt, COUNT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected
    if expected == NOT_HERE:
        pytest.skip(f"this processor cannot run {variant}; both systems say so")
    assert len(expected.split()) == int(COUNT)


def test_every_library_needs_only_what_windows_or_its_own_folder_has(built: Path) -> None:
    ours = {path.name for path in built.iterdir()}
    assert ours == set(engine.LIBRARIES)
    for path in built.iterdir():
        assert cross.needed(path) <= cross.SYSTEM | ours
