"""Common fixtures of all tests: the user's own files stay untouched, no child is left behind, and seeds are fixed."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import hypothesis
import psutil
import pytest

from backends.contract import CPU_VARIANT, EXACT
from tests.few_of_many import leave_most
from tests.hangs import Hang

CHILDREN_END_WITHIN_SECONDS = 20.0
HANGS_AFTER_SECONDS = 60.0  # more than a test may take
STDERR = pytest.StashKey[int]()
USUAL_SECONDS = 5  # of a test in a file that starts processes
STARTERS = ("tests.node.", "tests.inference.pool", "tests.families", "tests.gui.desk", "Worker", "sys.executable")
FEW = {"alone": ("alone",), "long": ("long", "many")}  # the first word for `-m`: marks of what it asks for

# The tests start hundreds of processes. Where Python is told to keep nothing compiled, as in many containers, each of
# them would compile all that it imports of Poolhouse anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Nor does any of them speak to a public server: for each that imports aiohttp, the system's 140 authorities would be
# read, twice. This one's key is thrown away.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("nobody.pem"))
os.environ["SSL_CERT_DIR"] = os.devnull

# Every computer computes the same numbers in the tests. `POOLHOUSE_CPU_VARIANT=` runs them with its best code instead.
os.environ.setdefault(CPU_VARIANT, EXACT)

# No deadline: a shared machine may stall for a second. Derandomized: a failure is there tomorrow.
EXAMPLES = int(os.environ.get("POOLHOUSE_EXAMPLES", "50"))  # of each property; `make props` asks for more
hypothesis.settings.register_profile("poolhouse", deadline=None, derandomize=True, max_examples=EXAMPLES)
hypothesis.settings.load_profile("poolhouse")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--headed", action="store_true", help="show the windows of tests on a screen")


def pytest_configure(config: pytest.Config) -> None:
    """Windows are drawn into memory, unless somebody wants to see them."""
    config.stash[STDERR] = os.dup(2)  # while a test runs, 2 is captured
    if not config.getoption("--headed"):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    config, longer = item.config, item.get_closest_marker("timeout")
    usual = config.getoption("timeout") or config.getini("timeout")
    seconds = (longer.args[0] if longer else float(usual)) + HANGS_AFTER_SECONDS
    hang = Hang(item.nodeid, seconds, config.stash[STDERR])
    with nullcontext() if config.getoption("usepdb") else hang:
        return (yield)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from tests.files_by_process import FilesByProcess

    return FilesByProcess(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def no_child_is_left() -> Iterator[None]:
    """No worker outlives its node: what still runs after the last test is a failure."""
    yield
    if "backends.grammar" in sys.modules:  # what this process itself had followed
        sys.modules["backends.grammar"].forget_all()
        sys.modules["backends.worker.fork_server"].end()
    left = psutil.Process().children(recursive=True)
    _, alive = psutil.wait_procs(left, timeout=CHILDREN_END_WITHIN_SECONDS)
    messages = [" ".join(child.cmdline()) for child in alive if child.is_running()]
    for child in alive:
        child.kill()
    assert not messages, f"left running by the tests: {messages}"


@pytest.fixture(scope="session")
def qapp_cls() -> type:
    """Return the application class for pytest-qt: that of a real window."""
    from app.gui.app.application import PoolhouseApplication

    return PoolhouseApplication


@pytest.fixture(autouse=True)
def nothing_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Homes, caches and keys of the tests are their own."""
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder that holds pyproject.toml."""
    return Path(__file__).resolve().parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """More than a million objects come to stay: nobody looks for garbage among them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, so that no process waits for another in the end: a test that starts nodes or
    workers counts as much as many that only compute. Tests marked `root` run only where network namespaces can be made.
    """
    leave_most(items)
    seconds: Counter[Path] = Counter()
    usual = {path: _usual_seconds(path) for path in {item.path for item in items}}
    for item in items:
        longer = item.get_closest_marker("timeout")
        seconds[item.path] += longer.args[0] if longer else usual[item.path]
    items.sort(key=lambda item: -seconds[item.path])
    marked = [item for item in items if item.get_closest_marker("root")]
    if marked and not _can_make_namespaces():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs root and network namespaces (Linux)"))


def _usual_seconds(file: Path) -> int:
    """Roughly, of one of its tests, by what the file says it uses."""
    text = file.read_text("utf-8")
    return USUAL_SECONDS if any(sign in text for sign in STARTERS) else 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of all other files if only a few are requested."""
    question = str(config.getoption("markexpr")).partition(" ")[0]
    if question not in FEW or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    return None if any(f"mark.{name}" in text for name in FEW[question]) else True


def _can_make_namespaces() -> bool:
    if sys.platform != "linux" or not (shutil.which("unshare") and shutil.which("ip")):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
