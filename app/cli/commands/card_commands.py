"""The commands `poolhouse card …`, which show the graphics cards of this computer and limit their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_name
from app.cli.output import Output
from app.core.errors import BadInput, Reason
from app.core.reasons import size

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from app.api.computer import Cards, CardState
    from app.api.snapshot import LendingState
    from app.client import NodeClient

CardArgument = Annotated[
    Optional[str],  # noqa: UP045  typer reads it at run time
    typer.Argument(
        metavar="[CARD]",
        help="A part of the name that `poolhouse card list` shows (default: the only card).",
        parser=read_name,
        show_default=False,
    ),
]
LimitArgument = Annotated[
    str, typer.Argument(metavar="PERCENT", help="The share of a card's memory, such as 80%, or `off` for no limit.")
]
OnlyArgument = Annotated[
    Literal["on", "off"], typer.Argument(metavar="on|off", help="Whether to lend only graphics cards.")
]
LEAST_PERCENT = 10  # the node's own limit
OWN_MODELS = "Models that you have loaded stay on it until they are loaded again."


def card_group() -> typer.Typer:
    commands = typer.Typer(
        name="card", help="Show this computer's graphics cards and limit their use.", no_args_is_help=True
    )
    commands.command("list")(list_cards)
    for command in (on, off, limit, only):
        commands.command(command.__name__)(command)
    return commands


def list_cards(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the graphics cards, what they do, and what limits them."""
    from app.api.computer import Cards
    from app.api.snapshot import LendingState

    async def work(node: NodeClient) -> tuple[Cards, LendingState]:
        return await node.get("/cards", Cards), await node.get("/lending", LendingState)

    cards, lending = ask_node(home, work)
    Output(as_json).result(cards, lambda: _view([*_lines(cards), *_rules(cards, lending)]))


def on(card: CardArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Use a graphics card again. It is tested first."""
    _switch(card, home, as_json, is_on=True)


def off(card: CardArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop using a graphics card. Layers that it holds for other machines are removed immediately."""
    _switch(card, home, as_json, is_on=False)


def limit(percent: LimitArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Limit how much memory of a graphics card models may use. Models that are loaded now are not affected."""
    _show(_change(home, {"memory_percent": _percent(percent)}), as_json)


def only(choice: OnlyArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Choose whether other machines may use only the graphics card and not the processor."""
    _show(_change(home, {"card_only": choice == "on"}), as_json)


def _switch(name: str | None, home: Path | None, as_json: bool, *, is_on: bool) -> None:
    from app.api.computer import Cards

    async def work(node: NodeClient) -> tuple[Cards, CardState]:
        cards = (await node.get("/cards", Cards)).cards
        card = named(name or "", cards)
        keys = {other.key for other in cards if not other.on} - {card.key}
        order = {"off": sorted(keys if is_on else {*keys, card.key})}
        return await node.post("/cards", order, answer=Cards), card

    cards, card = ask_node(home, work)
    label = terminal_text.name(card.label)
    said = (
        f"{label} is switched on. It is tested before it is used."
        if is_on
        else f"{label} is switched off. {OWN_MODELS}"
    )
    Output(as_json).result(cards, lambda: _view([said, *_lines(cards)]))


def named(name: str, cards: list[CardState]) -> CardState:
    """Return the only card with this key or with this text in its name. Raises BadInput if there is not exactly one."""
    matches = [card for card in cards if card.key == name] or [
        card for card in cards if name.casefold() in card.label.casefold()
    ]
    if len(matches) != 1:
        labels = ", ".join(card.label if card.key == card.label else f"{card.label} ({card.key})" for card in cards)
        if not name:
            raise BadInput("card_unnamed", cards=labels or Reason("none"))
        raise BadInput("card_unknown", name=name, cards=labels or Reason("none"))
    return matches[0]


def _percent(typed: str) -> int:
    word = typed.strip().lower()
    number = "100" if word == "off" else word.removesuffix("%").rstrip()
    known = number.isascii() and number.isdecimal() and len(number) <= len("100")
    if not (known and LEAST_PERCENT <= int(number) <= 100):
        raise typer.BadParameter(
            f"'{typed}' is not a whole percentage from {LEAST_PERCENT} to 100. Write it like 80%, or off."
        )
    return int(number)


def _change(home: Path | None, order: dict[str, Any]) -> Cards:
    from app.api.computer import Cards

    return ask_node(home, lambda node: node.post("/cards", order, answer=Cards))


def _show(cards: Cards, as_json: bool) -> None:
    Output(as_json).result(cards, lambda: _view([*_lines(cards), *_limits(cards)]))


def _view(lines: list[str]) -> RenderableType:
    from rich.console import Group

    return Group(*map(terminal_text.command_text, lines))


def _lines(cards: Cards) -> list[str]:
    none = "No graphics card can be used because no engine pack detects one. `poolhouse engine list` shows the packs."
    return [_line(card) for card in cards.cards] or [none]


def _line(card: CardState) -> str:
    memory = f"{size(card.total_bytes)}{', shared with the processor' if card.is_integrated else ''}"
    name = f"{terminal_text.name(card.label)} ({terminal_text.line(card.api)}, {memory})"
    if not card.computes:
        return f"{name} is not used. {terminal_text.line(card.reason or '')}".rstrip()
    degrees = "temperature unknown" if card.celsius is None else f"{card.celsius:.0f} °C"
    busy = "use unknown" if card.busy_percent is None else f"{card.busy_percent:.0f}% busy"
    return f"{name} is in use: {degrees}, {busy}."


def _limits(cards: Cards) -> list[str]:
    most = f"at most {cards.memory_percent}%" if cards.memory_percent < 100 else "all"
    only_cards = "Other machines may use only the graphics card. If no card can be used, nothing is lent."
    both = "Other machines may also use the processor for anything that no graphics card can hold or compute."
    return [f"All models together may use {most} of each card's memory.", only_cards if cards.card_only else both]


def _rules(cards: Cards, lending: LendingState) -> list[str]:
    rules, reads = lending.rules, lending.readings
    use = "Lending continues while another program uses the card."
    if rules.gpu:
        busy = "unknown" if reads.gpu_percent is None else f"{reads.gpu_percent:.0f}%"
        use = f"Lending pauses while another program uses the card (now: {busy})."
    heat = "Lending continues at any temperature of the card."
    if rules.card_celsius:
        heat = f"Lending pauses when the card reaches {rules.card_celsius} °C."
    state = lending.lending
    paused = [terminal_text.line(state.reason)] if state.reason and state.state in ("paused", "draining") else []
    return [*_limits(cards), use, heat, *paused]
