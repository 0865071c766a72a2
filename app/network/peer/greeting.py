"""HELLO and HELLO_ACK: the third check of a link, and what is said when two versions cannot speak."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from app.core.errors import Fact, Refused, Unreachable
from app.core.household.machine_names import clean_name, name_key
from app.core.household.membership import Member
from app.network.messages import (
    BadMessage,
    Hello,
    HelloAck,
    Message,
    Refuse,
    encode,
    speak_together,
    understood,
)
from app.network.peer.peer_link import Socket, receive

HELLO_SECONDS = 2.0
NAMING = frozenset({"name", "machine", "older", "newer"})  # facts that name a machine

log = logging.getLogger(__name__)


async def say_hello(
    socket: Socket, mine: Hello, member: Member, within_seconds: float = HELLO_SECONDS,
    our_name: str = "",
) -> HelloAck:  # fmt: skip
    """The dialling side: send HELLO, wait for HELLO_ACK. Raises Refused or Unreachable.

    within_seconds: the other side may have to end an old link of ours first. our_name: in the household.
    """
    await socket.send_str(encode(mine).decode("utf-8"))
    answer = await _first(socket, member, within_seconds)
    if isinstance(answer, Refuse):
        reason = understood(answer)
        raise Refused(reason.code, **_of_us_two(reason.facts, {mine.name, our_name}, member))
    if not isinstance(answer, HelloAck):
        raise Refused("peer_speaks_oddly", name=member.name)
    check_greeting(answer, mine, member)
    return answer


async def hear_hello(socket: Socket, mine: Hello, member: Member) -> Hello:
    """The accepting side: wait for HELLO and check it. Raises Refused or Unreachable."""
    greeting = await _first(socket, member, HELLO_SECONDS)
    if not isinstance(greeting, Hello):
        raise Refused("peer_speaks_oddly", name=member.name)
    check_greeting(greeting, mine, member)
    return greeting


def check_greeting(theirs: Hello | HelloAck, mine: Hello, member: Member) -> None:
    """That both speak the same protocol or neighbouring ones, and the id its certificate has.

    Raises Refused.
    """
    if theirs.id == mine.id:
        code = "peer_is_this" if theirs.instance == mine.instance else "identity_copied"
        facts = {"name": clean_name(theirs.name)}
        raise Refused(code, **_of_us_two(facts, {mine.name}, member))
    if theirs.id != member.id:
        raise Refused("peer_speaks_oddly", name=member.name)
    if not speak_together(theirs.protocol, mine.protocol):
        versions = version_facts(theirs, mine)
        raise Refused("version_differs", **_of_us_two(versions, {mine.name}, member))


def version_facts(theirs: Hello | HelloAck, mine: Hello) -> dict[str, str | int]:
    """Who runs the older version, in the words of the sentence."""
    old, new = sorted((theirs, mine), key=lambda greeting: greeting.protocol)
    return {
        "older": clean_name(old.name),
        "older_build": old.build,
        "newer": clean_name(new.name),
        "newer_build": new.build,
    }


def _of_us_two(facts: Mapping[str, Fact], ours: Collection[str], member: Member) -> dict[str, Fact]:
    """As another machine tells them, but nobody is named except it and us: it may lie."""
    known = {name_key(name): clean_name(name) for name in (*ours, member.name) if name}
    return {
        key: known.get(name_key(str(fact)), member.name) if key in NAMING else fact
        for key, fact in facts.items()
    }


async def _first(socket: Socket, member: Member, within_seconds: float) -> Message:
    try:
        async with asyncio.timeout(within_seconds):
            message = await receive(socket)
    except TimeoutError as error:
        raise Unreachable("peer_no_hello", name=member.name) from error
    except BadMessage as error:
        log.warning("%s sent what cannot be read: %s", member.name, error)
        raise Refused("peer_speaks_oddly", name=member.name) from error
    if message is None:  # in TLS 1.3 a refused certificate shows only at the first read
        raise Refused("peer_refused_us", name=member.name)
    return message
