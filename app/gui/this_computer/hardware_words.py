"""What this computer has, as lines of name and text, from `GET /machine`; and its speed. Pure."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication

from app.gui.look import formats
from app.gui.look.sentences import fact_here, here, model_name

Json = dict[str, Any]

ENGINES = {"llamacpp": "llama.cpp", "pytorch": "PyTorch", "apple": "MLX"}
TELLING = ("AVX512", "AVX2", "AVX", "SVE", "NEON")  # of a processor's features, the best one


def lines(machine: Json) -> list[tuple[str, str]]:
    """Name and text of each fact, in a person's order."""
    tr = QCoreApplication.translate
    memory, disk = machine.get("memory") or {}, machine.get("disk") or {}
    amounts = tr("Hardware", "{free} free of {total}")
    found = [
        (tr("Hardware", "System"), str(machine.get("system") or "")),
        (tr("Hardware", "Processor"), _processor(machine)),
        (tr("Hardware", "Temperature"), _heat(machine.get("hottest_c"))),
        (tr("Hardware", "Memory"), amounts.format(**_amounts(memory))),
        (tr("Hardware", "Graphics"), _graphics(machine)),
        (tr("Hardware", "Engine"), "\n".join(map(_engine, machine.get("engines") or []))),
        (tr("Hardware", "Disk of the models"), amounts.format(**_amounts(disk))),
        (tr("Hardware", "Models are kept in"), str(disk.get("folder") or "")),
    ]
    return [(name, text) for name, text in found if text]


def speed_words(answer: Json, ident: str) -> str | None:
    """From `POST /speeds`: what the measured layers make. None: not measured."""
    speed = (answer.get("speeds") or {}).get(ident)
    layers, rows = int(answer.get("n_layers") or 0), int(answer.get("batch_rows") or 0)
    if not speed or not layers or not rows:
        return None
    token_s = speed["step_s"] + layers * speed["layer_s"] + speed["head_s"]
    prefill_s = speed["step_s"] + layers * speed["chunk_s"]
    text = QCoreApplication.translate(
        "Hardware", "{model}: {layer} a layer. Alone about {rate}, prompts about {prefill}."
    )
    return text.format(
        model=model_name(str(answer.get("model"))),
        layer=formats.seconds(speed["layer_s"]),
        rate=formats.speed(1 / token_s),
        prefill=formats.speed(rows / prefill_s),
    )


def _heat(hottest_c: float | None) -> str:
    """Of the processor; nothing where the system does not tell."""
    return "" if hottest_c is None else f"{formats.number(hottest_c)} °C"


def _amounts(amounts: Json) -> dict[str, str]:
    return {
        "free": formats.size(amounts.get("free_bytes") or 0),
        "total": formats.size(amounts.get("total_bytes") or 0),
    }


def _processor(machine: Json) -> str:
    cores, threads = (int(machine.get("cores") or 0), int(machine.get("threads_now") or machine.get("threads") or 0))
    text = QCoreApplication.translate("Hardware", "{name}, %n core(s), of which {threads} compute", "", cores)
    if cores == threads:
        text = QCoreApplication.translate("Hardware", "{name}, %n core(s)", "", cores)
    return text.format(name=machine.get("processor"), threads=threads)


def unused_graphics(machine: Json) -> str:
    """That a card is there but not used, and what helps; empty where there is none."""
    unused = machine.get("unused_graphics") or {}
    return " ".join(filter(None, (here(str(unused.get(one) or "")) for one in ("reason", "cure"))))


def _graphics(machine: Json) -> str:
    """What engines find; every one computes on the processor only, and that is said."""
    found = {
        f"{device.get('description') or device.get('name')} "
        f"({formats.size(device.get('total_bytes') or 0)}, {device.get('api')})"
        for engine in machine.get("engines") or []
        for device in engine.get("devices") or []
        if device.get("kind") != "cpu"
    }
    cards, unused = ", ".join(sorted(found)), unused_graphics(machine)
    if unused:
        return f"{cards}\n{unused}".strip()
    if not found:
        return QCoreApplication.translate("Hardware", "None that is used: this version computes with the processor")
    text = QCoreApplication.translate(
        "Hardware", "{cards}. Not used yet: this version computes with the processor, which is slower."
    )
    return text.format(cards=cards)


def _engine(engine: Json) -> str:
    name = ENGINES.get(str(engine.get("name")), str(engine.get("name")))
    if engine.get("missing"):
        text = QCoreApplication.translate("Hardware", "{name} cannot be used: {why}.")
        return text.format(name=name, why=fact_here("why", str(engine["missing"])))
    best = [one for one in TELLING if one in (engine.get("features") or [])][:1]
    return " ".join([name, str(engine.get("version") or ""), *(f"({one})" for one in best)])
