"""Plain calls of a Chat API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.gateway.conftest import Open

Json = dict[str, Any]


def post(api: Open, path: str, body: Json, status: int = 200) -> Json:
    """One call, which must have this status."""
    headers = {"Authorization": f"Bearer {api.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(api.base + path, json.dumps(body).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            got, data = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        got, data = error.code, error.read()
    assert got == status, data
    result: Json = json.loads(data)
    return result
