"""A view of a model's placement as a small diagram, with each machine's layers and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from app.api.plans import Forecast, LoadedEmbedder, LoadedModel, Plan, Replica, Stage
from app.cli import terminal_text
from app.cli.terminal_text import memory_bar, rate_range, seconds, seconds_range
from app.core.reasons import size

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions


NARROWEST, WIDEST = 4, 40
COLORS = ("blue", "green", "magenta", "cyan", "yellow")
HELD, ELSEWHERE = "█", "░"

Run = tuple[int, int]


def plan_view(plan: Plan) -> RenderableType:
    """Show a planned placement, as in `poolhouse plan`, or a loaded model."""
    if plan.forecast is not None:
        plan = plan.as_shown()
    rows: list[RenderableType] = [Text(headline(plan), style="bold"), placement_view(plan)]
    if plan.forecast is not None:
        rows.append(Text(forecast_line(plan, plan.forecast)))
    rows += [terminal_text.command_text(terminal_text.line(reason), "dim") for reason in plan.reasons]
    rows += [terminal_text.command_text(terminal_text.line(advice.sentence), "green") for advice in plan.advice]
    return Group(*rows)


def forecast_line(plan: Plan, forecast: Forecast) -> str:
    """Return the forecast as a sentence.

    An example is `Forecast for a 512-token prompt: first token after 1.0–1.5 s, then 7.4–12 tok/s (8 at once: 25–39
    tok/s in total).` Once a loaded model has answered, the times of its answers improve the forecast.
    """
    users = plan.users or 1
    prompt = f" for a {plan.first_token.prompt_tokens:,}-token prompt" if plan.first_token else ""
    learned = ", corrected by its answers so far" if isinstance(plan, LoadedModel) and plan.last_answer else ""
    first_s = plan.first_token.ttft_s if plan.first_token else forecast.ttft_s
    first, speed = seconds_range(first_s, forecast.spread), rate_range(forecast.decode_tok_s, forecast.spread)
    total = rate_range(forecast.together_tok_s, forecast.spread)
    together = f" ({users} at once: {total} in total)" if users > 1 else ""
    return f"Forecast{prompt}{learned}: first token after {first}, then {speed}{together}."


def headline(plan: Plan) -> str:
    """Return a summary such as `guide · split over 3 machines · context 4,096 · 2 users · f16`."""
    machines = len(by_machine(plan.held))
    shape = f"split over {machines} machines" if machines > 1 else "on one machine"
    n_whole = sum(stage.role == "whole" for stage in plan.held)
    if plan.shape == "replicas" and machines > 1 and n_whole:
        shape = f"replicas on {machines} machines"
        if n_whole < machines:
            shape = f"split over {machines - n_whole} machines and whole on {n_whole} more"
    parts = [terminal_text.name(plan.model), shape]
    if plan.context:
        parts.append(f"context {plan.context:,}")
    if plan.users and plan.users > 1:
        parts.append(f"{plan.users} at once")
    if plan.number and any(stage.role != "whole" for stage in plan.held) and machines > 1:
        parts.append(plan.number)
    return " · ".join(parts)


def replicas_line(replicas: Sequence[Replica]) -> str:
    """Return the states of the replicas, such as `Replicas: den-pc ready, 4 answering; attic-pc lost.`"""
    parts = []
    for replica in replicas:
        doing = [f"{replica.answering} answering"] if replica.answering else []
        doing += [f"{replica.waiting} waiting"] if replica.waiting else []
        parts.append(", ".join([f"{terminal_text.name(replica.machine)} {terminal_text.line(replica.state)}", *doing]))
    return f"Replicas: {'; '.join(parts)}."


def loaded_line(plan: LoadedModel | LoadedEmbedder) -> str:
    """Return a sentence that says how long loading took and how much data was sent over the network."""
    time = f"Loaded in {seconds(plan.loaded_seconds)}"
    if isinstance(plan, LoadedModel) and plan.fetched_bytes:
        return f"{time}; {size(plan.fetched_bytes)} was sent to the lenders."
    return f"{time}; nothing had to be sent."


def placement_view(plan: Plan, *, header: bool = False) -> Table:
    """Show one row for each machine, in layer order.

    header: whether to label the columns, which is needed beside another table with amounts of memory.
    """
    needs = {need.key: need for need in plan.machines}
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=header, pad_edge=False, header_style="dim")
    table.add_column("Machine", overflow="fold")
    table.add_column()
    table.add_column("Layers", overflow="fold", justify="right")
    table.add_column("Needed / available", overflow="fold")
    has_cards = any(stage.card for stage in plan.stages)
    if has_cards:
        table.add_column("Computed by", overflow="fold")
    n_layers = max((stage.last for stage in plan.stages), default=0)
    for row, (key, stages) in enumerate(by_machine(plan.stages).items()):
        color = COLORS[row % len(COLORS)]
        runs = merge_runs([(stage.first, stage.last) for stage in stages])
        takes = sum(stage.weight_bytes + stage.kv_bytes + stage.work_bytes for stage in stages)
        need = needs.get(key)
        memory: RenderableType = size(takes) if takes else ""
        if need is not None and need.lends_bytes:
            memory = memory_bar(need.needs_bytes, need.lends_bytes, color)
        by = [terminal_text.line(stages[0].card or "its processor")] if has_cards else []
        table.add_row(
            terminal_text.name(stages[0].machine), LayerStrip(runs, n_layers, color), layer_numbers(runs), memory, *by
        )
    return table


def by_machine(stages: Sequence[Stage]) -> dict[str, list[Stage]]:
    """Group the stages by machine, in the order of their first layers. The keys identify the machines."""
    by_key: dict[str, list[Stage]] = {}
    for stage in sorted(stages, key=lambda stage: stage.first):
        by_key.setdefault(stage.key, []).append(stage)
    return by_key


class LayerStrip:
    """A strip of at most 40 cells, each of which represents one or more layers.

    On a narrow terminal, it has fewer cells.
    """

    def __init__(self, runs: Sequence[Run], n_layers: int, color: str) -> None:
        self._runs, self._n_layers, self._color = runs, n_layers, color

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = min(self._n_layers, WIDEST)
        return Measurement(min(most, NARROWEST), most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield layer_strip(self._runs, self._n_layers, self._color, options.max_width)


def layer_strip(runs: Sequence[Run], n_layers: int, color: str, widest: int = WIDEST) -> Text:
    """Return one cell per layer, or one per several layers if the strip would be too wide."""
    width = min(n_layers, widest, WIDEST)
    picture = Text()
    for cell in range(width):
        layer = int((cell + 0.5) * n_layers / width)
        is_held = any(first <= layer < last for first, last in runs)
        picture.append(HELD if is_held else ELSEWHERE, style=color if is_held else "dim")
    return picture


def layer_numbers(runs: Sequence[Run]) -> str:
    """Return the layers as one-based ranges, such as `1–4, 13–16`."""
    return ", ".join(f"{first + 1}" if last == first + 1 else f"{first + 1}–{last}" for first, last in runs)


def merge_runs(runs: Sequence[Run]) -> list[Run]:
    """Sort the runs of layers, and merge adjacent ones."""
    together: list[Run] = []
    for first, last in sorted(runs):
        if together and together[-1][1] == first:
            together[-1] = (together[-1][0], last)
        else:
            together.append((first, last))
    return together
