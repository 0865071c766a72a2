"""The format of control messages, which may not change under the same protocol number."""

from __future__ import annotations

import hashlib
import json

import msgspec

from app.network.messages import PROTOCOL, Message
from backends.worker_orders import BeginSequence

FORMATS = {11: "ea95446d86b79a33"}  # by protocol number: the beginning of the hash of the messages' fields


def test_messages_that_change_raise_the_protocol_number() -> None:
    """An older version refuses a message with an unknown field, and ends the link without saying why.

    If this fails, raise PROTOCOL, and enter the new hash here. Before the first release, OLDEST_PROTOCOL is raised too.
    """
    _, components = msgspec.json.schema_components((Message, BeginSequence))
    for component in components.values():
        component.pop("description", None)  # comments do not travel
    text = json.dumps(components, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FORMATS[PROTOCOL]
