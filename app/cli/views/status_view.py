"""The view of `poolhouse status`: the loaded models, the machines and the memory that they lend, and the links."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.api.models import SharedModel
from app.api.plans import AnswerOutcome, LoadedEmbedder, LoadedModel
from app.api.snapshot import ForecastErrors, Link, Machine, Snapshot
from app.cli import terminal_text
from app.cli.terminal_text import duration, memory_bar, rate, rate_range, seconds, seconds_range
from app.cli.views.machines_view import machine_name, nearby_view, short_link, state_of
from app.cli.views.placement_view import by_machine, forecast_line, headline, placement_view, replicas_line

# reasons of a lost model that no longer hold once its machines are connected again
DISCONNECTED = frozenset(
    {"stage_lost", "stage_unreachable", "stage_silent", "link_lost", "peer_stopped", "shutting_down", "machine_closed"}
)


def forecasts_view(last: AnswerOutcome | None, errors: ForecastErrors) -> list[Text]:
    """Return the last answer's times next to its forecast, and the median error of all forecasts."""
    lines = [Text(_last_answer(last))] if last else []
    if errors.answers > 1 and errors.ttft_error is not None and errors.decode_error is not None:
        lines.append(
            Text(
                f"Over {errors.answers} answers, the median error of the forecast was "
                f"{_error_words(errors.ttft_error)} for the first token and "
                f"{_error_words(errors.decode_error)} for the rest.",
                style="dim",
            )
        )
    if errors.factor is not None:
        count = "1 answer" if errors.quiet_answers == 1 else f"{errors.quiet_answers} answers"
        words = f"On a quiet computer ({count}), the speed was {errors.factor:.2f} times the forecast."
        lines.append(Text(words, style="dim"))
    return lines


def _error_words(error: float) -> str:
    """Return the error of a forecast as a percentage or, above 100 %, as a factor."""
    return f"{100 * error:.0f}%" if error <= 1 else f"a factor of {1 + error:.0f}"


def _last_answer(outcome: AnswerOutcome) -> str:
    tokens = "prompt token" if outcome.prompt_tokens == 1 else "prompt tokens"
    interruption = " This includes the time it took to replace a lost machine." if outcome.interruptions else ""
    return (
        f"Last answer ({outcome.prompt_tokens:,} {tokens}, {outcome.output_tokens:,} in the answer): first token after "
        f"{seconds(outcome.ttft_s)}, forecast {seconds_range(outcome.forecast_ttft_s, outcome.spread)}; then "
        f"{rate(outcome.tok_s)}, forecast {rate_range(outcome.forecast_tok_s, outcome.spread)}.{interruption}"
    )


def status_view(snapshot: Snapshot) -> RenderableType:
    """Show the complete output of `poolhouse status` within 80 columns."""
    rows: list[RenderableType] = [_head(snapshot), Text(), machines_view(snapshot)]
    rows += links_between(snapshot)
    rows += _reasons(snapshot)
    if snapshot.discovery.reason:
        rows.append(terminal_text.command_text(terminal_text.line(snapshot.discovery.reason), "yellow"))
    rows += nearby_view(list(snapshot.strangers.values()))
    for model in snapshot.models:
        rows += model_view(model) if model.stages else []
    if snapshot.loaded is not None and snapshot.loaded.stages and not snapshot.loaded.too_small:
        rows += forecasts_view(snapshot.loaded.last_answer, snapshot.forecasts)
    if snapshot.embeds is not None:
        rows += [Text(), *vectors_view(snapshot.embeds)]
    if snapshot.pairing is not None:
        window = snapshot.pairing
        left = duration(window.seconds_left)
        sentence = f"Pairing is open at {terminal_text.line(window.address)} for {left} more."
        rows += [Text(), Text(sentence)]
    return Group(*rows)


def model_view(model: LoadedModel) -> list[RenderableType]:
    """Show a chat model and its placement."""
    model = model.as_shown()
    title = Text(headline(model), style="bold")
    rows: list[RenderableType] = [Text(), title, placement_view(model, header=True)]
    if model.replicas:
        rows.append(Text(replicas_line(model.replicas)))
    if model.forecast is not None:
        rows.append(Text(forecast_line(model, model.forecast)))
    return rows


def vectors_view(embeds: LoadedEmbedder) -> list[RenderableType]:
    """Show the embedding model or reranker, which is loaded next to the chat models."""
    doing = ", loading" if embeds.state == "loading" else ""
    purpose = "ranks texts for programs" if embeds.ranks else "vectors for programs"
    title = Text(f"{terminal_text.name(embeds.model)} · {purpose}{doing}", style="bold")
    return [title, placement_view(embeds, header=True)]


def _head(snapshot: Snapshot) -> RenderableType:
    node = snapshot.node
    parts = [terminal_text.name(node.name), f"Poolhouse {terminal_text.line(node.version)}"]
    if node.peer_address:
        parts.append(terminal_text.line(node.peer_address))
    used_by = node.lending.used_by
    online = {key for key, machine in snapshot.machines.items() if machine.online or machine.this}
    shared = snapshot.shared_model(None)
    sentences = [pool_sentence(snapshot.loaded, snapshot.hosts, used_by, online, shared)]
    if snapshot.loaded is None and shared is None and snapshot.hosts is None:
        sentences += [shared_sentence(model) for model in snapshot.shared if model.ready]
    sentences += [beside_sentence(model, online) for model in snapshot.beside]
    sentence = terminal_text.command_text(" ".join(sentences), "bold")
    if node.reason:
        sentence = terminal_text.command_text(terminal_text.line(node.reason), "bold red")
    answers = snapshot.answers
    if answers.running or answers.waiting:
        sentence.append(f" {answers.running} answering, {answers.waiting} waiting.", style="default")
    return Group(sentence, Text(" · ".join(parts), style="dim"))


def shared_sentence(model: SharedModel) -> str:
    """Name a model that another machine has loaded, and the command that asks it."""
    name, machine = terminal_text.name(model.model), terminal_text.name(model.machine)
    return f"{machine} has loaded {name}. To ask it from here, run `{terminal_text.ask_command(model)}`."


def pool_sentence(
    loaded: LoadedModel | None,
    hosts: Sequence[str] | None = None,
    used_by: Sequence[str] = (),
    online: Collection[str] = (),
    shared: SharedModel | None = None,
) -> str:
    """Describe in one sentence what the pool can currently do (UX.md 4).

    hosts: the hosts that answer for this machine, if it is a guest.
    used_by: the machines whose layers this machine holds.
    shared: the model of another host that answers questions from here while none is loaded.
    """
    if hosts is not None:
        names = ", ".join(map(terminal_text.name, hosts))
        return f"Ready. Answers come from {names}." if hosts else "No host is available to answer."
    if loaded is None and shared is not None:
        return f"Ready. {terminal_text.name(shared.machine)} will answer with {terminal_text.name(shared.model)}."
    if loaded is None and used_by:
        return f"Lending: this machine holds layers for {', '.join(map(terminal_text.name, used_by))}."
    if loaded is None:
        return "No model is loaded. Load one with `poolhouse load NAME`."
    return _model_sentence(loaded, "Ready. ", online)


def beside_sentence(model: LoadedModel, online: Collection[str] = ()) -> str:
    """Return the state of a model that is loaded in addition to the first one."""
    return _model_sentence(model, "", online)


def _model_sentence(loaded: LoadedModel, ready: str, online: Collection[str]) -> str:
    name = terminal_text.name(loaded.model)
    machines = len(by_machine(loaded.held))
    if loaded.stopping:
        return f"{name} is stopping and freeing its memory."
    match loaded.state:
        case "ready" | "":
            where = f"{machines} machines" if machines > 1 else "this machine"
            if machines == 1 and loaded.held[0].key != loaded.stages[0].key:  # the host has the first stage
                where = terminal_text.name(loaded.held[0].machine)
            then = f" {terminal_text.line(loaded.recovery.text or '')}" if loaded.recovery else ""
            return f"{ready}{name} is loaded on {where}.{then}{_moved(loaded)}"
        case "loading":
            return f"Loading {name}."
        case "lost":
            code = loaded.reason_facts.code if loaded.reason_facts else ""
            if code in DISCONNECTED and all(stage.key in online for stage in loaded.stages):
                return f"{name} was lost, but its machines are connected again. The next question will load it again."
            return f"{name} was lost. {_why(loaded)} The next question will load it again."
        case state:
            return f"{name} is {terminal_text.line(state)}. {_why(loaded)}"


def _moved(loaded: LoadedModel) -> str:
    """Return why layers last moved by themselves, and how to undo that, or ""."""
    move = loaded.moved
    if move is None:
        return ""
    if move.undoing:
        return " The layers are moving back."
    when = time.strftime("%H:%M", time.localtime(move.at))
    undo = " `poolhouse undo` moves the layers back." if move.undoable else ""
    problem = f" {terminal_text.line(move.problem)}" if move.problem else ""
    return f" {when}: {terminal_text.line(move.text)}{undo}{problem}"


def _why(loaded: LoadedModel) -> str:
    return terminal_text.line(loaded.reason or "The reason is unknown.")


def machines_view(snapshot: Snapshot) -> Table:
    """Show a row for each machine, this one first."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Machine", overflow="fold")
    table.add_column("State", overflow="fold")
    table.add_column("Used / lent to others", overflow="fold")
    table.add_column("Link", overflow="fold")
    for machine in sorted(snapshot.machines.values(), key=lambda known: (not known.this, known.name)):
        table.add_row(machine_name(machine), state_of(machine), _lends(machine), _link(machine, snapshot.links))
    return table


def links_between(snapshot: Snapshot) -> list[Text]:
    """Return a line for each link between two other machines, as measured by one of them."""
    names = {key: terminal_text.name(machine.name) for key, machine in snapshot.machines.items()}
    lines = [
        " – ".join(sorted((names[near], names[other]), key=str.casefold)) + f": {short_link(link)}"
        for near, links in snapshot.links_between.items()
        for other, link in links.items()
        if near in names and other in names
    ]
    return [Text(line, style="dim") for line in sorted(lines, key=str.casefold)]


def _reasons(snapshot: Snapshot) -> list[Text]:
    """Return a line for each machine that gives a reason for its state."""
    return [
        terminal_text.command_text(f"{terminal_text.name(machine.name)}: {terminal_text.line(machine.reason)}", "dim")
        for machine in snapshot.machines.values()
        if machine.reason
    ]


def _lends(machine: Machine) -> RenderableType:
    if not machine.lent_bytes:
        return Text("nothing", style="dim")
    return memory_bar(machine.used_bytes or 0, machine.lent_bytes)


def _link(machine: Machine, links: dict[str, Link]) -> Text:
    if machine.this:
        return Text("")
    link = links.get(machine.id, Link())
    return Text(short_link(link), style="dim")
