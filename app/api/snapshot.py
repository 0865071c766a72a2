"""The state of a node: what `GET /status` answers, and what the event stream begins with."""

from __future__ import annotations

import msgspec

from app.api.downloads import Download, Giving, ModelsFolder
from app.api.plans import LoadedEmbedder, LoadedModel
from app.core.errors import Fact, Reason
from app.core.lending.policy import Battery
from app.core.planner.speed_estimates import Factor


class Lending(msgspec.Struct, frozen=True):
    """The memory that this computer lends now."""

    state: str = "off"
    reason: str | None = None
    reason_facts: Reason | None = None
    code: str | None = None  # of the reason
    used_by: list[str] = []  # names of machines
    lent_bytes: int = 0  # the total that others may use
    used_bytes: int = 0  # in use by others
    total_bytes: int = 0
    free_bytes: int = 0
    reserve_bytes: int = 0  # kept free for the owner's programs
    own_bytes: int = 0  # held by this computer's own models
    since: int = 0
    resumes_in_s: int | None = None
    gives_back_in_s: int | None = None


class LendingRules(msgspec.Struct, frozen=True):
    """The owner's rules; app/core/lending/policy.py explains each."""

    on: bool = True
    memory_bytes: int | None = None
    devices: list[str] = []
    idle_s: float = 0.0
    hours: str = "always"
    battery_percent: int = 0
    programs: list[str] = []
    gpu: bool = False
    drain_s: float = 0.0
    threads: int = 0
    hot: bool = False
    hot_celsius: int = 95
    screen: bool = False
    network: bool = False
    link_mbit: int = 0
    limit_bytes: int = 0


class LendingReadings(msgspec.Struct, frozen=True):
    """The latest readings that the rules look at; None if the system does not provide one."""

    idle_s: float | None = None
    battery: Battery | None = None
    programs: list[str] = []
    gpu_percent: float | None = None
    hottest_c: float | None = None
    full_screen: bool | None = None
    network: str | None = None


class LendingState(msgspec.Struct, frozen=True):
    """Answer of the `/lending` routes: the state, the rules, their limits, and the readings."""

    lending: Lending = Lending()
    rules: LendingRules = LendingRules()
    most_bytes: int = 0
    most_threads: int = 0
    own_most_bytes: int = 0  # the most that this computer's own models may use
    readings: LendingReadings = LendingReadings()


class LinkMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a link; all None or empty before it is measured."""

    measured_at: float | None = None
    measured_address: str | None = None
    measured_round_trip_seconds: float | None = None
    round_trip_p95_seconds: float | None = None
    jitter_seconds: float | None = None
    out_bytes_per_s: float | None = None
    in_bytes_per_s: float | None = None
    interface: str = ""
    kind: str = ""
    far_kind: str = ""
    far_interface: str = ""
    far_negotiated_bits_per_s: int | None = None
    mtu: int | None = None
    negotiated_bits_per_s: int | None = None


class LinkInterfaces(LinkMeasurement, frozen=True, kw_only=True):
    """A link with the interface its owner prefers, and the one that would be better."""

    preferred: str | None = None
    preferred_reason: str | None = None  # why it is not used
    preferred_reason_facts: Reason | None = None
    better_interface: str | None = None
    better_reason: str | None = None
    better_reason_facts: Reason | None = None


class Link(LinkInterfaces, frozen=True):
    """A link that is up."""

    round_trip_seconds: float | None = None  # of heartbeats
    address: str | None = None
    version: str = ""  # of the far end's Poolhouse


class LinkReport(LinkInterfaces, frozen=True):
    """A link that was measured by hand, or why it was not."""

    id: str = ""
    name: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None


class LinkReports(msgspec.Struct, frozen=True):
    """Answer of `POST /measure`."""

    links: list[LinkReport] = []


LayerRange = tuple[int, int]  # the first layer, and the one after the last


class MachineRef(msgspec.Struct, frozen=True):
    """A machine as answers name it."""

    id: str
    name: str = ""


class Machine(MachineRef, frozen=True, kw_only=True):
    """A machine of the household."""

    this: bool = False  # the machine whose node answers
    online: bool = False
    state: str = "offline"  # of its lending: off, ready, lending, working, draining or paused; otherwise offline
    reason: str | None = None
    reason_facts: Reason | None = None
    doubted: bool = False  # its computations were wrong, and it is not used
    device: str | None = None
    hottest_c: int | None = None
    engine: str = ""
    watts: int | None = None
    link_mbit: int = 0  # its owner's limit; 0: none
    used_by: list[str] = []  # ids of the machines whose models have layers there
    total_bytes: int | None = None
    lent_bytes: int | None = None
    used_bytes: int | None = None
    roles: list[str] = []
    address: str | None = None
    layers: list[LayerRange] = []  # of this machine's models
    seen_at: float | None = None


class Node(msgspec.Struct, frozen=True):
    """The node that answers."""

    id: str = ""
    name: str = ""
    version: str = ""
    peer_address: str | None = None
    reason: str | None = None  # why it no longer belongs to its household
    reason_facts: Reason | None = None
    lending: Lending = Lending()


class Stranger(msgspec.Struct, frozen=True):
    """A Poolhouse nearby that does not belong to the household."""

    id: str = ""  # the first 16 digits
    name: str | None = None  # only while its pairing window is open
    addresses: list[str] = []
    pairing_address: str | None = None
    protocol: int | None = None
    system: str | None = None  # as that machine announces it
    device: str | None = None


class Discovery(msgspec.Struct, frozen=True):
    """The search for machines nearby: whether it is on, and what prevents it."""

    on: bool = False
    reason: str | None = None
    reason_facts: Reason | None = None


class Pairing(msgspec.Struct, frozen=True):
    """The open pairing window."""

    address: str = ""
    seconds_left: int = 0
    tries_left: int = 0


class WaitingChat(msgspec.Struct, frozen=True):
    """A question that waits for a slot."""

    conversation: str | None = None
    place: int = 0
    seconds: int | None = None  # estimated time until it gets a slot


class AnswerCounts(msgspec.Struct, frozen=True):
    """The number of answers in progress, and the questions that wait."""

    running: int = 0
    waiting: int = 0
    line: list[WaitingChat] = []


class FailedLoad(msgspec.Struct, frozen=True):
    """Why the last load failed, while no other model is loaded."""

    code: str = ""
    facts: dict[str, Fact] = {}
    sentence: str = ""
    model: str = ""


class MachineFactors(msgspec.Struct, frozen=True):
    """The factors for forecasts of a machine: its computing, and the link to it."""

    machine: Factor = Factor()
    link: Factor = Factor()


class ForecastErrors(msgspec.Struct, frozen=True):
    """The median errors of forecasts, as shares."""

    answers: int = 0
    ttft_error: float | None = None
    decode_error: float | None = None
    factors: dict[str, MachineFactors] = {}


class ShelfVersion(msgspec.Struct, frozen=True):
    """A number that grows when the models on this computer change."""

    changes: int = 0


class HubContact(msgspec.Struct, frozen=True):
    """The time when the model hub was last asked."""

    last_contact: float | None = None


class JournalEnd(msgspec.Struct, frozen=True):
    """The number of the newest journal entry."""

    last: int = 0


class HouseholdState(msgspec.Struct, frozen=True, kw_only=True):
    """The machines of a household and the links between them, keyed by machine ID."""

    node: Node = Node()
    machines: dict[str, Machine] = {}
    strangers: dict[str, Stranger] = {}
    discovery: Discovery = Discovery()
    links: dict[str, Link] = {}
    links_between: dict[
        str, dict[str, LinkMeasurement]
    ] = {}  # links of others, by the measuring machine and the far end


class Snapshot(HouseholdState, frozen=True, kw_only=True):
    """Everything that a window or a command shows of a node."""

    loaded: LoadedModel | None = None  # answers requests that name no model
    beside: list[LoadedModel] = []  # the other loaded language models
    load_failed: FailedLoad | None = None
    embeds: LoadedEmbedder | None = None
    forecasts: ForecastErrors = ForecastErrors()
    pairing: Pairing | None = None
    pairing_closed: str | None = None  # the code of why the last pairing window closed
    paired: str | None = None  # the ID of the machine that the last window paired
    answers: AnswerCounts = AnswerCounts()
    hosts: list[str] | None = None  # names of those that answer for this guest; None: it is no guest
    downloads: dict[str, Download] = {}
    models_folder: ModelsFolder = ModelsFolder()
    shelf: ShelfVersion = ShelfVersion()
    hub: HubContact = HubContact()
    giving: Giving | None = None
    journal: JournalEnd = JournalEnd()

    @property
    def models(self) -> list[LoadedModel]:
        """All loaded language models; the one that answers requests without a model name comes first."""
        return [self.loaded, *self.beside] if self.loaded else self.beside

    def model(self, name: str | None) -> LoadedModel | None:
        """Return the loaded language model of this name; without a name, the one that answers such requests."""
        if not name:
            return self.loaded
        return next((model for model in self.models if model.model == name), None)

    @property
    def sorted_machines(self) -> list[Machine]:
        """All machines of the household: this one first, the others by name."""
        return sorted(self.machines.values(), key=lambda machine: (not machine.this, machine.name.casefold()))
