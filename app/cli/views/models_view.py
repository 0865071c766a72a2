"""Views of the models on the shelf and of the recommended model."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.api.models import OfferedModel, SharedModel, ShelfModel, Starter
from app.cli import terminal_text
from app.core.reasons import size


def models_view(models: Sequence[ShelfModel]) -> RenderableType:
    """Show a row for each model. Below the table, explain why some models cannot be split."""
    if not models:
        return Group(terminal_text.command_text("There are no models yet. `poolhouse pull NAME` downloads one."))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Model", overflow="fold")
    table.add_column("Family", overflow="fold")
    table.add_column("Kind", overflow="fold")
    table.add_column("Layers", justify="right")
    table.add_column("Context", justify="right")
    table.add_column("Size", justify="right", no_wrap=True)
    for model in models:
        name = Text(terminal_text.name(model.name))
        if model.builtin:
            name.append(" (built in)", style="dim")
        if model.vision:
            name.append(" (sees pictures)", style="dim")
        table.add_row(
            name,
            terminal_text.name(model.architecture),
            terminal_text.name(model.quantization),
            str(model.n_layers),
            f"{model.context_length:,}" if model.context_length else "unknown",
            size(model.file_bytes),
        )
    missing = [terminal_text.command_text(terminal_text.line(model.missing)) for model in models if model.missing]
    return Group(table, *_unsplittable(models), *_base_models(models), *_blind(models), *missing)


def starter_view(starter: Starter | None) -> list[RenderableType]:
    """Show the model that is currently recommended for this household and the memory that it needs."""
    if starter is None:
        return []
    needs, lends = size(starter.needs_bytes), size(starter.lends_bytes)
    speed = f"; forecast: {terminal_text.rate_range(starter.tok_s, starter.spread)}" if starter.tok_s else ""
    name = terminal_text.name(starter.name)
    sentence = (
        f"Recommended: {name}. It needs {needs} of the {lends} free for models{speed}. `poolhouse pull {starter.id}`"
    )
    return [terminal_text.command_text(sentence), Text()]


def offered_view(offered: Sequence[OfferedModel]) -> list[RenderableType]:
    """Return a line for each host that answers for this guest, with the models that it offers."""
    by_host: dict[str, list[str]] = {}
    for model in offered:
        by_host.setdefault(model.machine, []).append(terminal_text.name(model.name))
    lines: list[RenderableType] = [
        Text(f"{terminal_text.name(machine)} answers with {', '.join(names)}.") for machine, names in by_host.items()
    ]
    return [*lines, Text("On this machine:")] if lines else []


def shared_view(shared: Sequence[SharedModel]) -> list[RenderableType]:
    """Return a line for each model that another machine has loaded, with the command that asks it."""
    lines: list[RenderableType] = []
    for model in shared:
        name, machine = terminal_text.name(model.model), terminal_text.name(model.machine)
        if not model.ready:
            lines.append(Text(f"{machine} is loading {name}."))
            continue
        command = f"`{terminal_text.ask_command(model)}`"
        lines.append(terminal_text.command_text(f"{machine} has loaded {name}. To ask it from here, run {command}."))
    return [*lines, Text()] if lines else []


def _base_models(models: Sequence[ShelfModel]) -> list[Text]:
    return [
        Text(f"{terminal_text.name(model.name)} is a base model: it completes text and doesn't chat.", style="dim")
        for model in models
        if model.is_base
    ]


def _blind(models: Sequence[ShelfModel]) -> list[Text]:
    """Explain why some projectors cannot be used."""
    return [
        terminal_text.command_text(terminal_text.line(model.blind_reason), "dim")
        for model in models
        if model.blind_reason
    ]


def _unsplittable(models: Sequence[ShelfModel]) -> list[Text]:
    return [
        terminal_text.command_text(f"{terminal_text.name(model.name)}: {terminal_text.line(model.whole_reason)}", "dim")
        for model in models
        if model.whole_reason and not model.splits
    ]
