"""The state of a node: the response to `GET /status`, and the first message of the event stream."""

from __future__ import annotations

import msgspec

from app.api.chat_api import OtherServer
from app.api.downloads import Download, ModelsFolder, OutgoingCopy
from app.api.models import SharedModel
from app.api.plans import LoadedEmbedder, LoadedModel
from app.core.errors import Fact, Reason
from app.core.lending.policy import Battery
from app.core.planner.speed_estimates import Factor


class Lending(msgspec.Struct, frozen=True):
    """The state of lending on this computer, and how much memory it lends now."""

    state: str = "off"
    reason: str | None = None
    reason_facts: Reason | None = None
    code: str | None = None  # the code of the reason
    used_by: list[str] = []  # names of machines that use it
    lent_bytes: int = 0  # the total that other machines may use
    used_bytes: int = 0  # used by other machines now
    total_bytes: int = 0
    free_bytes: int = 0
    reserve_bytes: int = 0  # kept free for the owner's programs
    own_bytes: int = 0  # used by this computer's own models
    since: int = 0
    resumes_in_s: int | None = None
    gives_back_in_s: int | None = None


class LendingRules(msgspec.Struct, frozen=True):
    """The owner's rules for lending, as explained in app/core/lending/policy.py."""

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
    card_celsius: int = 0


class LendingReadings(msgspec.Struct, frozen=True):
    """The latest sensor readings for the lending rules. A reading is None if the system does not provide it."""

    idle_s: float | None = None
    battery: Battery | None = None
    programs: list[str] = []
    gpu_percent: float | None = None
    hottest_c: float | None = None
    full_screen: bool | None = None
    network: str | None = None
    card_c: float | None = None


class LendingState(msgspec.Struct, frozen=True):
    """The response of the `/lending` routes: the state, the rules, their limits, and the readings."""

    lending: Lending = Lending()
    rules: LendingRules = LendingRules()
    most_bytes: int = 0
    most_threads: int = 0
    own_most_bytes: int = 0  # the maximum for this computer's own models
    readings: LendingReadings = LendingReadings()


class LinkMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of a link. All are None or empty before the first measurement."""

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
    """A link, the interface that its owner prefers, and a better interface if there is one."""

    preferred: str | None = None
    preferred_reason: str | None = None  # why the preferred interface is not used
    preferred_reason_facts: Reason | None = None
    better_interface: str | None = None
    better_reason: str | None = None
    better_reason_facts: Reason | None = None


class Link(LinkInterfaces, frozen=True):
    """A link that is up."""

    round_trip_seconds: float | None = None  # measured with heartbeats
    address: str | None = None
    version: str = ""  # the version of Poolhouse at the other end


class LinkReport(LinkInterfaces, frozen=True):
    """The result of measuring a link on request, or the reason why there is none."""

    id: str = ""
    name: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None


class LinkReports(msgspec.Struct, frozen=True):
    """The response to `POST /measure`."""

    links: list[LinkReport] = []


LayerRange = tuple[int, int]  # the first layer, and the layer after the last


class MachineRef(msgspec.Struct, frozen=True):
    """The ID and the name of a machine."""

    id: str
    name: str = ""


class Machine(MachineRef, frozen=True, kw_only=True):
    """A machine of the household."""

    this: bool = False  # whether it is the machine of the node that answers
    online: bool = False
    # the state of its lending: off, ready, lending, working, draining or paused; offline if it is not online
    state: str = "offline"
    reason: str | None = None
    reason_facts: Reason | None = None
    doubted: bool = False  # it computed wrong results and is not used
    device: str | None = None
    hottest_c: int | None = None
    engine: str = ""
    watts: int | None = None
    link_mbit: int = 0  # its owner's limit; 0 for none
    used_by: list[str] = []  # ids of the machines whose models have layers on it
    total_bytes: int | None = None
    lent_bytes: int | None = None
    used_bytes: int | None = None
    roles: list[str] = []
    address: str | None = None
    layers: list[LayerRange] = []  # the layers that it holds for models of the node that answers
    seen_at: float | None = None


class Node(msgspec.Struct, frozen=True):
    """The node that sent the response."""

    id: str = ""
    name: str = ""
    version: str = ""
    peer_address: str | None = None
    reason: str | None = None  # why it no longer belongs to its household
    reason_facts: Reason | None = None
    lending: Lending = Lending()


class Stranger(msgspec.Struct, frozen=True):
    """A machine nearby that runs Poolhouse but does not belong to the household."""

    id: str = ""  # the first 16 digits of its id
    name: str | None = None  # known only while its pairing window is open
    addresses: list[str] = []
    pairing_address: str | None = None
    protocol: int | None = None
    system: str | None = None  # as that machine announces it
    device: str | None = None


class Discovery(msgspec.Struct, frozen=True):
    """The discovery of machines nearby: whether it is on, and what obstructs it."""

    on: bool = False
    reason: str | None = None
    reason_facts: Reason | None = None


class Pairing(msgspec.Struct, frozen=True):
    """The open pairing window."""

    address: str = ""
    seconds_left: int = 0
    tries_left: int = 0


class WaitingChat(msgspec.Struct, frozen=True):
    """A request that is waiting for a slot."""

    conversation: str | None = None
    place: int = 0
    seconds: int | None = None  # estimated time until it gets a slot


class AnswerCounts(msgspec.Struct, frozen=True):
    """The numbers of answers in progress and of waiting requests."""

    running: int = 0
    waiting: int = 0
    line: list[WaitingChat] = []


class FailedLoad(msgspec.Struct, frozen=True):
    """The reason why the last load failed, reported while no other model is loaded."""

    code: str = ""
    facts: dict[str, Fact] = {}
    sentence: str = ""
    model: str = ""


class MachineFactors(msgspec.Struct, frozen=True):
    """The correction factors that forecasts use for a machine and for the link to it."""

    machine: Factor = Factor()
    link: Factor = Factor()


class ForecastErrors(msgspec.Struct, frozen=True):
    """The median relative errors of forecasts."""

    answers: int = 0
    ttft_error: float | None = None
    decode_error: float | None = None
    quiet_answers: int = 0  # answers while other programs left the host's processor alone
    factor: float | None = None  # the median of their measured speed over the forecast one
    factors: dict[str, MachineFactors] = {}


class ShelfVersion(msgspec.Struct, frozen=True):
    """A counter that increases whenever the models on this computer change."""

    changes: int = 0


class HubContact(msgspec.Struct, frozen=True):
    """The time of the last request to the model hub."""

    last_contact: float | None = None


class JournalEnd(msgspec.Struct, frozen=True):
    """The number of the latest journal entry."""

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
    ] = {}  # links between other machines, by the measuring machine and the far end


class Snapshot(HouseholdState, frozen=True, kw_only=True):
    """Everything that the window and the commands show about a node."""

    loaded: LoadedModel | None = None  # the model that answers requests without a model name
    beside: list[LoadedModel] = []  # the other loaded language models
    load_failed: FailedLoad | None = None
    embeds: LoadedEmbedder | None = None
    forecasts: ForecastErrors = ForecastErrors()
    pairing: Pairing | None = None
    pairing_closed: str | None = None  # the code of the reason that the last pairing window closed
    paired: str | None = None  # the ID of the machine that was paired in the last window
    answers: AnswerCounts = AnswerCounts()
    hosts: list[str] | None = None  # names of the hosts that answer for this guest; None if this machine is no guest
    shared: list[SharedModel] = []
    servers: list[OtherServer] = []  # other servers that are on
    downloads: dict[str, Download] = {}
    models_folder: ModelsFolder = ModelsFolder()
    shelf: ShelfVersion = ShelfVersion()
    hub: HubContact = HubContact()
    giving: OutgoingCopy | None = None
    journal: JournalEnd = JournalEnd()
    exact: bool = False  # loads from here use the same processor instructions on all computers by default

    @property
    def models(self) -> list[LoadedModel]:
        """Return all loaded language models, starting with the one that answers requests without a model name."""
        return [self.loaded, *self.beside] if self.loaded else self.beside

    def model(self, name: str | None) -> LoadedModel | None:
        """Return the loaded language model of this name.

        Without a name, return the model that answers requests without a model name.
        """
        if not name:
            return self.loaded
        return next((model for model in self.models if model.model == name), None)

    def shared_model(self, name: str | None) -> SharedModel | None:
        """Return the other host's model with this reference.

        Without a reference, return the one that answers requests without a model name, if there is one.
        """
        if not name:
            return next((model for model in self.shared if model.default), None)
        return next((model for model in self.shared if model.reference == name), None)

    def served_model(self, reference: str | None) -> tuple[OtherServer, str] | None:
        """Return the other server and the model of this reference, or None if no server that is on has it."""
        model, _, name = (reference or "").rpartition("@")
        return next(
            ((server, model) for server in self.servers if server.name == name and model in server.models), None
        )

    @property
    def sorted_machines(self) -> list[Machine]:
        """Return all machines of the household: this machine first, then the others by name."""
        return sorted(self.machines.values(), key=lambda machine: (not machine.this, machine.name.casefold()))
