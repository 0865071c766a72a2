"""The card that shows a benchmark, and its HTML, PNG, Markdown and JSON reports, which omit machine names."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template, ascii_uppercase
from typing import Literal

import msgspec
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import BadInput
from app.core.reasons import os_cause
from app.gui.activity.bench_store import Bench, Energy, Result
from app.gui.activity.journal_feed import by_machine
from app.gui.activity.timeline import Bars, share_lines
from app.gui.look import formats, sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import LIGHT, Theme, set_role
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import card, clear_layout, column, line

SUFFIXES = (".html", ".png", ".md", ".json")  # the formats that `save` supports
SAME_SHARE = 0.005  # smaller differences from the forecast are ignored

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


def anonymized(bench: Bench) -> Bench:
    """Return a copy of the benchmark in which machine names are replaced by `Machine A`, `Machine B` and so on."""
    names = {
        name: _tr("Machine {letter}").format(letter=ascii_uppercase[n % len(ascii_uppercase)])
        for n, name in enumerate(bench.machines)
    }
    changed = msgspec.structs.replace(
        bench, machines=list(names.values()), results=[_renamed(result, names) for result in bench.results]
    )
    if bench.one is None:
        return changed
    host = msgspec.structs.replace(bench.one, results=[_renamed(result, names) for result in bench.one.results])
    return msgspec.structs.replace(changed, one=host)


def _renamed(result: Result, names: dict[str, str]) -> Result:
    stages = [
        msgspec.structs.replace(stage, machine=names.get(stage.machine, _tr("A machine"))) for stage in result.stages
    ]
    return msgspec.structs.replace(result, stages=stages)


def headline(bench: Bench) -> str:
    """Return the headline, such as `Guide on 3 machines`."""
    return _tr("{model} on {machines}").format(model=model_name(bench.model), machines=_n_machines(bench))


def _n_machines(bench: Bench) -> str:
    return QCoreApplication.translate("Report", "%n machine(s)", "", len(bench.machines))


def subtitle(bench: Bench) -> str:
    """Return a line with the date, the numbers of prompt and output tokens, and the context length."""
    return _tr("{when}. {prompt} prompt tokens, {output} answer tokens, context {context}.").format(
        when=formats.exact(bench.at),
        prompt=formats.number(bench.prompt_tokens),
        output=formats.number(bench.output_tokens),
        context=formats.number(bench.context),
    )


def compared_with_forecast(bench: Bench, name: Literal["ttft_s", "decode_tok_s"]) -> str:
    """Describe how a metric compares with its forecast."""
    error = bench.forecast_error(name)
    if error is None or bench.forecast is None:
        return _tr("no forecast")
    if name == "ttft_s":
        return _first_token_against(bench.forecast.ttft_s, error)
    return _speed_against(bench.forecast.decode_tok_s, error)


def _first_token_against(forecast_s: float, error: float) -> str:
    if abs(error) < SAME_SHARE:
        words = _tr("forecast: {said}")
    elif error >= 1:  # a factor is easier to grasp than "522 % later"
        words = _tr("{times} times as long as forecast ({said})")
    else:
        words = (
            _tr("{share} later than forecast ({said})") if error > 0 else _tr("{share} sooner than forecast ({said})")
        )
    return _with_figures(words, formats.seconds(forecast_s), error)


def _speed_against(forecast_tok_s: float, error: float) -> str:
    if abs(error) < SAME_SHARE:
        words = _tr("forecast: {said}")
    elif error >= 1:
        words = _tr("{times} times as fast as forecast ({said})")
    else:
        words = (
            _tr("{share} faster than forecast ({said})") if error > 0 else _tr("{share} slower than forecast ({said})")
        )
    return _with_figures(words, formats.speed(forecast_tok_s), error)


def _with_figures(words: str, forecast: str, error: float) -> str:
    return words.format(said=forecast, share=formats.percent(abs(error)), times=formats.number(1 + error, 1))


def figures(bench: Bench) -> list[tuple[str, str, str]]:
    """Return the headline figures as (name, value, caption)."""
    speed, first, reads = bench.mean("decode_tok_s"), bench.mean("ttft_s"), bench.mean("prefill_tok_s")
    unknown = _tr("not measured")
    rows = [
        (_tr("Speed"), formats.speed(speed) if speed else unknown, compared_with_forecast(bench, "decode_tok_s")),
        (_tr("First token"), formats.seconds(first) if first else unknown, compared_with_forecast(bench, "ttft_s")),
        (_tr("Reading"), formats.speed(reads) if reads else unknown, _spread(bench)),
    ]
    for result in bench.results[1:]:
        total = result.mean("total_tok_s")
        name = _tr("{many} simultaneous answers").format(many=result.streams)
        late = _tr("first token within {time}").format(time=formats.seconds(result.ttft_p99_s or 0.0))
        rows.append((name, formats.speed(total) if total else unknown, late))
    return rows + [_energy(bench, result.streams, result.energy) for result in bench.results if result.energy]


def _energy(bench: Bench, streams: int, energy: Energy) -> tuple[str, str, str]:
    """Return the energy figure in joules per generated token, including the energy for processing the prompt."""
    name = _tr("Energy, {many} simultaneous answers").format(many=streams) if streams > 1 else _tr("Energy")
    drew = _tr("{watts} W on {machines}, as reported by the system")
    words = drew.format(watts=formats.number(energy.watts), machines=_n_machines(bench))
    return name, formats.token_energy(energy.joules_per_token), words


def compared_with_host(bench: Bench) -> str:
    """Return a sentence that compares the household with its host alone, or "" if the host alone was not measured."""
    times, ours, alone = bench.speedup("decode_tok_s"), bench.mean("decode_tok_s"), bench.host_mean("decode_tok_s")
    if bench.one is None or times is None or ours is None or alone is None:
        return ""
    sentences = [
        _tr("{machines} together: {ours}. The host alone: {alone}. The pool is {times} times as fast.").format(
            machines=_n_machines(bench),
            ours=formats.speed(ours),
            alone=formats.speed(alone),
            times=formats.number(times, 2),
        )
    ]
    reads, host_reads = bench.mean("prefill_tok_s"), bench.host_mean("prefill_tok_s")
    if reads and host_reads:
        sentences.append(
            _tr(
                "Reading the prompt: {ours} with all machines, {alone} with only the host ({times} times as fast)."
            ).format(
                ours=formats.speed(reads), alone=formats.speed(host_reads), times=formats.number(reads / host_reads, 2)
            )
        )
    energy, host_energy = _first_energy(bench.results), _first_energy(bench.one.results)
    if energy and host_energy:
        words = _tr("Energy: {ours} with all machines, {alone} with only the host.")
        ours_j, alone_j = (formats.token_energy(drawn.joules_per_token) for drawn in (energy, host_energy))
        sentences.append(words.format(ours=ours_j, alone=alone_j))
    return " ".join(sentences)


def _first_energy(results: Sequence[Result]) -> Energy | None:
    return next((result.energy for result in results if result.energy), None)


def _spread(bench: Bench) -> str:
    """Return a text with the number of runs and the relative standard deviation of their speeds."""
    speed = bench.single.decode_tok_s
    runs = QCoreApplication.translate("Report", "%n run(s)", "", bench.single.runs)
    if speed is None or not speed.deviation:
        return runs
    return _tr("{runs}, with speeds varying by ±{share}").format(
        runs=runs, share=formats.percent(speed.deviation / speed.mean)
    )


def footer(bench: Bench) -> str:
    """Return the line that names the Poolhouse version used for the benchmark."""
    return _tr("Measured by Poolhouse {version}.").format(version=bench.version)


def html(bench: Bench) -> str:
    """Return the report as a self-contained web page without machine names."""
    bench = anonymized(bench)
    boxes = "".join(
        f"<div>{escape(name)}<b>{escape(value)}</b><span class=muted>{escape(words)}</span></div>"
        for name, value, words in figures(bench)
    )
    tables = "".join(_table(result) for result in bench.results if result.stages)
    colors = {name: getattr(LIGHT, name) for name in ("text", "muted", "window", "card", "hairline")}
    compared = f"<p>{escape(compared_with_host(bench))}</p>" if bench.one else ""
    return PAGE.substitute(
        colors,
        lang=_tr("en"),
        title=escape(headline(bench)),
        subtitle=escape(subtitle(bench)),
        figures=boxes,
        tables=compared + tables,
        foot=escape(footer(bench)),
    )


def markdown(bench: Bench) -> str:
    """Return the report as Markdown without machine names."""
    bench = anonymized(bench)
    lines = [f"# {headline(bench)}", "", subtitle(bench), ""]
    lines += [f"- {name}: **{value}** ({words})" for name, value, words in figures(bench)]
    lines += ["", compared_with_host(bench)] if bench.one else []
    for result in bench.results:
        head, *rows = _stage_rows(result)
        lines += ["", f"## {_stage_title(result)}", ""]
        lines += [_line(head), _line(["---", *["--:"] * (len(head) - 1)]), *map(_line, rows)]
    return "\n".join([*lines, "", footer(bench), ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_json(bench: Bench) -> str:
    """Return the complete benchmark as JSON without machine names."""
    return msgspec.json.format(msgspec.json.encode(anonymized(bench)), indent=2).decode() + "\n"


def _stage_rows(result: Result) -> list[tuple[str, ...]]:
    """Return a table with the work of each stage for one answer. The first row contains the headings."""
    head = (_tr("Machine"), _tr("Layers"), _tr("Computes"), _tr("Waits"), _tr("Sent and received"))
    rows = [
        (
            stage.machine,
            f"{stage.first + 1}–{stage.last}",
            formats.seconds(stage.busy_s),
            formats.seconds(stage.wait_s),
            formats.size(stage.bytes_in + stage.bytes_out),
        )
        for stage in result.stages
    ]
    return [head, *rows]


def _stage_title(result: Result) -> str:
    if result.streams > 1:
        return _tr("The same with {many} simultaneous answers").format(many=result.streams)
    return _tr("What each machine did for one answer")


def _table(result: Result) -> str:
    head, *rows = _stage_rows(result)
    body = "".join(_row("td", row) for row in rows)
    return f"<h2>{escape(_stage_title(result))}</h2><table>{_row('th', head)}{body}</table>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


class BenchCard(QFrame):
    """A card with the headline figures, their forecasts, and each machine's share of the work.

    PNG reports contain the same card.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._box: QVBoxLayout = column(gap=sizes.M)
        inner = card(gap=sizes.M)
        box = inner.layout()
        assert isinstance(box, QVBoxLayout)
        box.addLayout(self._box)
        self.setLayout(column(inner))

    def show_bench(self, bench: Bench, compared: str = "") -> None:
        """Show a benchmark.

        compared: a sentence that compares it with an earlier benchmark, or "".
        """
        clear_layout(self._box)
        title = ElidedLabel(headline(bench), "section")
        self._box.addLayout(column(title, paragraph(subtitle(bench), "muted"), gap=sizes.XS))
        self._box.addLayout(Flow(*_figure_boxes(figures(bench)), gap=sizes.XL))
        if bench.one:
            self._box.addWidget(paragraph(compared_with_host(bench)))
        if compared:
            self._box.addWidget(paragraph(compared))
        machines = by_machine(bench.single.stages)
        whole_s = _answer_seconds(bench)
        if machines and whole_s:
            bars = Bars(self._theme)
            bars.show_lines(share_lines(machines, whole_s))
            self._box.addWidget(line())
            self._box.addWidget(label(self.tr("Share of the time for an answer"), "muted"))
            self._box.addWidget(bars)


def _figure_boxes(rows: list[tuple[str, str, str]]) -> list[QWidget]:
    """Return a box with the name, value and caption of each figure. All boxes have the width of the widest one."""
    boxes = []
    for name, value, below in rows:
        box = QWidget()
        words = (label(name, "muted"), label(value, "figure"), label(below, "caption"))
        for text in words:
            text.ensurePolished()
        box.setLayout(column(*words, gap=sizes.XS))
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        boxes.append(box)
    widest = max(box.sizeHint().width() for box in boxes)
    for box in boxes:
        box.setMinimumWidth(widest)
    return boxes


def _answer_seconds(bench: Bench) -> float:
    first, speed = bench.mean("ttft_s"), bench.mean("decode_tok_s")
    return (first or 0.0) + ((bench.output_tokens - 1) / speed if speed else 0.0)


def save(bench: Bench, file: Path, theme: Theme) -> None:
    """Write the report in the format of the file suffix, or as HTML if the suffix is unknown. Raises BadInput."""
    texts = {".md": markdown, ".json": as_json}
    try:
        if (end := file.suffix.lower()) == ".png":
            _picture(bench, file, theme)
        else:
            file.write_text(texts.get(end, html)(bench), encoding="utf-8")
    except OSError as error:
        raise BadInput("report_unwritten", path=str(file), why=os_cause(error)) from None


def _picture(bench: Bench, file: Path, theme: Theme) -> None:
    page = QWidget()
    set_role(page, "page")
    shown = BenchCard(theme)
    shown.show_bench(anonymized(bench))
    box = column(shown, label(footer(bench), "caption"))
    box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
    page.setLayout(box)
    page.setFixedWidth(theme.px(sizes.CHAT_WIDTH))
    page.adjustSize()
    if not page.grab().save(str(file), "PNG"):
        raise OSError(0, "the picture could not be made")


def _tr(text: str) -> str:
    return QCoreApplication.translate("Report", text)
