"""The complete command line: all commands in the order of the help, with their panels and examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from app.cli.commands.api_commands import api_group
from app.cli.commands.ask_command import ask
from app.cli.commands.bench_command import bench
from app.cli.commands.card_commands import card_group
from app.cli.commands.chats_commands import chats_group
from app.cli.commands.demo_command import demo
from app.cli.commands.downloads_command import downloads
from app.cli.commands.engine.engine_commands import engine_group
from app.cli.commands.household_commands import machines, measure, remove, rename, reset, roles, status, use_again
from app.cli.commands.lend_command import lend
from app.cli.commands.load_commands import load, plan, undo, unload
from app.cli.commands.model_commands import answer, exact, folder, import_file, models, rm, share
from app.cli.commands.node_commands import autostart, doctor, erase, node
from app.cli.commands.pair_command import pair
from app.cli.commands.phone_commands import phones_group
from app.cli.commands.pull_command import pull
from app.cli.commands.tool_commands import tools_group
from app.cli.commands.upstream_commands import upstream_group
from app.cli.prompts_command import prompts
from app.cli.update_command import update
from app.cli.welcome import welcome
from app.core.nearest_names import nearest_names

Command = Callable[..., None]
PANELS: dict[str, dict[str, Command]] = {
    "Every day": {"ask": ask, "demo": demo, "status": status, "node": node, "lend": lend},
    "Household": {
        "pair": pair,
        "machines": machines,
        "rename": rename,
        "roles": roles,
        "use-again": use_again,
        "remove": remove,
        "reset": reset,
        "measure": measure,
    },
    "Models": {
        "models": models,
        "import": import_file,
        "rm": rm,
        "pull": pull,
        "downloads": downloads,
        "folder": folder,
        "share": share,
        "answer": answer,
        "exact": exact,
        "prompts": prompts,
        "plan": plan,
        "load": load,
        "unload": unload,
        "undo": undo,
    },
    "Checks and figures": {"bench": bench, "doctor": doctor, "autostart": autostart, "update": update, "erase": erase},
}
EXAMPLES = {
    "ask": 'poolhouse ask "How do I add a computer?"',
    "rename": "poolhouse rename attic-pc loft",
    "roles": "poolhouse roles attic-pc --host --lender",
    "use-again": "poolhouse use-again attic-pc",
    "remove": "poolhouse remove attic-pc",
    "import": "poolhouse import ~/models/some-model.Q4_K_M.gguf",
    "rm": "poolhouse rm some-model",
    "downloads": "poolhouse downloads --pause",
    "folder": "poolhouse folder /media/large --move",
    "share": "poolhouse share on",
    "answer": "poolhouse answer off",
    "exact": "poolhouse exact on",
    "prompts": "poolhouse prompts --most 8GiB",
    "plan": "poolhouse plan llama-3.2-3b",
    "load": "poolhouse load llama-3.2-3b",
    "undo": "poolhouse undo",
    "bench": "poolhouse bench llama-3.2-3b",
    "autostart": "poolhouse autostart on --headless",
    "update": "poolhouse update --from /media/stick",
}


class _Command(TyperCommand):
    """A command whose help consists of plain lines. Typer's table would truncate option names at 80 columns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **(options | {"rich_markup_mode": None}))
        for parameter in self.params:
            if parameter.metavar is None:
                parameter.metavar = _placeholder(parameter.name or "", parameter.type.name)


class _Group(TyperGroup):
    """A group of commands. For an unknown command, it suggests those with similar names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if near := nearest_names(args[0], self.commands):
                error.message += f" Did you mean {' or '.join(map(repr, near))}?"
            raise


def _placeholder(name: str, kind: str) -> str | None:
    """Return an option's placeholder in the help, such as `N` or `NAME`, instead of typer's `<int range>`."""
    if kind.startswith(("int", "float")):
        return "N"
    return name.upper() if kind == "str" else None


def build() -> typer.Typer:
    """Return the complete command line. Building it imports no engine or network code."""
    program = typer.Typer(
        name="poolhouse",
        help="The computers of one household run one language model together.",
        cls=_Group,
        suggest_commands=False,  # typer's are too far from what was typed
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback(invoke_without_command=True)(welcome)
    for panel, commands in PANELS.items():
        for name, command in commands.items():
            example = f"For example: {EXAMPLES[name]}" if name in EXAMPLES else None
            program.command(name, rich_help_panel=panel, epilog=example)(command)
    for group in (phones_group(), api_group(), upstream_group(), tools_group(), chats_group()):
        program.add_typer(group, cls=_Group, rich_help_panel="Every day")
    for group in (engine_group(), card_group()):
        program.add_typer(group, cls=_Group, rich_help_panel="Checks and figures")
    _help_in_lines(program)
    return program


def _help_in_lines(commands: typer.Typer) -> None:
    for command in commands.registered_commands:
        command.cls = _Command
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _help_in_lines(group.typer_instance)
