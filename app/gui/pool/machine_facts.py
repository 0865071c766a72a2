"""Frozen facts about the machines and links of a household, read from the node's snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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


Run = tuple[int, int]  # first layer, and the one after the last


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """A machine that holds the whole model, as others do, and answers whole requests."""

    state: str  # ready, draining, recovering or lost
    answering: int
    waiting: int


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One machine of the household."""

    id: str
    name: str
    this: bool
    host: bool  # of what is loaded
    online: bool
    state: str
    reason: str | None
    device: str
    total_bytes: int
    lent_bytes: int
    used_bytes: int
    roles: frozenset[str]
    address: str | None
    seen_at: float | None
    layers: tuple[Run, ...]
    used_by: tuple[str, ...]
    link: LinkFacts | None
    other_version: str  # of the app, where it is not this machine's
    left_out: bool  # by the person, in the what-if
    hottest_c: float | None = None  # the processor; None: its system does not tell
    watts: int | None = None  # None: its system does not tell
    link_mbit: int = 0  # its owner's limit for Poolhouse; 0: none
    other_engine: str = ""  # what computes there, where it is not this machine's
    used_by_ids: tuple[str, ...] = ()
    replica: ReplicaFacts | None = None
    vectors: str = ""  # the model that turns texts into vectors here
    scores: str = ""  # the reranker that scores texts here
    doubted: bool = False  # its numbers were found wrong in a check, so it gets no layers
    of_models: tuple[tuple[str, tuple[Run, ...]], ...] = ()  # its layers of each, where several are loaded
    share: float | None = None  # of the time of a request, that it computes, by the forecast
    not_shown: tuple[str, ...] = ()  # models of which it holds layers that are not
    own_bytes: int = 0  # of what is used here, by the models of this machine itself: lent to nobody
    has_own: bool = False  # it runs a model of its own, of which no layers are known here

    @property
    def lends(self) -> bool:
        """Whether it could be left out: a machine that is here and takes part."""
        return not self.this and self.online and "lender" in self.roles

    @property
    def can_test(self) -> bool:
        """Whether the link that is shown with it ends here, and there is somebody at its other end."""
        return self.online and self.link is not None and bool(self.link.to)


@dataclass(frozen=True, slots=True)
class Stranger:
    """A Poolhouse nearby that is not of the household. All of it is a hint."""

    id: str
    name: str | None  # only while it lets a machine in
    address: str
    pairing_address: str | None
    claims: str = ""  # system and accelerator, as it says itself


def machines_of(
    snapshot: Json, without: Collection[str] = (), centre: str = "", model: str = ""
) -> tuple[MachineFacts, ...]:
    """All machines: the one in the centre first (else this one), then by name.

    without: those a person leaves out to see. centre: another machine whose placement is shown.
    model: which of several of this machine's; "" for all of them.
    """
    view = _view(snapshot, without, centre, model)
    found = [_machine(view, key, one) for key, one in view.machines.items()]
    return tuple(sorted(found, key=lambda one: (one.id != view.centre, one.name.casefold(), one.id)))


def is_of_another(snapshot: Json, centre: str) -> bool:
    """Whether the placement with `centre` in its middle is another machine's, of which only users are known."""
    return bool(centre) and not ((snapshot.get("machines") or {}).get(centre) or {}).get("this")


@dataclass(frozen=True, slots=True)
class _View:
    """What all machines are looked at with. `loaded` is empty where another machine's placement is shown."""

    machines: Json
    links: Json
    told: Json
    node: Json
    loaded: Json
    me: str
    centre: str
    without: Collection[str]
    hosts: frozenset[str]
    left_out: Mapping[str, str]
    replicas: Mapping[str, ReplicaFacts]
    own_bytes: Mapping[str, int]
    several: tuple[Json, ...]  # all that is loaded to write, where that is more than one model
    not_shown: tuple[Json, ...]  # models of this machine, where only the layers of one are shown
    vectors: str
    scores: str

    @property
    def is_own(self) -> bool:
        """This machine's placement is in the centre."""
        return self.centre == self.me

    def link_to(self, key: str) -> tuple[str, Json | None]:
        """The way between the centre and that machine: who is at its far end, seen from here."""
        if key == self.centre:
            return "", None
        if self.is_own or key == self.me:
            far = key if self.is_own else self.centre
            return far, self.links.get(far)
        return "", self.told.get(self.centre, {}).get(key) or turned(self.told.get(key, {}).get(self.centre))


def _view(snapshot: Json, without: Collection[str], centre: str, model: str) -> _View:
    machines = snapshot.get("machines") or {}
    me = next((key for key, one in machines.items() if one.get("this")), "")
    own, embeds = snapshot.get("loaded") or {}, snapshot.get("embeds") or {}
    beside = tuple(snapshot.get("beside") or ())
    chosen = next((one for one in (own, *beside) if model and one.get("model") == model), None)
    loaded = {} if is_of_another(snapshot, centre) else chosen or own
    return _View(
        machines=machines,
        links=snapshot.get("links") or {},
        told=snapshot.get("links_between") or {},
        node=snapshot.get("node") or {},
        loaded=loaded,
        me=me,
        centre=centre or me,
        without=without,
        hosts=frozenset(key for key, _ in hosts_of(snapshot)),
        left_out=_left_out(loaded),
        replicas=replicas_of(loaded),
        own_bytes=_own_bytes(own, embeds, *beside),
        several=(own, *beside) if beside and not chosen else (),
        not_shown=tuple(one for one in (own, *beside) if chosen and one is not chosen),
        vectors="" if embeds.get("ranks") else str(embeds.get("model") or ""),
        scores=str(embeds.get("model") or "") if embeds.get("ranks") else "",
    )


def _machine(view: _View, key: str, one: Json) -> MachineFacts:
    this, online = bool(one.get("this")), bool(one.get("online"))
    by = tuple(str(user) for user in one.get("used_by") or () if user in view.machines)
    why = None if this or one.get("layers") else view.left_out.get(str(one.get("name")))
    far, link = view.link_to(key)
    runs = _runs(view, key, one) if view.is_own else []
    own_engine = str((view.machines.get(view.me) or {}).get("engine") or "")
    return MachineFacts(
        id=key,
        name=str(one.get("name") or ""),
        this=this,
        host=bool(view.loaded.get("stages")) and this if view.is_own else key == view.centre,
        online=online,
        state=_state(one, why),
        reason=here(str(one.get("reason") or "")) or (why if online else None) or None,
        device=str(one.get("device") or ""),
        total_bytes=int(one.get("total_bytes") or 0),
        lent_bytes=_with_own(one, "lent_bytes", view.own_bytes),
        used_bytes=_with_own(one, "used_bytes", view.own_bytes),
        own_bytes=view.own_bytes.get(key, 0) if this else 0,
        roles=frozenset(one.get("roles") or ()),
        address=one.get("address"),
        seen_at=one.get("seen_at"),
        layers=joined(runs),
        of_models=tuple(_of_models(view, key)) if view.is_own else (),
        used_by=tuple(sorted(str(view.machines[user].get("name")) for user in by)),
        link=link_facts(link, far, key, view.loaded) if link else None,
        other_version=_other_version(view.links.get(key), view.node),
        left_out=key in view.without,
        hottest_c=one.get("hottest_c"),
        watts=one.get("watts"),
        link_mbit=int(one.get("link_mbit") or 0),
        other_engine=_other(str(one.get("engine") or ""), own_engine),
        used_by_ids=by,
        replica=view.replicas.get(key),
        vectors=view.vectors if this else "",
        scores=view.scores if this else "",
        doubted=bool(one.get("doubted")),
        share=share_of(view.loaded, key, "machine"),
        not_shown=tuple(str(o["model"]) for o in view.not_shown if key in _holders(o)),
        has_own=not view.is_own and key in view.hosts and (key == view.centre or not by),
    )


def _runs(view: _View, key: str, one: Json) -> list[Run]:
    """All layers that it holds, or only those of the model that is shown."""
    if view.not_shown:
        stages = view.loaded.get("stages") or ()
        return [(stage["first"], stage["last"]) for stage in stages if stage["id"] == key]
    return [(run[0], run[1]) for run in one.get("layers") or ()]


def _holders(model: Json) -> set[str]:
    return {str(stage.get("id")) for stage in model.get("stages") or ()}


def may_change(machines: Sequence[MachineFacts]) -> bool:
    """Whether this machine may add and remove others; while it is in no household it may."""
    mine = next((one for one in machines if one.this), None)
    return mine is None or not mine.roles or "admin" in mine.roles


def hosts_of(snapshot: Json) -> tuple[tuple[str, str], ...]:
    """Whose models run now, by id and name: this machine's first; more than one are several placements."""
    machines = snapshot.get("machines") or {}
    running = {str(user) for one in machines.values() for user in one.get("used_by") or ()}
    if snapshot.get("loaded"):
        running |= {key for key, one in machines.items() if one.get("this")}
    known = [(key, str(machines[key].get("name") or "")) for key in running if key in machines]
    known.sort(key=lambda one: (not machines[one[0]].get("this"), one[1].casefold(), one[0]))
    return tuple(known)


def strangers_of(snapshot: Json) -> tuple[Stranger, ...]:
    """Who is nearby; whoever lets a machine in comes first."""
    found = [
        Stranger(
            key,
            one.get("name"),
            _first(one.get("addresses")),
            one.get("pairing_address"),
            ", ".join(str(one[what]) for what in ("system", "device") if one.get(what)),
        )
        for key, one in (snapshot.get("strangers") or {}).items()
    ]
    return tuple(sorted(found, key=lambda one: (not one.pairing_address, one.name or "", one.id)))


def _of_models(view: _View, key: str) -> Iterator[tuple[str, tuple[Run, ...]]]:
    """What a machine holds of each of several models."""
    for model in view.several:
        stages = [one for one in model.get("stages") or () if one.get("id") == key]
        if runs := joined([(one["first"], one["last"]) for one in stages]):
            yield str(model.get("model")), runs


def replicas_of(loaded: Json) -> Mapping[str, ReplicaFacts]:
    """Machines that each hold the whole of what is loaded, by id; none of those that share a split."""
    found = {}
    for one in loaded.get("replicas") or ():
        ids = list(one.get("ids") or [])
        if len(ids) == 1:
            state = str(one.get("state") or "ready")
            answering, waiting = int(one.get("answering") or 0), int(one.get("waiting") or 0)
            found[str(ids[0])] = ReplicaFacts(state, answering, waiting)
    return found


def active_of(snapshot: Json, model: str = "") -> frozenset[str]:
    """The machines an answer goes through now: of replicas only those that answer. model: of this one only."""
    if not (snapshot.get("answers") or {}).get("running"):
        return frozenset()
    models = (snapshot.get("loaded") or {}, *(snapshot.get("beside") or ()))
    shown = [one for one in models if model in ("", one.get("model"))]
    return frozenset().union(*(_active(one) for one in shown if one.get("answering")))


def _active(loaded: Json) -> frozenset[str]:
    """Nothing moves along the links while what was lost is made again."""
    if replicas := loaded.get("replicas"):
        answer = [one for one in replicas if one.get("answering") and one.get("state") != "recovering"]
        return frozenset(str(key) for one in answer for key in one["ids"])
    if loaded.get("state") == "recovering":
        return frozenset()
    return frozenset(stage["id"] for stage in loaded.get("stages") or ())


def joined(runs: list[Run]) -> tuple[Run, ...]:
    """Runs in order; where one begins at the end of another, they are one."""
    together: list[Run] = []
    for first, last in sorted(runs):
        if together and together[-1][1] == first:
            together[-1] = (together[-1][0], last)
        else:
            together.append((first, last))
    return tuple(together)


def _own_bytes(*loaded: Json) -> Mapping[str, int]:
    """What the loaded models take of each machine."""
    found: dict[str, int] = {}
    for one in (machine for model in loaded for machine in model.get("machines") or ()):
        found[str(one["id"])] = found.get(str(one["id"]), 0) + int(one.get("needs_bytes") or 0)
    return found


def _with_own(one: Json, name: str, own_bytes: Mapping[str, int]) -> int:
    """This machine does not lend to itself: what its own model takes is added, of what it could lend."""
    found = int(one.get(name) or 0)
    if not one.get("this") or (name == "lent_bytes" and not found):
        return found
    return found + own_bytes.get(str(one.get("id")), 0)


def _state(one: Json, left_out: str | None) -> str:
    if not one.get("online") and not one.get("this"):
        return "offline"
    state = str(one.get("state") or "ready")
    return "left_out" if left_out and state == "ready" else state


def _left_out(loaded: Json) -> Mapping[str, str]:
    """Why the planner left machines out of what is loaded, by their names."""
    return {
        str(one["facts"].get("machine")): here(str(one["sentence"]))
        for one in loaded.get("why") or ()
        if str(one.get("code")).startswith("left_out_")
    }


def _other(engine: str, own: str) -> str:
    return "" if not own or engine == own else engine


def _other_version(link: Json | None, node: Json) -> str:
    version = str((link or {}).get("version") or "")
    return "" if version == node.get("version") else version


def _first(found: object) -> str:
    return str(found[0]) if isinstance(found, list) and found else ""
