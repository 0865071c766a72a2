"""The real program on a screen of its own, used from outside as a person with a screen reader would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.desktop import SYSTEM_PYTHON, can_be_used, desktop, end

DRIVER = Path(__file__).with_name("atspi_driver.py")
TRAY_PLACE = (1268, 844)  # of the first icon on that screen, about
TRAY_TRIES = 3


class Outside:
    """The program's screen: `press`, `write` and `read` by accessible name, real keys by `key`."""

    def __init__(self, environment: dict[str, str], driver: subprocess.Popen[str], before: Sequence[str] = ()) -> None:
        self._environment, self._driver = environment, driver
        self._before = before  # two screens in networks of their own may have the same number

    def press(self, name: str, **more: Any) -> None:
        self._ask(do="press", name=name, **more)

    def write(self, name: str, text: str, **more: Any) -> None:
        self._ask(do="write", name=name, text=text, **more)

    def choose(self, name: str, value: float, **more: Any) -> None:
        """Set a spin box to this."""
        self._ask(do="set", name=name, value=value, **more)

    def focus(self, name: str, **more: Any) -> None:
        self._ask(do="focus", name=name, **more)

    def focus_is_on(self, name: str, **more: Any) -> None:
        """Wait until the program has given it the keyboard focus by itself."""
        self._ask(do="focused", name=name, **more)

    def read(self, text: str, within: float = 10) -> str:
        """Wait until it is on the screen."""
        return str(self._ask(do="read", text=text, within=within))

    def inside(self, names: Sequence[str], within: float = 10) -> str:
        """All names and texts in the last thing whose name begins as one of these."""
        return str(self._ask(do="inside", names=names, within=within))

    def tree(self) -> list[str]:
        return list(self._ask(do="tree"))

    def front(self) -> None:
        """Click on the window, as it were: a dialog that closed may have left the keys to nobody."""
        words = ["search", "--onlyvisible", "--name", "Poolhouse", "windowactivate", "--sync"]
        subprocess.run(["xdotool", *words], check=True, timeout=20, env=self._environment)

    def key(self, *keys: str) -> None:
        subprocess.run([*self._before, "xdotool", "key", *keys], check=True, env=self._environment)

    def type(self, text: str) -> None:
        """Letter by letter, wherever the keys go."""
        subprocess.run([*self._before, "xdotool", "type", text], check=True, env=self._environment)

    def tray(self, *names: str) -> None:
        """Open the menu of the icon in the tray, and choose this there.

        A notice that is still up takes the click for itself, and a menu that is open closes by it: then once more.
        """
        for _ in range(TRAY_TRIES):
            self._click(TRAY_PLACE, 3)
            first = {"do": "where", "name": names[0], "role": "menu item", "within": 4} if names else {}
            if not names or "error" not in self._sent(first):
                break
        for name in names:
            self._click(self._ask(do="where", name=name, role="menu item"), 1)

    def _click(self, place: Sequence[int], button: int) -> None:
        x, y = map(str, place)
        words = [*self._before, "xdotool", "mousemove", x, y, "click", str(button)]
        subprocess.run(words, check=True, env=self._environment)

    def picture(self, path: Path) -> None:
        """The whole screen, for a person to look at."""
        words = [*self._before, "import", "-window", "root", str(path)]
        subprocess.run(words, check=False, env=self._environment)

    def _ask(self, **order: Any) -> Any:
        answer = self._sent(order)
        if "error" in answer:
            there = "\n".join(self._sent({"do": "tree"}).get("done", []))
            raise AssertionError(f"{answer['error']}; what is there:\n{there}")
        return answer["done"]

    def _sent(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(json.dumps(order) + "\n")
        self._driver.stdin.flush()
        return dict(json.loads(self._driver.stdout.readline()))


@contextmanager
def opened(
    home: Path, folder: Path, before: Sequence[str] = (), program: Sequence[str] = ()
) -> Iterator[tuple[Outside, subprocess.Popen[bytes]]]:
    """`poolhouse --home home` on a screen of its own until the end of the block.

    before: words in front of every command, as of `ip netns exec`: the screen stands there too.
    program: an installed program that is started instead of this checkout's.
    """
    if reason := can_be_used():
        pytest.skip(reason)
    with ExitStack() as stack:
        environment = desktop(stack, folder, before)
        with (folder / "window.txt").open("wb") as log:
            words = program or [*before, sys.executable, "-m", "app", "--home", str(home)]
            started = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
        stack.callback(end, started)
        driver = subprocess.Popen(
            [*before, SYSTEM_PYTHON, str(DRIVER), "Poolhouse"], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(end, driver)
        yield Outside(environment, driver, before), started
