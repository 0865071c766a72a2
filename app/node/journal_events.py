"""Derives journal events from two successive snapshots of a node.

Several services determine the state of a model, a machine or a lending rule, and none of them sees every change.
Comparing snapshots finds each change exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.api.downloads import Download
from app.api.plans import LoadedEmbedder, LoadedModel
from app.api.responses import AnswerRecovery
from app.api.snapshot import Lending, Machine, Snapshot
from app.core.errors import Fact, Reason

INTERRUPTED, ANSWERS_AGAIN = "log_model_broken_off", "log_model_goes_on"
IMMEDIATE_S = 0.05  # a loss detected within this time was not preceded by silence


def events_between(before: Snapshot, now: Snapshot) -> list[Reason]:
    """Return the events between two snapshots of a node, in the order to report them."""
    return [
        *_machines(before, now),
        *_models(before, now),
        *_model(before.embeds, now.embeds),
        *_downloads(before, now),
        *_lending(before, now),
    ]


def recovery_events(model: str, recoveries: Iterable[AnswerRecovery]) -> list[Reason]:
    """Return an event for each recovery of an answer, with the lost machine and the duration."""
    return [_recovery_event(model, recovery) for recovery in recoveries if recovery.machine]


def _recovery_event(model: str, recovery: AnswerRecovery) -> Reason:
    noticed, seconds = recovery.detected_after_s, round(recovery.recovered_after_s, 1)
    if noticed < IMMEDIATE_S:
        return _reason("log_model_mended", model=model, machine=recovery.machine, seconds=seconds)
    return _reason(
        "log_model_mended_late", model=model, machine=recovery.machine, seconds=seconds, noticed_s=round(noticed, 1)
    )


def answers_again_after(model: str, seconds: float) -> Reason:
    """Return the event for a model that answers again after an interruption of this duration."""
    return _reason("log_model_goes_on_after", model=model, seconds=round(seconds, 1))


def kind_of(code: str) -> str:
    """Return the kind of an event: `machine`, `model`, `lending` or `node`."""
    return code.split("_")[1]


def _machines(before: Snapshot, now: Snapshot) -> Iterator[Reason]:
    old, new = before.machines, now.machines
    for key in old.keys() - new.keys():
        yield _reason("log_machine_removed", machine=old[key].name)
    for key, machine in new.items():
        was, name = old.get(key), machine.name
        if was is None:
            yield _reason("log_machine_added", machine=name)
        elif was.name != name:
            yield _reason("log_machine_renamed", before=was.name, machine=name)
        if machine.this or machine.online == bool(was and was.online):
            continue
        if machine.online:
            yield _reason("log_machine_came", machine=name)
        elif machine.reason:
            yield _reason("log_machine_lost", machine=name, why=_reason_of(machine))
        else:
            yield _reason("log_machine_left", machine=name)


def _models(before: Snapshot, now: Snapshot) -> Iterator[Reason]:
    """Yield the events of chat models. If a new model replaces another, only the new one is reported."""
    old, new = ({model.model: model for model in snapshot.models} for snapshot in (before, now))
    came = [name for name in new if name not in old]
    for name in old:
        if name not in new and not came:
            yield from _model(old[name], None)
    for name, model in new.items():
        yield from _model(old.get(name), model)
        yield from _replicas(old.get(name), model)


def _model(old: LoadedModel | LoadedEmbedder | None, new: LoadedModel | LoadedEmbedder | None) -> Iterator[Reason]:
    """Yield an event if the state of the model has changed. Failed loads are reported elsewhere."""
    if new is None:
        if old is not None and old.state == "ready":
            yield _reason("log_model_unloaded", model=old.model)
        return
    if old is not None and (old.model, old.state) == (new.model, new.state):
        return
    if new.state == "loading":
        many = len(new.machines)
        yield _reason("log_model_begun" if many > 1 else "log_model_alone", model=new.model, machines=many)
    elif new.state == "recovering":
        yield _reason(INTERRUPTED, model=new.model, why=_reason_of(new))
    elif new.state == "ready" and old is not None and old.state == "recovering":
        yield _reason(ANSWERS_AGAIN, model=new.model)
    elif new.state == "ready":
        yield _reason("log_model_ready", model=new.model, seconds=round(new.loaded_seconds, 1))
    elif new.state == "lost":
        yield _reason("log_model_lost", model=new.model, why=_reason_of(new))


def _replicas(old: LoadedModel | None, new: LoadedModel) -> Iterator[Reason]:
    """Yield an event for each machine whose replica was lost or came back while the model stayed ready."""
    if old is None or not old.state == new.state == "ready":
        return
    for was, replica in zip(old.replicas, new.replicas, strict=False):
        if was.machine != replica.machine or (was.state == "lost") == (replica.state == "lost"):
            continue
        code = "log_model_without" if replica.state == "lost" else "log_model_with"
        yield _reason(code, model=new.model, machine=replica.machine)


def _downloads(before: Snapshot, now: Snapshot) -> Iterator[Reason]:
    for key, download in now.downloads.items():
        was = before.downloads.get(key)
        if was is None or was.state == download.state:
            continue  # a new download, or one from before the start: only its end is an event
        if download.state == "done":
            yield _reason("log_model_downloaded", model=download.name)
        elif download.state == "failed":
            yield _reason("log_model_broken", model=download.name, why=_reason_of(download))


LENDS = ("ready", "lending", "working")
ENDS = {"paused": "log_lending_paused", "draining": "log_lending_draining"}


def _lending(before: Snapshot, now: Snapshot) -> Iterator[Reason]:
    old, new = before.node.lending, now.node.lending
    if new.state in LENDS and old.state not in LENDS:
        yield _reason("log_lending_on")
    elif new.state == "off" and old.state != "off":
        yield _reason("log_lending_off")
    elif new.state in ENDS and (new.state, _why(new)) != (old.state, _why(old)):
        yield _reason(ENDS[new.state], why=_reason_of(new))
    users, known = set(new.used_by), set(old.used_by)
    for name in sorted(users - known):
        yield _reason("log_lending_used", machine=name)
    for name in sorted(known - users):
        yield _reason("log_lending_unused", machine=name)


def _why(lending: Lending) -> str | None:
    """Return the reason code for comparisons. The facts are left out because their figures may change every minute."""
    return lending.code or lending.reason


def _reason_of(described: Machine | LoadedModel | LoadedEmbedder | Download | Lending) -> Fact:
    """Return the reason for a state, or "" if none is known."""
    if isinstance(described, LoadedEmbedder):  # it is either loading or ready, neither of which has a reason
        return ""
    return described.reason_facts or described.reason or ""


def _reason(code: str, **facts: Fact) -> Reason:
    return Reason(code, facts)
