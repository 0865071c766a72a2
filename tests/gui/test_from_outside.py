"""The real program on a screen, in a household of three computers, used by the names a screen reader hears."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from testbed import tiny
from testbed.computers import Computer, started
from testbed.namespaces import Lan
from tests.gui.outside import Outside, opened
from tests.network.namespaces import lan

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Xvfb and AT-SPI"),
    pytest.mark.root,
    pytest.mark.timeout(240),
]
# Beside what an engine takes the model wants 4,096 tokens of KV at 24 KiB and 23 MiB of weights: the first
# computer cannot hold it alone, and together with either of the others it can. Without chance this one goes
# on as long as it may.
SHAPE = tiny.Shape(layers=12, width=512, heads=8, kv_heads=8, ffn=512, context=4096, quant="Q8_0", seed=3)
ANSWER = ("Answer: ", "evening: ")  # while it comes; and then, whose it is
BUSY = 90  # seconds that a load may take where the processor is shared with much else
OWN, LENT = "185MiB", "185MiB"


@dataclass
class Evening:
    """A household of one evening, and the window on its first computer."""

    net: Lan
    screen: Outside
    host: Computer
    lenders: list[Computer]


def test_an_evening(tmp_path: Path) -> None:
    file = tiny.llama(tmp_path / "evening.gguf", SHAPE)
    with lan(3) as net:
        lenders = [Computer(net, n, tmp_path / f"lender{n}", LENT) for n in (1, 2)]
        host = Computer(net, 0, tmp_path / "host")
        try:
            started(lenders)
            before = ("ip", "netns", "exec", net.names[0])
            with opened(host.root, tmp_path, before) as (screen, program):
                evening = Evening(net, screen, host, lenders)
                first_run(evening)
                pair_by_code(evening)
                import_and_load(evening, file)
                stop_and_regenerate(evening)
                lose_a_machine(evening)
                use_the_tray(evening)
                node = psutil.Process(host.pid)
                screen.tray("Quit")
                assert program.wait(60) == 0
                node.wait(60)  # the window started it, so it ends it
            assert (tmp_path / "window.txt").read_text().count("Traceback") == 0
        finally:
            for lender in lenders:
                lender.end()


def first_run(evening: Evening) -> None:
    """Three pages, and the Guide answers."""
    screen = evening.screen
    screen.write("Name of this computer", "study", role="text", within=30)
    screen.press("Continue")
    screen.press("Only this computer for now", within=BUSY)
    screen.press("Start with the Guide", within=BUSY)
    screen.read("Pool status: Ready.", within=BUSY)  # its node still starts
    screen.press("How do I add a computer?")
    screen.read("it shows a six-digit code", within=BUSY)
    screen.read("tok/s")


def pair_by_code(evening: Evening) -> None:
    """The code that is shown is typed on the other computers, which find this one by themselves."""
    screen = evening.screen
    screen.press("Pool")
    for newcomer in evening.lenders:
        screen.press("Add a machine")
        screen.read("enter this address", within=20)
        code = "".join(re.findall(r"^label: '(\d)' ", "\n".join(screen.tree()), re.MULTILINE))
        newcomer.run("pair", "--code", code)
        screen.read(f"{newcomer.name} joined", within=20)
        screen.press("Done")
    screen.press("Table")
    for name in ("study (this machine, host)", "attic-pc", "kitchen-pc"):
        screen.read(name)


def import_and_load(evening: Evening, file: Path) -> None:
    screen = evening.screen
    evening.host.run("lend", "--limit", OWN)
    screen.press("Models")
    screen.press("Import a file…", within=20)
    screen.write("File name:", str(file), role="text", within=20)
    screen.press("Open")
    screen.read("evening", within=20)
    screen.press("Load", within=20)
    screen.press("Open chat", within=BUSY)


def stop_and_regenerate(evening: Evening) -> None:
    screen = evening.screen
    screen.press("New chat", role="push button")
    screen.read("What would you like to know?")
    screen.press("Chat settings")
    screen.choose("Temperature", 0)
    screen.press("Save")
    ask(screen, "Tell me a long story")
    screen.read("tok/s", within=20)
    screen.press("Stop")
    screen.read("Stopped by you")
    screen.press("Regenerate")
    screen.read("Version 2 of 2", within=20)


def lose_a_machine(evening: Evening) -> None:
    """The text that came stays, the window stays usable, and the next question is answered."""
    screen = evening.screen
    stages = evening.host.ask("GET", "/status")["loaded"]["stages"]
    lost = next(lender for lender in evening.lenders if lender.name in {stage["machine"] for stage in stages})
    before = answer(screen)
    lost.kill()
    screen.read(lost.name, within=20)
    stop(screen)  # an answer that goes on without that machine
    assert answer(screen).startswith(before)
    ask(screen, "And then")
    assert answer(screen, within=BUSY)
    stop(screen)  # Quit asks while something is under way


def use_the_tray(evening: Evening) -> None:
    screen = evening.screen
    screen.front()
    screen.key("alt+F4")
    screen.read("Poolhouse is still running")
    screen.tray()  # which brings the window back, as it closes that notice
    screen.press("This computer")
    screen.tray("Pause lending", "For 1 h")
    screen.read("Paused until")
    screen.tray("Resume lending")
    screen.read("Others can use")


def stop(screen: Outside) -> None:
    screen.key("Escape")
    screen.read("Send", within=20)


def ask(screen: Outside, question: str) -> None:
    screen.focus("Message")
    screen.type(question)
    screen.key("Return")
    screen.read(f"You: {question}")


def answer(screen: Outside, within: float = 20) -> str:
    """The text of the last one as soon as there is some, without what Markdown may yet take as its own."""
    late = time.monotonic() + within
    while time.monotonic() < late:
        text = screen.inside(ANSWER).partition("Text ")[2].partition("tok/s")[0]
        if letters := "".join(name for name in text if name.isalpha()):
            return letters
        time.sleep(0.1)
    raise AssertionError(f"no answer within {within} s: {screen.tree()}")
