"""The type of every answer that recording.py records."""

from __future__ import annotations

from typing import Any

from app.api import answers, chat_api, computer, downloads, models, plans, snapshot

# None: the change of a snapshot, which has only what differs.
TYPES: dict[str, Any] = {
    "POST /lending": snapshot.LendingState,
    "POST /lending/pause": snapshot.LendingState,
    "POST /lending/resume": snapshot.LendingState,
    "POST /api/keys": chat_api.ApiKey,
    "POST /measure": snapshot.LinkReports,
    "POST /verdicts": models.Verdicts,
    "POST /settings": computer.Settings,
    "POST /pairing": answers.PairingCode,
    "GET /status while pairing": snapshot.Snapshot,
    "DELETE /pairing": answers.Nothing,
    "POST /plan: progress": plans.Progress,
    "POST /plan: done": plans.Plan,
    "POST /load: progress": plans.Progress,
    "POST /load: done": answers.Loaded,
    "POST /ask: by": answers.AnsweredBy,
    "POST /ask: delta": answers.Delta,
    "POST /ask: done": answers.Answer,
    "POST /tokens": answers.TokenCount,
    "GET /status": snapshot.Snapshot,
    "GET /machines": answers.Machines,
    "GET /lending": snapshot.LendingState,
    "GET /models": models.Models,
    "GET /models/guide": models.ModelAnswer,
    "GET /starter": models.StarterAnswer,
    "GET /machine": computer.Computer,
    "GET /programs": computer.Programs,
    "GET /autostart": computer.Autostart,
    "GET /settings": computer.Settings,
    "GET /doctor": computer.Checks,
    "GET /journal": computer.Journal,
    "GET /catalog": models.Catalog,
    "GET /downloads": downloads.Downloads,
    "GET /folder": downloads.ModelsFolderRoom,
    "GET /token": models.TokenState,
    "GET /api": chat_api.ChatApi,
    "GET /api/keys": chat_api.ApiKeys,
    "GET /api/upstreams": chat_api.Upstreams,
    "GET /api/certificate": chat_api.Certificate,
    "GET /answers": answers.AnswerKeys,
    "GET /history/key": computer.HistoryKey,
    "GET /updates": computer.Updates,
    "GET /events: snapshot": snapshot.Snapshot,
    "GET /events: change": None,
    "GET /machines/{ref}": answers.MachineAnswer,
    "DELETE /api/keys/{name}": chat_api.KeyRemoved,
    "POST /unload": models.Unloaded,
    "a refusal": answers.Refusal,
}
