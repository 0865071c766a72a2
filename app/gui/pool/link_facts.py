"""What is known of the links of a household: this machine's own, and those between two others, as they tell it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.gui.look.sentences import here

Json = dict[str, Any]
ENDS = ("interface", "kind", "negotiated_bits_per_s")


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The way to a machine. None: not measured."""

    round_trip_s: float | None  # median of the last measurement, else of heartbeats
    slow_round_trip_s: float | None  # 19 of 20 are faster
    out_bytes_per_s: float | None
    in_bytes_per_s: float | None
    kind: str
    far_kind: str
    interface: str
    negotiated_bits_per_s: int | None
    far_interface: str
    far_negotiated_bits_per_s: int | None
    measured_at: float | None
    share: float | None  # of the time of a request, by the forecast of what is loaded
    token_s: float | None
    chunk_s: float | None  # of `chunk_tokens` of a prompt, there and back
    chunk_tokens: int
    preferred: str = ""  # the interface a person chose for it
    trouble: str = ""  # why that one is not used, or which other one would be better
    better_interface: str = ""
    to: str = ""  # the machine at the far end, where this one is at the near end; else it cannot be tested here

    @property
    def slower_bytes_per_s(self) -> float | None:
        """Of both ways the slower."""
        known = [one for one in (self.out_bytes_per_s, self.in_bytes_per_s) if one is not None]
        return min(known) if len(known) == 2 else None

    @property
    def worst_kind(self) -> str:
        """What carries it; where the ends differ, the one that is no cable."""
        for kind in ("vpn", "wifi", "virtual"):
            if kind in (self.kind, self.far_kind):
                return kind
        return self.kind


@dataclass(frozen=True, slots=True)
class Between:
    """The link of two machines of which neither is in the centre of the map: their ids and names."""

    ends: tuple[str, str]
    names: tuple[str, str]
    link: LinkFacts  # as the first of the two measured it

    @property
    def key(self) -> str:
        """What it is called among all links."""
        return "-".join(sorted(self.ends))


def between_of(snapshot: Json, centre: str) -> tuple[Between, ...]:
    """Every measured link that does not end in the centre, by the names of its ends."""
    machines = snapshot.get("machines") or {}
    found: dict[frozenset[str], Between] = {}
    for one, other, link in _all(snapshot, machines):
        ends = frozenset((one, other))
        if centre in ends or ends in found or not ends <= machines.keys() or len(ends) < 2:
            continue
        names = str(machines[one].get("name") or ""), str(machines[other].get("name") or "")
        far = other if machines[one].get("this") else ""
        made = Between((one, other), names, link_facts(link, far))
        found[ends] = made
    return tuple(sorted(found.values(), key=lambda one: (*map(str.casefold, one.names), one.ends)))


def _all(snapshot: Json, machines: Json) -> Iterator[tuple[str, str, Json]]:
    """Who measured it, the machine at its other end, and what was measured; this machine's own come first."""
    me = next((key for key, one in machines.items() if one.get("this")), "")
    for far, link in (snapshot.get("links") or {}).items():
        if link.get("measured_at"):
            yield me, far, link
    for teller, links in (snapshot.get("links_between") or {}).items():
        for far, link in links.items():
            yield teller, far, link


def turned(link: Json | None) -> Json | None:
    """The same link as the machine at its other end sees it."""
    if link is None:
        return None
    swapped = {name: link.get(f"far_{name}") for name in ENDS}
    swapped |= {f"far_{name}": link.get(name) for name in ENDS}
    swapped |= {"out_bytes_per_s": link.get("in_bytes_per_s"), "in_bytes_per_s": link.get("out_bytes_per_s")}
    return link | swapped


def share_of(loaded: Json, machine: str, part: str) -> float | None:
    """What a machine, or the link to it, takes of the time of a request, by the forecast of what is loaded."""
    shares = (loaded.get("forecast") or {}).get("shares") or ()
    return next((one["share"] for one in shares if one["id"] == machine and one["part"] == part), None)


def link_facts(link: Json, far: str, key: str = "", loaded: Json | None = None) -> LinkFacts:
    """far: who is at its other end, seen from this machine. key: whose share of what is loaded it carries."""
    loaded = loaded or {}
    share = share_of(loaded, key, "link")
    known = (loaded.get("from") or {}).get("machines") or ()
    ways: Json = next((one for one in known if one.get("id") == key), {}) if share else {}
    return LinkFacts(
        round_trip_s=link.get("measured_round_trip_seconds") or link.get("round_trip_seconds"),
        slow_round_trip_s=link.get("round_trip_p95_seconds"),
        out_bytes_per_s=link.get("out_bytes_per_s"),
        in_bytes_per_s=link.get("in_bytes_per_s"),
        kind=str(link.get("kind") or ""),
        far_kind=str(link.get("far_kind") or ""),
        interface=str(link.get("interface") or ""),
        negotiated_bits_per_s=link.get("negotiated_bits_per_s"),
        far_interface=str(link.get("far_interface") or ""),
        far_negotiated_bits_per_s=link.get("far_negotiated_bits_per_s"),
        measured_at=link.get("measured_at"),
        share=share,
        token_s=ways.get("token_way_s"),
        chunk_s=ways.get("chunk_way_s"),
        chunk_tokens=int((loaded.get("from") or {}).get("batch_rows") or 0),
        preferred=str(link.get("preferred") or ""),
        trouble=here(str(link.get("preferred_reason") or link.get("better_reason") or "")),
        better_interface=str(link.get("better_interface") or ""),
        to=far,
    )
