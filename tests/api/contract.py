"""The type of every answer that recording.py records."""

from __future__ import annotations

from typing import Any

from app.api import chat_api, computer, downloads, engine_packs, models, plans, responses, snapshot

# None: the change of a snapshot, which has only what differs.
TYPES: dict[str, Any] = {
    "POST /lending": snapshot.LendingState,
    "POST /lending/pause": snapshot.LendingState,
    "POST /lending/resume": snapshot.LendingState,
    "POST /api/keys": chat_api.ApiKey,
    "POST /measure": snapshot.LinkReports,
    "POST /verdicts": models.Verdicts,
    "POST /settings": computer.Settings,
    "POST /pairing": responses.PairingCode,
    "GET /status while pairing": snapshot.Snapshot,
    "DELETE /pairing": responses.EmptyResponse,
    "POST /plan: progress": plans.Progress,
    "POST /plan: done": plans.Plan,
    "POST /load: progress": plans.Progress,
    "POST /load: done": responses.LoadResponse,
    "POST /ask: by": responses.AnsweredBy,
    "POST /ask: delta": responses.Delta,
    "POST /ask: done": responses.Answer,
    "POST /tokens": responses.TokenCount,
    "GET /status": snapshot.Snapshot,
    "GET /machines": responses.Machines,
    "GET /lending": snapshot.LendingState,
    "GET /models": models.Models,
    "GET /models/guide": models.ModelResponse,
    "GET /starter": models.StarterResponse,
    "GET /machine": computer.Computer,
    "GET /programs": computer.Programs,
    "GET /autostart": computer.Autostart,
    "GET /engines": engine_packs.EnginePacks,
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
    "GET /answers": responses.AnswerKeys,
    "GET /history/key": computer.HistoryKey,
    "GET /updates": computer.Updates,
    "GET /events: snapshot": snapshot.Snapshot,
    "GET /events: change": None,
    "GET /machines/{ref}": responses.MachineResponse,
    "DELETE /api/keys/{name}": chat_api.RemoveKeyResponse,
    "POST /unload": models.UnloadResponse,
    "a refusal": responses.ErrorResponse,
}
