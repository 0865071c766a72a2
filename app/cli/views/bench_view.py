"""The figures of a benchmark as two small tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.cli import safe_text
from app.cli.views.amounts import milliseconds, seconds, size
from app.cli.views.layer_strip import in_words

Json = dict[str, Any]
ABSENT = "not measured"


def bench_view(report: Json) -> RenderableType:
    """Speed for each number of streams; then what each stage did."""
    title = (
        f"{safe_text.name(report['model'])} · prompt {report['prompt_tokens']} · "
        f"output {report['output_tokens']} tokens"
    )
    rows: list[RenderableType] = [Text(title, style="bold"), _speeds(report)]
    for result in report["results"]:
        if result["stages"]:
            together = f"{result['streams']} at once, " if result["streams"] > 1 else ""
            heading = Text(f"Stages, {together}mean of an answer", style="dim")
            rows += [Text(), heading, _stages(result["stages"])]
    return Group(*rows, *_warnings(report))


def _table(*headers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, justify="right", overflow="fold")
    return table


def _speeds(report: Json) -> Table:
    table = _table("At once", "First token", "p99", "tok/s each", "tok/s total", "Runs")
    for result in report["results"]:
        p99 = result["ttft_p99_s"]
        table.add_row(
            str(result["streams"]),
            _spread(result["ttft_s"], " s", 2),
            seconds(p99) if p99 is not None else ABSENT,
            _spread(result["decode_tok_s"], "", 1),
            _spread(result["total_tok_s"], "", 1),
            str(result["runs"]),
        )
    return table


def _spread(value: Json | None, unit: str, digits: int) -> str:
    if value is None:
        return ABSENT
    mean = f"{value['mean']:.{digits}f}"
    if value["deviation"] is None:
        return mean + unit
    return f"{mean} ± {value['deviation']:.{digits}f}{unit}"


def _stages(stages: list[Json]) -> Table:
    table = _table("Machine", "Layers", "Compute", "Wait", "In", "Out")
    table.columns[0].justify = "left"
    for stage in stages:
        table.add_row(
            safe_text.name(stage["machine"]),
            in_words([(stage["first"], stage["last"])]),
            milliseconds(stage["busy_s"]) if stage["busy_s"] < 1 else seconds(stage["busy_s"]),
            milliseconds(stage["wait_s"]) if stage["wait_s"] < 1 else seconds(stage["wait_s"]),
            size(round(stage["bytes_in"])),
            size(round(stage["bytes_out"])),
        )
    return table


def _warnings(report: Json) -> list[Text]:
    """Return what makes these figures less reliable than they seem."""
    said = []
    for result in report["results"]:
        subject = f"With {result['streams']} at once"
        if result["reused_tokens"]:
            said.append(f"{subject} {result['reused_tokens']} prompt tokens were reused, not computed.")
        if min(result["tokens"]) < report["output_tokens"]:
            said.append(f"{subject} an answer ended early, after {min(result['tokens'])} tokens.")
        if result["recoveries"]:
            said.append(f"{subject} the pool recovered {result['recoveries']} times.")
    return [Text(sentence, style="yellow") for sentence in said]
