"""All commands under their names; each module adds its own."""

from __future__ import annotations

import typer

from app.cli import (
    api_command,
    ask_command,
    bench_command,
    demo_command,
    doctor_command,
    household_commands,
    lend_command,
    measure_command,
    node_command,
    placing_commands,
    pull_command,
    shelf_commands,
    status_command,
    upstream_command,
    welcome,
)


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
        node_command,
        household_commands,
        lend_command,
        api_command,
        upstream_command,
        measure_command,
        shelf_commands,
        pull_command,
        placing_commands,
        bench_command,
        doctor_command,
    ):
        module.add_to(program)
    return program
