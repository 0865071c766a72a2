"""A node without fault tolerance, for fault_readiness: `python -m bench.parts.node_without_readiness node …`.

It has no heartbeats, step deadlines, replacement of broken channels, standby layers or moves, and its lender does
not watch its owner or its worker's memory. What a stage keeps to answer a frame twice remains, because it has no
switch.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from app.cli import main
from app.inference.pipeline import pipeline
from app.inference.stages import stage_connection, stage_host
from app.network.peer import peer_link
from app.node.lending import lending_policy
from app.node.placement import standby

NEVER_S = 1e6


async def _rests(*_: Any) -> None:
    await asyncio.sleep(NEVER_S)


def strip(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Disable all of that by replacing attributes. `put` sets an attribute, and raises if it does not exist."""
    made = stage_connection.ChannelLink.__init__

    def alone(self: Any, channel: Any, peer: Any = None) -> None:
        made(self, channel, None)

    for where, name, value in (
        (peer_link.PeerLink, "_beat", _rests),
        (pipeline.Pipeline, "_watch", _rests),
        (stage_connection.ChannelLink, "__init__", alone),
        (standby.StandbyManager, "run", _rests),
        (lending_policy.LendingPolicy, "_keep_sensing", _rests),
        (lending_policy.LendingPolicy, "_keep_looking", _rests),
        (stage_host.StageHost, "_watch", _rests),
    ):
        assert callable(getattr(where, name)), name
        put(where, name, value)


if __name__ == "__main__":
    strip()
    sys.exit(main())
