"""S4: connections that begin, and then wait, at every port: from strangers, from programs, and from a member."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.outcome import Kind, Outcome
from tests.faults.security import HOST, PORTS, Stronghold, ports

SLOW_BAR_S, DRIP_BAR_S = 10.0, 30.0  # SAFETY.md 5
SLACK_S = 1.5  # a sweep looks once a second
OF_ONE_MEMBER = 48  # connections; more are refused at once
BODY = "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
TO_MEMBERS = "PUT /stage/" + "0" * 32 + " HTTP/1.1\r\nHost: x\r\n"
TO_PROGRAMS = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"


@dataclass(frozen=True, slots=True)
class Start:
    """What such a connection says first, and whether a byte a second comes after it."""

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
KINDS: tuple[Kind, ...] = tuple(
    ("S4", f"{start.name}, {where}", "slow")
    for where in (*PORTS, OF_MEMBER)
    for start in (STRANGERS if where in PORTS and where not in PROGRAMS else of_http(""))
)


async def slow(hold: Stronghold, n: int) -> list[Outcome]:
    """So many of each kind at once."""
    found = []
    async with hold.host() as host:
        made = (host.runtime.token, (await host.post("/api/keys", {"name": "slow"}))["key"])
        keys = dict(zip(PROGRAMS, made, strict=True))
    for where, port in (await ports(hold)).items():
        starts = STRANGERS
        if where in keys:
            path, key = PROGRAMS[where], keys[where]
            starts = of_http(TO_PROGRAMS.format(path=path, port=port, key=key))
        for start in starts:
            order = {"port": port, "n": n, "start": start.said, "drip": start.drip}
            got = await hold.attack("slow", **order)
            found.append(_ended(hold, f"{start.name}, {where}", got["seconds"], start.drip))
    for start in of_http(TO_MEMBERS):
        got = await hold.attack(
            "slow_member", folder=hold.new_folder(), host=str(hold.nodes[HOST].root),
            victim=hold.id_of(HOST), n=min(n, OF_ONE_MEMBER), start=start.said, drip=start.drip,
        )  # fmt: skip
        found.append(_ended(hold, f"{start.name}, {OF_MEMBER}", got["seconds"], start.drip))
    return found


def _ended(hold: Stronghold, name: str, seconds: list[float], drip: bool) -> Outcome:
    bar_s, worst_s = DRIP_BAR_S if drip else SLOW_BAR_S, max(seconds, default=0.0)
    why = hold.alive()
    if not why and worst_s > bar_s + SLACK_S:
        why = f"open for {worst_s:.1f} s"
    facts = {"n": float(len(seconds)), "worst_s": worst_s}
    return Outcome(
        "S4", name, "slow", not why, why, in_time=worst_s <= bar_s + SLACK_S, facts=facts
    )
