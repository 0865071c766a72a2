"""The names of the window's pages, as code refers to them."""

from __future__ import annotations

POOL, CHAT, MODELS, ACTIVITY = "pool", "chat", "models", "activity"
COMPUTER, SETTINGS = "computer", "settings"
