"""A benchmark as a report to share, without machines' names: HTML that needs nothing else, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from html import escape
from pathlib import Path
from string import Template, ascii_uppercase
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import BadInput
from app.core.planner.speed_estimates import is_rough
from app.core.reasons import os_cause
from app.gui.activity.bench_store import Bench
from app.gui.activity.journal_feed import StageDid, together
from app.gui.activity.timeline import Bars, share_lines
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import LIGHT, Theme, set_role
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import Elided, label, paragraph
from app.gui.widgets.layouts import card, clear, column, line

Json = dict[str, Any]
ENDS = (".html", ".png", ".md", ".json")  # what `save` can write

PAGE = Template("""<!doctype html>
<html lang="$lang"><head><meta charset="utf-8"><title>$title</title><style>
body { font: 1rem/1.5 system-ui, sans-serif; color: $text; background: $window; margin: 2rem auto;
  max-width: 48rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p, td, th { color: $text; } .muted { color: $muted; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.figures div { background: $card; border: thin solid $hairline; border-radius: .75rem; padding: 1rem;
  flex: 1 1 12rem; }
.figures b { display: block; font-size: 1.75rem; }
table { border-collapse: collapse; width: 100%; background: $card; }
th, td { text-align: right; padding: .4rem .6rem; border-bottom: thin solid $hairline;
  font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; } th { color: $muted; font-weight: normal; }
</style></head><body>
<h1>$title</h1><p class="muted">$subtitle</p><div class="figures">$figures</div>
$tables<p class="muted">$foot</p></body></html>
""")


def unnamed(made: Bench) -> Bench:
    """The same benchmark with `Machine A`, `Machine B` in place of the machines' names."""
    names = {
        name: _tr("Machine {letter}").format(letter=ascii_uppercase[at % len(ascii_uppercase)])
        for at, name in enumerate(made.machines)
    }
    results = tuple(_renamed(result, names) for result in made.results)
    one = made.one and made.one | {"results": [_renamed(r, names) for r in made.one["results"]]}
    return replace(made, machines=tuple(names.values()), results=results, one=one)


def _renamed(result: Json, names: dict[str, str]) -> Json:
    """Its stages under other names."""
    stages = [one | {"machine": names.get(one["machine"], _tr("A machine"))} for one in result["stages"]]
    return result | {"stages": stages}


def headline(made: Bench) -> str:
    """`Guide on 3 machines`."""
    many = QCoreApplication.translate("Report", "%n machine(s)", "", len(made.machines))
    return _tr("{model} on {machines}").format(model=model_name(made.model), machines=many)


def subtitle(made: Bench) -> str:
    """When, and what was asked."""
    return _tr("{when}. {prompt} tokens in, {output} out, context {context}.").format(
        when=formats.exact(made.at),
        prompt=formats.number(made.prompt_tokens),
        output=formats.number(made.output_tokens),
        context=formats.number(made.context),
    )


def against(made: Bench, name: str) -> str:
    """How a figure stands to its forecast, in words."""
    beyond = made.beyond(name)
    if beyond is None or made.forecast is None:
        return _tr("no forecast")
    value = float(made.forecast[name])
    told, rough = _against(name, value, beyond), name == "decode_tok_s" and is_rough(value)
    return _tr("rough {forecast}").format(forecast=told) if rough else told


def _against(name: str, value: float, beyond: float) -> str:
    said = formats.seconds(value) if name == "ttft_s" else formats.speed(value)
    share, times = formats.percent(abs(beyond)), formats.number(1 + beyond, 1)
    if abs(beyond) < 0.005:
        return _tr("forecast {said}").format(said=said)
    if beyond >= 1:  # "522 % later" is a sum to do
        longer, times_faster = (
            _tr("forecast {said}, {times} times as long"),
            _tr("forecast {said}, {times} times as fast"),
        )
        return (longer if name == "ttft_s" else times_faster).format(said=said, times=times)
    if name == "ttft_s":
        later, sooner = (_tr("forecast {said}, {share} later"), _tr("forecast {said}, {share} sooner"))
        return (later if beyond > 0 else sooner).format(said=said, share=share)
    faster, slower = _tr("forecast {said}, {share} faster"), _tr("forecast {said}, {share} slower")
    return (faster if beyond > 0 else slower).format(said=said, share=share)


def figures(made: Bench) -> list[tuple[str, str, str]]:
    """The large figures: what, how much, and beside what."""
    speed, first, reads = (made.mean(n) for n in ("decode_tok_s", "ttft_s", "prefill_tok_s"))
    unknown = _tr("not measured")
    found = [
        (_tr("Speed"), formats.speed(speed) if speed else unknown, against(made, "decode_tok_s")),
        (_tr("First token"), formats.seconds(first) if first else unknown, against(made, "ttft_s")),
        (_tr("Reading"), formats.speed(reads) if reads else unknown, _spread(made)),
    ]
    for result in made.results[1:]:
        total = result["total_tok_s"]
        name = _tr("{many} at once").format(many=result["streams"])
        late = _tr("first token at most {time}").format(time=formats.seconds(result["ttft_p99_s"] or 0.0))
        found.append((name, formats.speed(total["mean"]) if total else unknown, late))
    return found + [_energy(made, *one) for one in made.energies]


def _energy(made: Bench, streams: int, token_joules: float, watts: float) -> tuple[str, str, str]:
    """What a token took; the answers' prompts are read for it, too."""
    name = _tr("Energy, {many} at once").format(many=streams) if streams > 1 else _tr("Energy")
    machines = QCoreApplication.translate("Report", "%n machine(s)", "", len(made.machines))
    drew = _tr("{watts} W on {machines}, as the system tells")
    words = drew.format(watts=formats.number(watts), machines=machines)
    return name, formats.token_energy(token_joules), words


def beside_one(made: Bench) -> str:
    """How the household stands to its host alone; empty where that was not measured."""
    times, alone = made.times("decode_tok_s"), made.one_mean("decode_tok_s")
    ours = made.mean("decode_tok_s")
    if times is None or alone is None or ours is None:
        return ""
    machines = QCoreApplication.translate("Report", "%n machine(s)", "", len(made.machines))
    told = _tr("{machines} together: {ours}. The host alone: {alone}. That is {times} times the speed.")
    words = told.format(
        machines=machines, ours=formats.speed(ours), alone=formats.speed(alone), times=formats.number(times, 2)
    )
    reads, one_reads = made.mean("prefill_tok_s"), made.one_mean("prefill_tok_s")
    if reads and one_reads:
        told = _tr("Reading: {ours} together, {alone} alone, {times} times.")
        words += " " + told.format(
            ours=formats.speed(reads), alone=formats.speed(one_reads), times=formats.number(reads / one_reads, 2)
        )
    if made.energies and made.one_energies:
        told = _tr("Energy: {ours} together, {alone} alone.")
        (_, ours_j, _), (_, alone_j, _) = made.energies[0], made.one_energies[0]
        words += " " + told.format(ours=formats.token_energy(ours_j), alone=formats.token_energy(alone_j))
    return words


def _spread(made: Bench) -> str:
    """How many runs, and how much they differed."""
    speed = made.alone.get("decode_tok_s") or {}
    runs = QCoreApplication.translate("Report", "%n run(s)", "", made.alone["runs"])
    if not speed.get("deviation"):
        return runs
    share = speed["deviation"] / speed["mean"]
    return _tr("{runs}, speed ± {share}").format(runs=runs, share=formats.percent(share))


def foot(made: Bench) -> str:
    """Who measured."""
    return _tr("Measured by Poolhouse {version}.").format(version=made.version)


def html(made: Bench) -> str:
    """The whole report. Machines are not named in it."""
    made = unnamed(made)
    boxes = "".join(
        f"<div>{escape(name)}<b>{escape(value)}</b><span class=muted>{escape(words)}</span></div>"
        for name, value, words in figures(made)
    )
    tables = "".join(_table(result) for result in made.results if result["stages"])
    colours = {name: getattr(LIGHT, name) for name in ("text", "muted", "window", "card", "hairline")}
    compared = f"<p>{escape(beside_one(made))}</p>" if made.one else ""
    return PAGE.substitute(
        colours,
        lang=_tr("en"),
        title=escape(headline(made)),
        subtitle=escape(subtitle(made)),
        figures=boxes,
        tables=compared + tables,
        foot=escape(foot(made)),
    )


def markdown(made: Bench) -> str:
    """The same report as text. Machines are not named in it."""
    made = unnamed(made)
    lines = [f"# {headline(made)}", "", subtitle(made), ""]
    lines += [f"- {name}: **{value}** ({words})" for name, value, words in figures(made)]
    lines += ["", beside_one(made)] if made.one else []
    for result in made.results:
        head, *rows = _stage_rows(result)
        lines += ["", f"## {_stage_title(result)}", ""]
        lines += [_line(head), _line(["---", *["--:"] * (len(head) - 1)]), *map(_line, rows)]
    return "\n".join([*lines, "", foot(made), ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_json(made: Bench) -> str:
    """All figures, for programs. Machines are not named in it."""
    return json.dumps(asdict(unnamed(made)), indent=2, ensure_ascii=False) + "\n"


def _stage_rows(result: Json) -> list[tuple[str, ...]]:
    """What each stage did for one answer, below its headings."""
    head = (_tr("Machine"), _tr("Layers"), _tr("Computes"), _tr("Waits"), _tr("Sent and received"))
    rows = [
        (
            one["machine"],
            f"{one['first'] + 1}–{one['last']}",
            formats.seconds(one["busy_s"]),
            formats.seconds(one["wait_s"]),
            formats.size(one["bytes_in"] + one["bytes_out"]),
        )
        for one in result["stages"]
    ]
    return [head, *rows]


def _stage_title(result: Json) -> str:
    if result["streams"] > 1:
        return _tr("The same with {many} at once").format(many=result["streams"])
    return _tr("What each machine did for one answer")


def _table(result: Json) -> str:
    head, *rows = _stage_rows(result)
    body = "".join(_row("td", row) for row in rows)
    return f"<h2>{escape(_stage_title(result))}</h2><table>{_row('th', head)}{body}</table>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


class BenchCard(QFrame):
    """Large figures with their forecasts; below, what each machine did."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._box: QVBoxLayout = column(gap=sizes.M)
        inner = card(gap=sizes.M)
        box = inner.layout()
        assert isinstance(box, QVBoxLayout)
        box.addLayout(self._box)
        self.setLayout(column(inner))

    def show_bench(self, made: Bench, compared: str = "") -> None:
        """Its figures. compared: a sentence about an earlier one."""
        clear(self._box)
        title = Elided(headline(made), "section")
        self._box.addLayout(column(title, paragraph(subtitle(made), "muted"), gap=sizes.XS))
        self._box.addLayout(Flow(*_figure_boxes(figures(made)), gap=sizes.XL))
        if made.one:
            self._box.addWidget(paragraph(beside_one(made)))
        if compared:
            self._box.addWidget(paragraph(compared))
        machines = together([_stage(one) for one in made.alone["stages"]])
        whole_s = _answer_seconds(made)
        if machines and whole_s:
            bars = Bars(self._theme)
            bars.show_lines(share_lines(machines, whole_s))
            self._box.addWidget(line())
            self._box.addWidget(label(self.tr("Of the time of one answer"), "muted"))
            self._box.addWidget(bars)


def _figure_boxes(told: list[tuple[str, str, str]]) -> list[QWidget]:
    """Large numbers, each between its name and what it stands beside; all as wide as the widest."""
    boxes = []
    for name, value, beside in told:
        box = QWidget()
        words = (label(name, "muted"), label(value, "figure"), label(beside, "caption"))
        for one in words:
            one.ensurePolished()
        box.setLayout(column(*words, gap=sizes.XS))
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        boxes.append(box)
    widest = max(box.sizeHint().width() for box in boxes)
    for box in boxes:
        box.setMinimumWidth(widest)
    return boxes


def _stage(told: dict[str, object]) -> StageDid:
    return StageDid(**told)  # type: ignore[arg-type]


def _answer_seconds(made: Bench) -> float:
    first, speed = made.mean("ttft_s"), made.mean("decode_tok_s")
    return (first or 0.0) + ((made.output_tokens - 1) / speed if speed else 0.0)


def save(made: Bench, file: Path, theme: Theme) -> None:
    """The report as the end of the file's name says, else as HTML. Raises BadInput where it cannot be
    written."""
    texts = {".md": markdown, ".json": as_json}
    try:
        if (end := file.suffix.lower()) == ".png":
            _picture(made, file, theme)
        else:
            file.write_text(texts.get(end, html)(made), encoding="utf-8")
    except OSError as error:
        raise BadInput("report_unwritten", path=str(file), why=os_cause(error)) from None


def _picture(made: Bench, file: Path, theme: Theme) -> None:
    page = QWidget()
    set_role(page, "page")
    shown = BenchCard(theme)
    shown.show_bench(unnamed(made))
    box = column(shown, label(foot(made), "caption"))
    box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
    page.setLayout(box)
    page.setFixedWidth(theme.px(sizes.CHAT_WIDTH))
    page.adjustSize()
    if not page.grab().save(str(file), "PNG"):
        raise OSError(0, "the picture could not be made")


def _tr(text: str) -> str:
    return QCoreApplication.translate("Report", text)
