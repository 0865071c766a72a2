"""Pictures of every page in both palettes, over a real household: `make screenshots` fills build/screenshots.

Three nodes on this computer share the built-in model; a window without a screen looks at them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.asking import together
from app.cli.demo_command import even_split
from app.cli.demo_nodes import DemoNodes
from app.client import NodeClient
from app.machine.paths import Home

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.gui.household.pool_page import PoolPage
    from app.gui.services import Services
    from app.gui.window import Window

Json = dict[str, Any]
PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "build" / "screenshots"
MACHINES = 3
FONT = "DejaVu Sans"
WIDTH, HEIGHT = 1200, 760
SETTLE_MS = 1500  # for what a page asks of the node when it is first shown
PAINT_MS = 250
ANSWER_MS = 4000
BENCH_S = 6.0
JOINED_TRIES, JOINED_S = 200, 0.1
CHAT = ("How do I add a machine?", "What does a lender do?")
QUESTIONS = (
    "What is a household?",
    "How do I add a machine?",
    "What does a lender do?",
    "Why is Wi-Fi slower than a cable?",
    "What happens when a machine leaves?",
    "Who can read my chats?",
)


async def household(folder: Path, scale: float, language: str) -> int:
    """Start the nodes, give them something to show, and take the pictures."""
    async with DemoNodes(MACHINES) as nodes, AsyncExitStack() as stack:
        homes = [Home.at(node.home) for node in nodes.all]
        host, *lenders = [await stack.enter_async_context(NodeClient(home)) for home in homes]
        for lender in lenders:
            window = await host.post("/pairing", {"role": "use_and_lend"})
            typed = {"address": window["address"], "code": window["code"]}
            await together([host.work("GET", "/pairing/wait"), lender.post("/pairing/join", typed)])
        await _all_there(host)
        for one in (host, *lenders):
            await one.post("/measure", {})
        await _busy_life(host)
        shooter = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "scripts.screenshots", "--of", str(homes[0].root),
            "--scale", str(scale), "--language", language, "--to", str(folder), cwd=PROJECT,
            env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip
        return await shooter.wait()


async def _all_there(host: NodeClient) -> None:
    for _ in range(JOINED_TRIES):
        known = (await host.get("/status"))["machines"].values()
        if sum(one["online"] for one in known) >= MACHINES:
            return
        await asyncio.sleep(JOINED_S)
    raise SystemExit("the machines did not find each other")


async def _busy_life(host: NodeClient) -> None:
    """The Guide over all machines, some answers."""
    model = next(one for one in (await host.get("/models"))["models"] if one["builtin"])
    await host.work("POST", "/plan", {"model": model["name"]}, lambda _: None)
    body = {"model": model["name"], "split": even_split(model["n_layers"], MACHINES)}
    await host.work("POST", "/load", body, lambda _: None)
    for question in QUESTIONS:
        asked = {"prompt": question, "max_tokens": 48, "sampling": {"seed": 1}}
        async for _ in host.stream("POST", "/ask", asked):
            pass


def shoot(home: Path, folder: Path, scale: float, language: str) -> int:
    """Every page, and every tab of it, light and dark."""
    from PySide6.QtGui import QFont
    from PySide6.QtWidgets import QApplication

    from app.gui import pages
    from app.gui.language import translate
    from app.gui.theme import Scheme

    folder.mkdir(parents=True, exist_ok=True)
    app = QApplication([])
    app.setFont(QFont(FONT))
    translate(app, language)
    window, services = _window(app, home, scale)
    window.resize(WIDTH, HEIGHT)
    window.show()
    theme = services.theme
    _wait(SETTLE_MS)
    _live(window)
    for entry in pages.ENTRIES:
        window.go(entry.name)
        theme.choose(Scheme.LIGHT, scale)
        _wait(SETTLE_MS)
        for part in _parts(window.page(entry.name)):
            for scheme in (Scheme.LIGHT, Scheme.DARK):
                theme.choose(scheme, scale)
                _wait(PAINT_MS)
                file = folder / f"{entry.name}{part}-{scheme}.png"
                window.grab().save(str(file))
                print(file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file)
    _first_steps(window, services, folder, scale)
    services.pool.stop()
    return 0


def _first_steps(window: Window, services: Services, folder: Path, scale: float) -> None:
    """Each of them, as on the first start."""
    from app.gui.first_run.welcome import Welcome
    from app.gui.theme import Scheme

    steps = Welcome(services, window)
    steps.begin()
    number, last = 1, False
    while not last:
        last = steps.is_last
        for scheme in (Scheme.LIGHT, Scheme.DARK):
            services.theme.choose(scheme, scale)
            _wait(PAINT_MS)
            window.grab().save(str(folder / f"first-{number}-{scheme}.png"))
        if not last:
            steps.skip()
            _wait(PAINT_MS)
            number += 1


def _window(app: Any, home: Path, scale: float) -> tuple[Window, Services]:
    from app.cli.window_node import NodeLauncher
    from app.gui.chat.chat_lock import ChatLock
    from app.gui.motion import ALWAYS, Motion
    from app.gui.node_client import NodeClient as WindowClient
    from app.gui.pool import Pool
    from app.gui.preferences import Preferences
    from app.gui.services import Services
    from app.gui.theme import Scheme, Theme
    from app.gui.window import Window

    launcher, own = NodeLauncher(Home.at(home)), home / "window"
    own.mkdir(exist_ok=True)
    client = WindowClient(app)
    pool = Pool(launcher, client, app)
    preferences = Preferences(own, app)
    theme = Theme(app, Scheme.LIGHT, scale)
    lock = ChatLock(client, pool, preferences, own, app)
    motion = Motion(app, preferences)
    motion.choose(ALWAYS)  # of a picture nobody can say at which moment it was taken
    services = Services(pool, client, theme, preferences, launcher, own, _nowhere, lock, motion)
    pool.start()
    return Window(services, lambda: False, app.quit), services


def _live(window: Window) -> None:
    """A chat and a short benchmark, by the pages' own buttons."""
    from app.gui import pages
    from app.gui.activity.activity_page import ActivityPage
    from app.gui.activity.bench_run import FULL
    from app.gui.chat.chat_page import ChatPage

    chat, activity = window.page(pages.CHAT), window.page(pages.ACTIVITY)
    assert isinstance(chat, ChatPage)
    assert isinstance(activity, ActivityPage)
    short = replace(FULL, prompt=96, output=32, streams=(1, 4), seconds=BENCH_S)
    activity.bench.begin(short, anyway=True)
    while activity.bench.is_busy:
        _wait(PAINT_MS)
    for question in CHAT:
        chat.composer.field.setPlainText(question)
        chat.composer.send.click()
        _wait(ANSWER_MS)


def _nowhere(_: str) -> None:
    """Nobody presses anything here."""


def _parts(page: QWidget) -> Iterator[str]:
    """The page as it is; with tabs, each of them in turn: what its file is called."""
    from PySide6.QtWidgets import QListWidget, QTabBar

    from app.gui.household.pool_page import PoolPage
    from app.gui.household.view_choice import MAP, TABLE
    from app.gui.settings.settings_page import SettingsPage

    if isinstance(page, PoolPage):
        yield from _views(page, MAP, TABLE)
        return
    bars = [bar for bar in page.findChildren(QTabBar) if bar.isVisible() and bar.count() > 1]
    lists = [one for one in page.findChildren(QListWidget) if one.isVisible() and one.count() > 1]
    for at in range(lists[0].count() if lists and isinstance(page, SettingsPage) else 0):
        lists[0].setCurrentRow(at)
        _wait(PAINT_MS)
        yield f"-{at}"
    if not bars:
        if not isinstance(page, SettingsPage):
            yield ""
        return
    for at in range(bars[0].count()):
        bars[0].setCurrentIndex(at)
        _wait(PAINT_MS)
        yield f"-{bars[0].tabText(at).lower().replace(' ', '-')}"


def _views(page: PoolPage, usual: str, other: str) -> Iterator[str]:
    """The map, with a machine's details too, and the table."""
    yield ""
    page.choose(page.machines[-1].id)
    _wait(PAINT_MS)
    yield "-details"
    page.choose("")
    page.views.buttons[other].click()
    _wait(PAINT_MS)
    yield "-table"
    page.views.buttons[usual].click()
    _wait(PAINT_MS)


def _wait(ms: int) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()


def main() -> int:
    """Both halves: the household, and in a process of its own the window."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--to", type=Path, default=FOLDER, help="the folder for the pictures")
    words.add_argument("--scale", type=float, default=1.0, help="text size, 1.0 to 2.0")
    words.add_argument("--language", default="en", help="en or de")
    words.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    told = words.parse_args()
    if told.of is not None:
        return shoot(told.of, told.to, told.scale, told.language)
    return asyncio.run(household(told.to, told.scale, told.language))


if __name__ == "__main__":
    sys.exit(main())
