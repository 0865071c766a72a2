"""The report: all measurements as JSON, and their figures as Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.bars import Result
from bench.figures import Figures, Summary, agreement, percentile, summaries
from bench.rounds import Measured, Tuned

UNITS = {
    "ttft_s": "time to first token, s",
    "decode_ms": "one stream, ms/token",
    "total_tok_s": "several streams with their prompts, tok/s",
    "steady_tok_s": "several streams, all decoding, tok/s",
    "ttft_p99_s": "several streams, time to first token, 99th percentile, s",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def with_spread(value: Summary) -> str:
    """Format a summary as `81.3 (79.9–84.0, ±2.1 %)`: the mean, the range, and the standard deviation."""
    share = 100 * value.stdev / value.mean if value.mean else 0.0
    return f"{value.mean:.4g} ({value.low:.4g}–{value.high:.4g}, ±{share:.1f} %)"


def figures_table(rounds: Mapping[str, Sequence[Figures]]) -> str:
    by_side = {name: summaries(figures) for name, figures in rounds.items()}
    names = dict.fromkeys(figure for figures in by_side.values() for figure in figures)
    rows = [[UNITS.get(n, n), *(with_spread(s[n]) if n in s else "–" for s in by_side.values())] for n in names]
    return table(["mean (lowest–highest, ± deviation)", *by_side], rows)


def bars_table(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        bar, ratio = result.bar, result.ratio
        sign = "≥" if bar.at_least else "≤"
        limit = f"{sign} {bar.limit}" + (f" (aim {bar.aim})" if bar.aim else "")
        value = f"{ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f}, {ratio.n_runs})"
        rows.append([f"{bar.words}, to {bar.other}", value, limit, "yes" if result.holds else "NO"])
    return table(["ratio", "median (lowest–highest, rounds)", "bar", "holds"], rows)


def stage_rows(measured: Measured) -> list[list[str]]:
    """Return the compute time, wait time and bytes per token of each stage, for a single stream over all rounds."""
    totals: dict[tuple[str, int, int], list[float]] = {}
    n_tokens = 0
    for answered in measured.alone:
        n_tokens += answered.line.n_tokens
        for stage in answered.stages[0] if answered.stages else []:
            key = (str(stage["machine"]), int(stage["first"]), int(stage["last"]))
            new = [stage[name] for name in ("busy_s", "wait_s", "bytes_in", "bytes_out")]
            totals[key] = [a + b for a, b in zip(totals.get(key, [0.0] * 4), new, strict=True)]
    return [
        [f"{machine} {first}–{last}", f"{t[0] / n_tokens * 1e3:.2f}", f"{t[1] / n_tokens * 1e3:.2f}",
         f"{t[2] / n_tokens:.0f}", f"{t[3] / n_tokens:.0f}"]
        for (machine, first, last), t in totals.items()
    ]  # fmt: skip


def cpu_rows(measured: Mapping[str, Measured]) -> list[list[str]]:
    """Return the mean CPU seconds of each process per round, for a single stream and for several."""
    rows = []
    for side, measurement in measured.items():
        names = dict.fromkeys(name for a in measurement.alone for name in a.cpu_seconds)
        for name in names:
            kinds = [measurement.alone, measurement.many]
            spent = [[a.cpu_seconds.get(name, 0.0) for a in kind] for kind in kinds]
            means = [f"{sum(each) / len(each):.2f}" if each else "–" for each in spent]
            rows.append([side, name, *means])
    return rows


def first_tokens(measured: Mapping[str, Measured]) -> dict[str, float]:
    """Return the 99th percentile of the time to first token, over all streams of all rounds, for each side."""
    pooled = {n: [t for a in m.many for t in a.line.first_seconds] for n, m in measured.items()}
    return {name: percentile(values, 0.99) for name, values in pooled.items() if values}


def agreements(measured: Mapping[str, Measured]) -> list[dict[str, Any]]:
    """Return, for each round, how many greedy tokens the other sides have in common with `whole`."""
    if "whole" not in measured:
        return []
    rest = {name: m for name, m in measured.items() if name != "whole"}
    return [
        {name: agreement(base.ids[0], m.alone[n].ids[0]) for name, m in rest.items()}
        for n, base in enumerate(measured["whole"].alone)
    ]


def sides_markdown(
    title: str, measured: Mapping[str, Measured], tuned: Mapping[str, Tuned],
    results: Sequence[Result],
) -> str:  # fmt: skip
    rounds = {name: measurement.figures() for name, measurement in measured.items()}
    parts = [f"## {title}\n", figures_table(rounds)]
    pooled = ", ".join(f"{n} {v:.2f}" for n, v in first_tokens(measured).items())
    if pooled:
        parts.append(f"Time to first token over all streams, 99th percentile, s: {pooled}\n")
    if results:
        parts.append(bars_table(results))
    settings = [[n, json.dumps(t.alone), json.dumps(t.many)] for n, t in tuned.items()]
    parts.append(table(["side", "setting, one stream", "setting, several"], settings))
    if "pool" in measured and (rows := stage_rows(measured["pool"])):
        head = ["stage", "compute ms/token", "wait ms/token", "bytes in/token", "bytes out/token"]
        parts.append("A single stream, prompt included:\n\n" + table(head, rows))
    head = ["side", "process", "CPU s, one stream", "CPU s, several"]
    parts.append(table(head, cpu_rows(measured)))
    return "\n".join(parts)


def write(out: Path, facts: dict[str, Any], sections: Mapping[str, Any], texts: list[str]) -> None:
    """Write report.json and report.md, each one atomically."""
    out.mkdir(parents=True, exist_ok=True)
    body = json.dumps({"facts": facts, "parts": sections}, indent=1, default=asdict)
    lines = [f"- {key}: {value}" for key, value in facts.items()]
    text = "# Benchmark\n\n" + "\n".join(lines) + "\n\n" + "\n".join(texts)
    for name, content in (("report.json", body), ("report.md", text)):
        part = out / f"{name}.part"
        part.write_text(content, encoding="utf-8")
        part.replace(out / name)
