"""All commands under their names; each module adds its own."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from app.cli import welcome
from app.cli.commands import (
    api_commands,
    ask_command,
    autostart_command,
    bench_command,
    chats_commands,
    demo_command,
    doctor_command,
    erase_command,
    folder_command,
    household_commands,
    lend_command,
    load_commands,
    measure_command,
    model_commands,
    node_commands,
    pull_command,
    share_command,
    status_command,
    upstream_commands,
)


class _Command(TyperCommand):
    """Its help is lines, not a table: that cuts the names of options at 80 columns."""

    def __init__(self, *arguments: Any, **chosen: Any) -> None:
        super().__init__(*arguments, **(chosen | {"rich_markup_mode": None}))
        for parameter in self.params:
            if parameter.metavar is None:
                parameter.metavar = _stands_for(parameter.name or "", parameter.type.name)


def _stands_for(name: str, kind: str) -> str | None:
    """Return the placeholder of an option in the help: `N`, `NAME`; typer would write `<int range>`."""
    if kind.startswith(("int", "float")):
        return "N"
    return name.upper() if kind == "str" else None


def build() -> typer.Typer:
    """The whole command line. Builds nothing but descriptions: engines and networks stay unloaded."""
    program = typer.Typer(
        name="poolhouse",
        help="The computers of one household run one language model together.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for module in (
        welcome,
        ask_command,
        demo_command,
        status_command,
        node_commands,
        household_commands,
        lend_command,
        api_commands,
        upstream_commands,
        chats_commands,
        measure_command,
        model_commands,
        pull_command,
        folder_command,
        share_command,
        load_commands,
        bench_command,
        doctor_command,
        autostart_command,
        erase_command,
    ):
        module.add_to(program)
    _help_in_lines(program)
    return program


def _help_in_lines(commands: typer.Typer) -> None:
    for command in commands.registered_commands:
        command.cls = _Command
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _help_in_lines(group.typer_instance)
