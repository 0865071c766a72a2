"""The names of the window's pages in code."""

from __future__ import annotations

POOL, CHAT, MODELS, ACTIVITY = "pool", "chat", "models", "activity"
COMPUTER, SETTINGS = "computer", "settings"
