"""S4: connections that begin, and then wait, at every port: from strangers, from programs, and from a member."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from tests.faults.outcome import Kind, Outcome
from tests.faults.security import HOST, PORTS, Stronghold, ports

SLOW_BAR_S = 10.0  # SAFETY.md 5; a byte a second may have 30 s there, and has 10 here
MANY = 1 << 20
OF_ONE_MEMBER = 48  # connections; more are refused at once
OF_OWN_KEY = 24  # requests; 32 at once are heard, and who asks for an answer meanwhile shows the same key
BODY = "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
TO_MEMBERS = "PUT /stage/" + "0" * 32 + " HTTP/1.1\r\nHost: x\r\n"
TO_PROGRAMS = "POST $path HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nAuthorization: Bearer $key\r\n"


@dataclass(frozen=True, slots=True)
class Start:
    """The first bytes of such a connection, and whether one byte per second follows."""

    name: str
    said: str
    drip: bool = False


STRANGERS: tuple[Start, ...] = (Start("silent", ""), Start("half a handshake", "\x16\x03\x01\x02"))


def of_http(begun: str) -> tuple[Start, ...]:
    return (
        Start("silent", ""), Start("half a header", begun), Start("no body", begun + BODY),
        Start("a byte a second", begun + BODY, drip=True),
    )  # fmt: skip


PROGRAMS = {"host's control port": "/ask", "host's Chat API": "/v1/chat/completions"}
OF_MEMBER = "a member"
PHASE = "slow"


def _starts(where: str) -> tuple[Start, ...]:
    if where == OF_MEMBER:
        return of_http(TO_MEMBERS)
    return of_http(TO_PROGRAMS) if where in PROGRAMS else STRANGERS


STARTS = tuple((start, where) for where in (*PORTS, OF_MEMBER) for start in _starts(where))


def kind_of(start: Start, where: str) -> Kind:
    return "S4", f"{start.name}, {where}", PHASE


def door(kind: Kind) -> str:
    """Return the port at which connections of a kind wait. A member uses the same one as strangers."""
    where = kind[1].rpartition(", ")[2]
    return PORTS[0] if where == OF_MEMBER else where


def most(start: Start, where: str) -> int:
    """Connections at once that are a siege of that place."""
    if where == "host's control port" and "Bearer" in start.said:
        return OF_OWN_KEY
    return OF_ONE_MEMBER if where == OF_MEMBER else MANY


async def run(hold: Stronghold, start: Start, where: str, n: int) -> Outcome:
    """Open this many such connections at once while the node answers."""
    heard = hold.n_heard
    if where == OF_MEMBER:
        got = await hold.attack(
            "slow_member", folder=hold.new_folder(), host=str(hold.nodes[HOST].root),
            victim=hold.id_of(HOST), n=n, start=start.said, drip=start.drip,
        )  # fmt: skip
    else:
        port = (await ports(hold))[where]
        said = start.said
        if where in PROGRAMS:
            words = {"path": PROGRAMS[where], "port": port, "key": await _key(hold, where)}
            said = Template(said).substitute(words)
        got = await hold.attack("slow", port=port, n=n, start=said, drip=start.drip)
    facts: dict[str, float] = {
        "n": float(len(got["seconds"])),
        "worst_s": max(got["seconds"], default=0.0),
        "late_s": float(got["late_s"]),
        "tokens": float(hold.n_heard - heard),
    }
    return judged(kind_of(start, where), hold.alive(), facts)


async def _key(hold: Stronghold, where: str) -> str:
    """Return the key that a program needs there."""
    async with hold.host() as host:
        if where == "host's control port":
            return host.runtime.token
        return str((await host.post("/api/keys", {"name": "slow"}))["key"])


def judged(kind: Kind, why: str, facts: dict[str, float]) -> Outcome:
    """Nobody came to harm, all were closed in time, and who asked was answered meanwhile. On a busy computer those
    who wait see the end late, and know by how much."""
    worst_s = facts["worst_s"]
    in_time = worst_s <= SLOW_BAR_S + facts["late_s"]
    if not why and not in_time:
        why = f"open for {worst_s:.1f} s"
    if not why and not facts["tokens"]:
        why = "nothing was answered meanwhile"
    return Outcome(*kind, not why, why, in_time=in_time, facts=facts)
