"""Draws docs/demo.svg from the actual output of `poolhouse demo`: `.venv/bin/python -m scripts.demo_picture`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parent.parent
PICTURE = PROJECT / "docs" / "demo.svg"
COLUMNS = 96
FONT_FROM_THE_WEB = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)  # a picture must not download anything


def main() -> int:
    """Run the demo and draw its output. Return the demo's exit code."""
    command = [sys.executable, "-c", "from app.cli import main; main()", "demo"]
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    ran = subprocess.run(command, cwd=PROJECT, env=env, stdout=subprocess.PIPE, check=False)
    if ran.returncode == 0:
        PICTURE.write_text(drawn(ran.stdout.decode()), encoding="utf-8")
    return ran.returncode


def drawn(output: str) -> str:
    """Return colored terminal output as an SVG picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output.rstrip()))
    return console.export_svg(title="poolhouse demo", code_format=FONT_FROM_THE_WEB.sub("", CONSOLE_SVG_FORMAT))


if __name__ == "__main__":
    sys.exit(main())
