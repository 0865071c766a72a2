"""Reads a page as Prometheus does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


def samples(page: str, name: str, **labels: str) -> list[float]:
    """The values of the series of this name that have these labels, among others."""
    return [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == f"poolhouse_{name}" and labels.items() <= sample.labels.items()
    ]
