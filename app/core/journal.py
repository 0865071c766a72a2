"""The events worth recording when a node's snapshot has changed. Pure: two snapshots in, reasons out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.core.errors import Fact, Reason

Json = dict[str, Any]

BROKEN_OFF, GOES_ON = "log_model_broken_off", "log_model_goes_on"
AT_ONCE_S = 0.05  # a machine noticed to be gone within this time was not silent before


def news(before: Json, now: Json) -> list[Reason]:
    """Return the events between two snapshots of one node, in the order in which they are reported."""
    return [
        *_machines(before, now),
        *_models(before, now),
        *_model(before.get("embeds"), now.get("embeds")),
        *_downloads(before, now),
        *_lending(before, now),
    ]


def recovered(model: str, answer: Json) -> list[Reason]:
    """Return the recoveries of an answer, reported with its last line: which machine was lost, and how long it took."""
    return [_recovered(model, recovery) for recovery in answer.get("recovered") or () if recovery["machine"]]


def _recovered(model: str, recovery: Json) -> Reason:
    noticed, seconds = recovery["detected_after_s"], round(recovery["recovered_after_s"], 1)
    if noticed < AT_ONCE_S:
        return _reason("log_model_mended", model=model, machine=recovery["machine"], seconds=seconds)
    return _reason(
        "log_model_mended_late", model=model, machine=recovery["machine"], seconds=seconds, noticed_s=round(noticed, 1)
    )


def goes_on_after(model: str, seconds: float) -> Reason:
    """Return the reason that a model answers again."""
    return _reason("log_model_goes_on_after", model=model, seconds=round(seconds, 1))


def kind_of(code: str) -> str:
    """Return the kind of an entry: `machine`, `model`, `lending` or `node`."""
    return code.split("_")[1]


def _machines(before: Json, now: Json) -> Iterator[Reason]:
    old, new = before.get("machines") or {}, now.get("machines") or {}
    for key in old.keys() - new.keys():
        yield _reason("log_machine_removed", machine=old[key]["name"])
    for key, machine in new.items():
        was, name = old.get(key), machine["name"]
        if was is None:
            yield _reason("log_machine_added", machine=name)
        elif was["name"] != name:
            yield _reason("log_machine_renamed", before=was["name"], machine=name)
        if machine.get("this") or machine["online"] == bool(was and was["online"]):
            continue
        if machine["online"]:
            yield _reason("log_machine_came", machine=name)
        elif machine.get("reason"):
            yield _reason("log_machine_lost", machine=name, why=_reason_of(machine))
        else:
            yield _reason("log_machine_left", machine=name)


def _models(before: Json, now: Json) -> Iterator[Reason]:
    """Yield the events of models that write. A model that went as another came was replaced by it, which says
    enough."""
    old, new = _written(before), _written(now)
    came = [name for name in new if name not in old]
    for name in old:
        if name not in new and not came:
            yield from _model(old[name], None)
    for name, model in new.items():
        yield from _model(old.get(name), model)
        yield from _replicas(old.get(name) or {}, model)


def _written(snapshot: Json) -> dict[str, Json]:
    """Return all loaded models that write, by name."""
    every = [snapshot.get("loaded"), *(snapshot.get("beside") or ())]
    return {loaded["model"]: loaded for loaded in every if loaded}


def _model(before: Json | None, now: Json | None) -> Iterator[Reason]:
    """Yield the event of one model. A load that fails reports its own reason: the snapshot only shows that it is
    gone."""
    old, new = before or {}, now or {}
    was, state = old.get("state"), new.get("state")
    same = old.get("model") == new.get("model") and was == state
    if was == "ready" and state is None:
        yield _reason("log_model_unloaded", model=old["model"])
    elif same:
        return
    elif state == "loading":
        many = len(new.get("machines") or ())
        code = "log_model_begun" if many > 1 else "log_model_alone"
        yield _reason(code, model=new["model"], machines=many)
    elif state == "recovering":
        yield _reason(BROKEN_OFF, model=new["model"], why=_reason_of(new))
    elif state == "ready" and was == "recovering":
        yield _reason(GOES_ON, model=new["model"])
    elif state == "ready":
        seconds = round(new.get("loaded_seconds") or 0.0, 1)
        yield _reason("log_model_ready", model=new["model"], seconds=seconds)
    elif state == "lost":
        yield _reason("log_model_lost", model=new["model"], why=_reason_of(new))


def _replicas(old: Json, new: Json) -> Iterator[Reason]:
    """Yield the machines that are gone, or back, of a model that goes on answering."""
    if not old.get("state") == new.get("state") == "ready":
        return
    pairs = zip(old.get("replicas") or (), new.get("replicas") or (), strict=False)
    for was, replica in pairs:
        if was["machine"] != replica["machine"] or (was["state"] == "lost") == (replica["state"] == "lost"):
            continue
        code = "log_model_without" if replica["state"] == "lost" else "log_model_with"
        yield _reason(code, model=new["model"], machine=replica["machine"])


def _downloads(before: Json, now: Json) -> Iterator[Reason]:
    old = before.get("downloads") or {}
    for key, download in (now.get("downloads") or {}).items():
        was, state = (old.get(key) or {}).get("state"), download["state"]
        if was is None or was == state:
            continue  # of before this start, or begun just now: its end is what matters
        if state == "done":
            yield _reason("log_model_downloaded", model=download["name"])
        elif state == "failed":
            yield _reason("log_model_broken", model=download["name"], why=_reason_of(download))


LENDS = ("ready", "lending", "working")
ENDS = {"paused": "log_lending_paused", "draining": "log_lending_draining"}


def _lending(before: Json, now: Json) -> Iterator[Reason]:
    old, new = _of(before), _of(now)
    was, state = old.get("state"), new.get("state")
    if state in LENDS and was is not None and was not in LENDS:
        yield _reason("log_lending_on")
    elif state == "off" and was not in ("off", None):
        yield _reason("log_lending_off")
    elif state in ENDS and (state, _why(old)) != (was, _why(new)):
        yield _reason(ENDS[state], why=_reason_of(new))
    users, known = set(new.get("used_by") or ()), set(old.get("used_by") or ())
    for name in sorted(users - known):
        yield _reason("log_lending_used", machine=name)
    for name in sorted(known - users):
        yield _reason("log_lending_unused", machine=name)


def _why(lending: Json) -> str:
    """Return the code of the reason, since the figures in the sentence may change every minute."""
    return str(lending.get("code") or lending.get("reason"))


def _of(snapshot: Json) -> Json:
    return (snapshot.get("node") or {}).get("lending") or {}


def _reason_of(reason: Json) -> Fact:
    """Return the reason of the state of a machine, a model or a download; an empty text where none is known."""
    facts = reason.get("reason_facts")
    return Reason.from_json(facts) if facts else reason.get("reason") or ""


def _reason(code: str, **facts: Fact) -> Reason:
    return Reason(code, facts)
