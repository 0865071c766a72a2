"""The files by which a Linux desktop knows the app: launcher, menu entry, icons, AppStream data, unit and man page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from xml.sax.saxutils import escape

from app.gui.look.theme import LIGHT
from installers.payload.places import PROJECT
from installers.payload.trees import build_python
from scripts.setup_errors import Trouble

ID = "org.poolhouse.Poolhouse"
SUMMARY = "Your computers run one language model together"
SUMMARY_DE = "Deine Computer rechnen zusammen an einem Sprachmodell"
LAUNCHER = """#!/bin/sh
# Starts Poolhouse with the Python beside it, wherever this folder lies.
folder=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$folder/python/bin/python3.11" -m app "$@"
"""
UPDATING_LAUNCHER = """#!/bin/sh
# Starts Poolhouse with the Python beside it, wherever this folder lies, or a newer version that an update installed.
folder=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$folder/python/bin/python3.11" "$folder/app/app/launcher.py" "$@"
"""
DESKTOP_ENTRY = f"""[Desktop Entry]
Type=Application
Version=1.0
Name=Poolhouse
GenericName=Local AI Chat
GenericName[de]=Lokaler KI-Chat
Comment={SUMMARY}
Comment[de]={SUMMARY_DE}
Exec=poolhouse
Icon=poolhouse
Terminal=false
Categories=Utility;
Keywords=AI;LLM;chat;model;llama;
Keywords[de]=KI;LLM;Chat;Modell;llama;
StartupNotify=true
StartupWMClass=poolhouse
X-GNOME-SingleWindow=true
"""
UNIT = """[Unit]
Description=Poolhouse node, which lends this computer without a window
Documentation=man:poolhouse(1)

[Service]
ExecStart=/usr/bin/poolhouse node
Restart=on-failure

[Install]
WantedBy=default.target
"""
DESCRIPTION = """\
Poolhouse pools the computers of a household, so that together they run a language model that one of them alone could
not hold. A chat window, a pool with measured links, and a forecast before each load come with it.

Nothing leaves the household: machines are paired with a code, every connection between them is encrypted, and there are
no accounts and no telemetry.

A small model comes with the app, so that the first conversation works right after the installation and without
internet.
"""
PARAGRAPHS = [" ".join(part.split()) for part in DESCRIPTION.split("\n\n")]
MARK = PROJECT / "resources" / "gui" / "icons" / "app.svg"
ICON_SIZES = (16, 22, 24, 32, 48, 64, 128, 256)
# Draws the icon in all sizes.
DRAW = """
import sys
from pathlib import Path
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
application = QGuiApplication([])
drawing = QSvgRenderer(sys.argv[3])
for size in map(int, sys.argv[2].split(",")):
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    drawing.render(painter)
    painter.end()
    image.save(str(Path(sys.argv[1], f"{size}.png")))
"""


def metainfo(version: str, seconds: int) -> str:
    """Return the AppStream data."""
    paragraphs = "".join(f"    <p>{escape(text)}</p>\n" for text in PARAGRAPHS)
    day = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<component type="desktop-application">
  <id>{ID}</id>
  <metadata_license>FSFAP</metadata_license>
  <project_license>Apache-2.0</project_license>
  <name>Poolhouse</name>
  <summary>{escape(SUMMARY)}</summary>
  <summary xml:lang="de">{escape(SUMMARY_DE)}</summary>
  <description>
{paragraphs}  </description>
  <launchable type="desktop-id">poolhouse.desktop</launchable>
  <icon type="stock">poolhouse</icon>
  <developer_name>The Poolhouse authors</developer_name>
  <categories>
    <category>Utility</category>
    <category>Network</category>
  </categories>
  <provides>
    <binary>poolhouse</binary>
  </provides>
  <content_rating type="oars-1.1"/>
  <releases>
    <release version="{version}" date="{day}"/>
  </releases>
</component>
"""


def write_icons(folder: Path) -> None:
    """Write the icon in all sizes below `folder`, a theme such as hicolor. Raises Trouble."""
    made, scalable = folder / "drawn", folder / "scalable/apps/poolhouse.svg"
    made.mkdir(parents=True)
    scalable.parent.mkdir(parents=True)
    scalable.write_text(MARK.read_text("utf-8").replace("currentColor", LIGHT.accent), "utf-8")
    command = [build_python(), "-c", DRAW, str(made), ",".join(map(str, ICON_SIZES)), str(scalable)]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(PROJECT), "QT_SCALE_FACTOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise Trouble(f"The icons could not be drawn: {done.stderr.strip()[-300:]}")
    for size in ICON_SIZES:
        place = folder / f"{size}x{size}" / "apps"
        place.mkdir(parents=True)
        shutil.move(made / f"{size}.png", place / "poolhouse.png")
    made.rmdir()


def write_launcher(path: Path, *, updates: bool) -> None:
    """Write the program that a user starts. updates: whether Poolhouse updates itself, not the system."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(UPDATING_LAUNCHER if updates else LAUNCHER, "utf-8")
    path.chmod(0o755)


def man_page(version: str, seconds: int) -> str:
    """Return the man page, made from the help of every command."""
    import typer
    from typer.main import get_command

    from app.cli.program import PANELS, build

    program = get_command(build())
    context = typer.Context(program, info_name="poolhouse")
    day = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    lines = [f'.TH POOLHOUSE 1 "{day}" "Poolhouse {version}" "User Commands"']
    lines += [".SH NAME", f"poolhouse \\- {_text(SUMMARY[0].lower() + SUMMARY[1:])}"]
    lines += [
        ".SH SYNOPSIS",
        ".B poolhouse",
        "[\\fIoptions\\fR]",
        ".br",
        ".B poolhouse",
        "\\fIcommand\\fR [\\fIoptions\\fR]",
    ]
    lines += [".SH DESCRIPTION", _text(program.help or ""), ".PP", "Without a command, the window opens."]
    lines += [".SH OPTIONS", *_options(program, context)]
    groups = getattr(program, "commands", {})
    listed = [name for commands in PANELS.values() for name in commands]
    lines.append(".SH COMMANDS")
    for name in [*listed, *(name for name in groups if name not in listed)]:
        command = groups[name]
        if getattr(command, "hidden", False):
            continue
        inner = typer.Context(command, info_name=name, parent=context)
        lines += _command(f"poolhouse {name}", command, inner)
        for second, child in getattr(command, "commands", {}).items():
            if not getattr(child, "hidden", False):
                lines += _command(
                    f"poolhouse {name} {second}", child, typer.Context(child, info_name=second, parent=inner)
                )
    lines += [".SH FILES", ".TP", ".I ~/.local/share/poolhouse", "The household, models, chats and settings of a user."]
    lines += [".SH SEE ALSO", "The menu entry Poolhouse, and the page Settings in the window."]
    return "\n".join(lines) + "\n"


def _command(name: str, command: object, context: object) -> list[str]:
    usage = command.get_usage(context).split(": ", 1)[-1]  # type: ignore[attr-defined]
    about = getattr(command, "help", "") or ""
    return [".SS " + _text(name), ".B " + _text(" ".join(usage.split())), ".PP", *_paragraphs(about),
            *_options(command, context)]  # fmt: skip


def _options(command: object, context: object) -> list[str]:
    lines: list[str] = []
    for parameter in command.get_params(context):  # type: ignore[attr-defined]
        record = parameter.get_help_record(context)
        if record and not getattr(parameter, "hidden", False):
            lines += [".TP", ".B " + _text(record[0]), *_paragraphs(record[1] or "")]
    return lines


def _paragraphs(text: str) -> list[str]:
    return [_text(" ".join(part.split())) for part in text.split("\n\n") if part.strip()]


def _text(text: str) -> str:
    """Escape a text for roff. A line must not begin with a dot or an apostrophe."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"\[/?[a-z ]+\]", "", text) if "[/" in text else text
    return f"\\&{text}" if text[:1] in (".", "'") else text
