"""The real program on a screen, over three real nodes, used by the names a screen reader hears."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.gui.outside import opened
from tests.node.pool import node, paired

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Xvfb and AT-SPI"),
    pytest.mark.timeout(180),
]


def test_a_first_evening(tmp_path: Path) -> None:
    """First steps, an answer, a fourth machine by code, pause and resume, quit; the node stays."""
    with (
        paired(tmp_path, "den", "attic", "kitchen") as nodes,
        node(tmp_path / "loft", "loft") as loft,
        opened(nodes[0].root, tmp_path) as (screen, program),
    ):
        screen.press("Skip the introduction", within=30)
        screen.press("How do I add a computer?")
        screen.read("it shows a six-digit code", within=30)
        screen.read("tok/s (forecast")
        screen.press("Regenerate")
        screen.read("Version 2 of 2", within=30)
        screen.read("Send", within=30)  # that button says Stop while an answer comes
        screen.focus("Message")
        screen.key("H", "i", "Return")
        screen.read("You: Hi", within=30)

        screen.press("Pool")
        screen.press("Table")
        for name in ("den (host)", "attic", "kitchen"):
            screen.read(name)
        screen.press("Add a machine")
        address = re.search(r"[\d.]+:\d+", screen.read("Address", within=20))
        assert address is not None
        code = "".join(re.findall(r"^label: '(\d)' ", "\n".join(screen.tree()), re.MULTILINE))
        joined = loft.run("pair", address[0], "--code", code, "--json")
        assert joined.returncode == 0, joined.stdout + joined.stderr
        screen.read("Paired with loft", within=20)
        screen.press("Done")
        screen.read("loft")

        screen.press("This computer")
        screen.press("Pause 1 h", within=20)
        screen.read("Paused", within=20)
        screen.press("Resume lending", within=20)
        screen.read("Others may use", within=20)

        screen.front()
        screen.key("ctrl+q")
        assert program.wait(15) == 0
        assert nodes[0].process.poll() is None, "the window did not start that node"
        assert (tmp_path / "window.txt").read_text().count("Traceback") == 0
