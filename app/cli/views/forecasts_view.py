"""Forecast against fact, in two sentences."""

from __future__ import annotations

from rich.text import Text

from app.cli.shapes import Forecasts, Outcome
from app.cli.views.amounts import rate, seconds


def forecasts_view(last: Outcome | None, known: Forecasts) -> list[Text]:
    """How the last answer was forecast and how it was, and how far off forecasts are in general."""
    lines = [Text(_last(last))] if last else []
    if known.answers > 1 and known.ttft_error is not None and known.decode_error is not None:
        lines.append(
            Text(
                f"At the median of {known.answers} answers the forecast was off by "
                f"{_off(known.ttft_error)} for the first word and {_off(known.decode_error)} after it.",
                style="dim",
            )
        )
    return lines


def _off(error: float) -> str:
    """How far off; beyond the double of what came, how many times it was forecast."""
    return f"{100 * error:.0f} %" if error <= 1 else f"a factor of {1 + error:.0f}"


def _last(one: Outcome) -> str:
    tokens = "token" if one.prompt_tokens == 1 else "tokens"
    how = (
        " A machine was lost or changed meanwhile, which took part of that time."
        if one.interruptions
        else ""
    )
    return (
        f"Last answer, {one.prompt_tokens:,} {tokens} in and {one.output_tokens:,} out: "
        f"first word after {seconds(one.ttft_s)} (forecast for just this answer: {seconds(one.forecast_ttft_s)}), "
        f"then {rate(one.tok_s)} ({rate(one.forecast_tok_s)}).{how}"
    )
