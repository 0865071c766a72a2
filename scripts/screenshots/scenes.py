"""The scenes of the screenshots: all pages, ten machines, a longer language, and various problems."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QApplication

from app.cli.window_node import NodeLauncher
from app.core import chat as tree
from app.core.chat import ENDED, FIGURES, MODEL, THOUGHT, THOUGHT_S, Message, Role
from app.core.errors import AppError
from app.gui.activity.activity_page import ActivityPage
from app.gui.activity.bench_run import FULL
from app.gui.api.launch import Endpoint
from app.gui.app import navigation, sidebar
from app.gui.chat.chat_page import ChatPage
from app.gui.settings.settings_page import SettingsPage
from app.gui.welcome.welcome import Welcome
from app.machine.paths import Home
from scripts import translations
from scripts.screenshots.camera import PAINT_MS, SETTLE_MS, Camera, wait
from scripts.screenshots.dialogs import dialogs
from testbed.snapshots import household

ANSWER_MS = 4000
BENCH_S = 6.0
MANY = 10
HMM = """The person wants to know why **two** computers can be slower than one. Let me think.

- each token crosses the network twice
- the layers are computed one after the other, so the computers take turns

So a fast link matters more than a fast processor. `ping` shows the time there and back."""
WHY = (
    "Each token has to travel to the other computer and back, and the two take turns. Over Wi-Fi that can take "
    "longer than computing all layers on one."
)
DID = {
    "tokens": 61, "ttft_s": 12.6, "decode_tok_s": 13.2, "prompt_tokens": 96,
    "predicted": {"decode_tok_s": 12.8, "ttft_s": 11.9},
}  # fmt: skip
QUESTION = "Why are two computers slower than one here?"
CHAT = ("How do I add a machine?", "What does a lender do?")
CHAT_OF_REAL = ("Why is the sky blue? Answer in two sentences.", "Write two sentences about the sea.")
REAL_ANSWER_S = 60.0


def usual(camera: Camera) -> None:
    """Take screenshots of every page with all its tabs, and of the first steps."""
    _benchmark(camera)
    for question in CHAT:
        _ask(camera, question)
    for entry in sidebar.ENTRIES:
        camera.shoot_parts(entry.name, camera.page(entry.name))
    _first_steps(camera)


def real(camera: Camera) -> None:
    """Take README's pictures: the pages of a household that runs a public model."""
    chat = camera.page(navigation.CHAT)
    assert isinstance(chat, ChatPage)
    for question in CHAT_OF_REAL:
        _ask(camera, question)
        ends = time.monotonic() + REAL_ANSWER_S
        while chat.session.running and time.monotonic() < ends:
            wait(PAINT_MS)
    for entry in sidebar.ENTRIES:
        camera.shoot_parts(f"real-{entry.name}", camera.page(entry.name))


def many(camera: Camera) -> None:
    """Show ten simulated machines, because this computer is too small to run that many nodes."""
    pool = camera.services.pool
    page = camera.page(navigation.POOL)
    pool.stop()
    pool.snapshot = household(MANY)
    pool.changed.emit()
    wait(SETTLE_MS)
    camera.shoot_parts("ten", page)


def pseudo(camera: Camera) -> None:
    """Show every page in a pseudo-language whose texts are 40 % longer, in one palette only."""
    for entry in sidebar.ENTRIES:
        camera.page(entry.name)
        camera.shoot(f"pseudo-{entry.name}")


def too_big(camera: Camera) -> None:
    """Show a model that no longer fits: on the Models page, in a chat, and on the Pool page."""
    _ask(camera, CHAT[0])
    for name in (navigation.CHAT, navigation.MODELS, navigation.POOL):
        camera.page(name)
        camera.shoot(f"too-big-{name}")


def failed_load(camera: Camera) -> None:
    """Show a chat without a model after a failed load, before and after a question."""
    chat = camera.page(navigation.CHAT)
    assert isinstance(chat, ChatPage)
    chat.open_chat(chat.history.begin().id)
    wait(SETTLE_MS)
    camera.shoot("failed-load-empty")
    _ask(camera, CHAT[0])
    camera.shoot("failed-load-asked")
    for name in (navigation.MODELS, navigation.POOL):
        camera.page(name)
        camera.shoot(f"failed-load-{name}")


def limited(camera: Camera) -> None:
    """Show a limit on the total size of all models on this computer."""
    for name in (navigation.COMPUTER, navigation.MODELS, navigation.POOL):
        camera.page(name)
        camera.shoot(f"limited-{name}")


def thoughts(camera: Camera) -> None:
    """Show a collapsed and an expanded thought, and answers cut off by limits."""
    page = camera.page(navigation.CHAT)
    assert isinstance(page, ChatPage)
    for name, text, ended in (
        ("whole", WHY, "stop"), ("cut", WHY[:96], "length"), ("full", WHY[:96], tree.FULL),
    ):  # fmt: skip
        chat, now, new = page.history.begin(), page.history.now(), page.history.new_message_id
        question = Message(new(), None, Role.USER, QUESTION, now)
        details = {THOUGHT: HMM, THOUGHT_S: 12.4, ENDED: ended, MODEL: "thinker", FIGURES: DID}
        said = Message(new(), question.id, Role.ASSISTANT, text, now, details)
        page.history.save(tree.add(tree.add(chat, question), said))
        page.open_chat(chat.id)
        wait(SETTLE_MS)
        camera.shoot(f"thoughts-{name}")
        page.conversation.views[-1].thought.toggle()
        wait(SETTLE_MS)
        camera.shoot(f"thoughts-{name}-opened")


def folder_away(camera: Camera) -> None:
    """Show the window while the disk with the models is disconnected."""
    for name in (navigation.MODELS, navigation.COMPUTER, navigation.SETTINGS):
        page = camera.page(name)
        if isinstance(page, SettingsPage):
            page.open("Models")
            wait(PAINT_MS)
        camera.shoot(f"folder-away-{name}")


def no_node(camera: Camera) -> None:
    """Show a newly opened window whose background service cannot be started."""
    for entry in sidebar.ENTRIES:
        camera.page(entry.name)
        camera.shoot(f"no-node-{entry.name}")


def lost_node(camera: Camera) -> None:
    """Show a window with content after its node has exited for good."""
    for entry in sidebar.ENTRIES:
        camera.page(entry.name)
    services = camera.services
    services.client.post("/shutdown", None, lambda _: None)
    while services.pool.is_there:
        wait(PAINT_MS)
    for entry in sidebar.ENTRIES:
        camera.page(entry.name)
        camera.shoot(f"lost-node-{entry.name}")


def talk_and_dialogs(camera: Camera) -> None:
    """Show all dialogs over a chat with an answer."""
    _ask(camera, CHAT[0])
    dialogs(camera)


SCENES: dict[str, Callable[[Camera], None]] = {
    "usual": usual, "real": real, "ten": many, "pseudo": pseudo, "thoughts": thoughts,
    "limited": limited, "failed-load": failed_load, "too-big": too_big, "folder-away": folder_away,
    "no-node": no_node, "lost-node": lost_node, "dialogs": talk_and_dialogs,
}  # fmt: skip


class Unstartable(NodeLauncher):
    """A launcher whose nodes exit as soon as they start. With `hidden`, it does not find a running node either."""

    def __init__(self, home: Home, *, hidden: bool) -> None:
        super().__init__(home)
        self._hidden = hidden

    def find(self) -> Endpoint | None:
        return None if self._hidden else super().find()

    def start(self) -> None:
        raise AppError("node_keeps_ending")


def shoot(scene: str, app: QApplication, home: Path, folder: Path, scale: float) -> None:
    """Take the screenshots of a scene with the node of a home folder."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = None
    if scene in {"no-node", "lost-node"}:
        launcher = Unstartable(Home.at(home), hidden=scene == "no-node")
    if scene == "pseudo":
        _speak_long(app)
    camera = Camera(app, home, folder, scale, launcher)
    SCENES[scene](camera)
    camera.close()


def _speak_long(app: QApplication) -> None:
    translator = QTranslator(app)
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "pseudo.qm"
        translations.pseudo(file)
        translator.load(str(file))
    app.installTranslator(translator)


def _benchmark(camera: Camera) -> None:
    """Run a short benchmark by clicking the button on the page."""
    activity = camera.window.page(navigation.ACTIVITY)
    assert isinstance(activity, ActivityPage)
    short = replace(FULL, prompt=96, output=32, streams=(1, 4), seconds=BENCH_S)
    activity.bench.begin(short, anyway=True)
    while activity.bench.is_busy:
        wait(PAINT_MS)


def _ask(camera: Camera, question: str) -> None:
    chat = camera.page(navigation.CHAT)
    assert isinstance(chat, ChatPage)
    chat.composer.field.setPlainText(question)
    chat.composer.send.click()
    wait(ANSWER_MS)


def _first_steps(camera: Camera) -> None:
    """Show all pages of the first steps, as on first start."""
    steps = Welcome(camera.services, camera.window)
    steps.begin()
    number, last = 1, False
    while not last:
        last = steps.is_last
        camera.shoot(f"first-{number}")
        if not last:
            steps.show_next()
            wait(PAINT_MS)
            number += 1
