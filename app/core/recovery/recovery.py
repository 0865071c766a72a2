"""The recovery of a placement that breaks while answers run: reconnect, plan again, replay, wait, give up. Pure.

`step` decides what comes next; app/inference/pipeline/recovery_loop.py runs its commands. SAFETY.md 6 in short: a
broken connection is reopened within RECONNECT_S; if that fails, the layers are placed again and the recorded tokens
are replayed. If memory is too short, the text is kept while waiting for the machine. This happens at most three
times, and once more if the host can do without all others; then the answer ends with a clear error. A failure that
would only repeat itself (app/core/recovery/fault_table.py) ends the answer at once, with a message of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.core.errors import Fact, Reason
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault, Retry

RECONNECT_S = 5.0  # limit since the last sign of life of a stage that is being reconnected
MAX_RECOVERIES = 3  # per request
ENDS = {  # ends of processes that gave no reason of their own
    "engine_gave_up": Reason("end_gave_up"),
    "stage_failed": Reason("end_not_computed"),
    "worker_crashed": Reason("end_crashed"),
    "worker_hung": Reason("end_hung"),
}
MOST_DEATHS = 2  # process deaths in steps of one request: the second is no coincidence
CALM_TOKENS = 32  # after this many more tokens, a request is no longer suspected
BESIDE = "recovery_beside"
# wait for a machine without which there is too little memory: as long as lenders keep a lost host's layers
WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a machine: which one, why, and when it was noticed."""

    machine: str  # its id, or "" if no single machine is to blame
    name: str
    why: Reason
    at_s: float
    silent_s: float = 0.0  # how long nothing had been received from it by then
    is_gone: bool = False  # it is unreachable or must not be used, so plan without it
    leaves: bool = False  # it announced its departure and kept computing until now
    slots: frozenset[int] = frozenset()  # slots of the step that ended it, if known
    is_shared: bool = False  # the step contained several answers, and which of them ended it is not known yet


@dataclass(frozen=True, slots=True)
class Recovered:
    """One recovery of one answer, as reported afterwards."""

    machine: str  # its name
    why: Reason
    detected_after_s: float
    recovered_after_s: float  # from the detection to the next token
    left: bool = False  # it had announced its departure and computed until others took over
    others: str = ""  # names of the machines that took over its layers, or "" if none had to load anything


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice to a person who is waiting for an answer."""

    state: str  # "reconnecting", "lost", "leaving", "rebuilding", "short", "continued"
    machine: str  # the name of the lost machine
    reason: Reason
    seconds: float | None = None  # how long it will take or took


# States


@dataclass(frozen=True, slots=True)
class Steady:
    """All stages are working."""


@dataclass(frozen=True, slots=True)
class Planning:
    """The planner is computing a new placement."""

    loss: Loss
    tries: int = 1
    without: frozenset[str] = frozenset()
    lost_once: frozenset[str] = frozenset()  # machines lost once in this recovery
    last_shortage: Reason | None = None  # the latest shortage that was reported


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The moved stages are being loaded."""

    planned: Planning


@dataclass(frozen=True, slots=True)
class Short:
    """No placement fits on the remaining machines. A machine that joins may change that."""

    planned: Planning
    why: Reason
    until_s: float


@dataclass(frozen=True, slots=True)
class Over:
    """The recovery has failed."""

    why: Reason


State = Steady | Planning | Rebuilding | Short | Over

# Events


@dataclass(frozen=True, slots=True)
class Planned:
    """A new placement was found."""

    machines: tuple[str, ...]  # names of the machines that take over layers
    seconds: float  # time to load them
    replay_s: float = 0.0  # additional time until the next token


@dataclass(frozen=True, slots=True)
class Misfit:
    """No placement fits, for the reason `why`."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Built:
    """All stages of the new placement are open."""


@dataclass(frozen=True, slots=True)
class Came:
    """The household may have changed since no placement fitted."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The time to wait is over."""


Event = Loss | Planned | Misfit | Built | Came | Waited

# Commands


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan a placement on the available machines, except these."""

    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Build:
    """Load the layers that moved, and begin an epoch on the stages that stayed."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a change in the household, at most until this time."""

    until_s: float


@dataclass(frozen=True, slots=True)
class Resume:
    """Replay the answers and continue them."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End every answer with this reason."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Say:
    """Notify everybody who is waiting."""

    notice: Notice


Command = Plan | Build | Wait | Resume | GiveUp | Say


def step(state: State, event: Event) -> tuple[State, tuple[Command, ...]]:
    """Return the next state and the commands to run now."""
    match state, event:
        case Steady(), Loss() if is_final(event):
            return Over(event.why), (GiveUp(event.why),)
        case Steady(), Loss():
            without = frozenset({event.machine} if event.is_gone and event.machine else ())
            planning = Planning(event, 1, without, frozenset({event.machine}))
            return planning, (Say(lost_notice(event)), Plan(without))
        case Planning(), Planned() if state.loss.why.code == BESIDE:
            return Rebuilding(state), (Build(),)  # already reported, or too quick to report
        case Planning(), Planned():
            return Rebuilding(state), (Say(_rebuilding(state.loss, event)), Build())
        case Planning(), Misfit(why):
            wait = Wait(state.loss.at_s + WAIT_S)
            short = Short(state, why, wait.until_s)
            return short, ((wait,) if why == state.last_shortage else (Say(_short(state.loss, why)), wait))
        case Planning(), Loss():
            return _again(state, event)
        case Rebuilding(planned), Loss():
            return _again(planned, event)
        case Rebuilding(), Built():
            return Steady(), (Resume(),)
        case Short(planned, why), Came():
            # the machine that came back may be one that was lost before
            planning = replace(planned, without=frozenset(), last_shortage=why)
            return planning, (Plan(),)
        case Short(_, why), Waited():
            over = wait_over_reason(why)
            return Over(over), (GiveUp(over),)
        case _:
            return state, ()  # late or repeated events change nothing


def is_final(loss: Loss, before: Loss | None = None) -> bool:
    """Return whether another attempt would only end the same way.

    before: the last interruption of the same answer, without a token since.
    """
    if loss.is_shared:
        return False
    blame = fault_table.classify(loss.why)
    match blame.retry:
        case Retry.NEVER:
            return True
        case Retry.ONCE:
            return before is not None and fault_table.classify(before.why).retry is Retry.ONCE
        case Retry.ELSEWHERE:
            # this machine cannot be left out, or another machine's engine reports the same
            if blame.fault is Fault.MEMORY:
                return not loss.machine
            again = before is not None and fault_table.classify(before.why) == blame
            return blame.fault is Fault.ENGINE and again
    return False


def beside_loss(loss: Loss) -> Loss:
    """Return the loss for the answers that did not cause this final one: they start again from their text."""
    return Loss("", "", Reason(BESIDE), loss.at_s)


def ended_in_step(loss: Loss) -> bool:
    """Return whether a process ended while it computed a step of known answers."""
    return bool(loss.slots) and fault_table.cause_code(loss.why) in fault_table.ENDED_BY_A_STEP


def may_be_model(loss: Loss) -> bool:
    """Return whether a model that has not answered yet may be the cause."""
    return ended_in_step(loss) or fault_table.classify(loss.why).fault in (Fault.MODEL, Fault.ENGINE)


def ends_process_reason(loss: Loss) -> Reason:
    """Return the reason why an answer that ended processes as often as allowed is not computed again."""
    return Reason("answer_ends_process", death_facts(loss.why, loss.name))


def death_facts(why: Reason, name: str = "") -> dict[str, Fact]:
    """Return the facts about the last process that ended, without a cure, since the message has its own."""
    worker = why.facts.get("worker") or why.facts.get("machine") or name
    how = why.facts.get("how") or ENDS.get(fault_table.cause_code(why), Reason("end_vanished"))
    return {"times": MOST_DEATHS, "worker": worker, "how": how}


def lost_notice(loss: Loss) -> Notice:
    """Return the first notice about a lost machine."""
    return Notice("lost", loss.name, loss.why)


def reconnecting_notice(name: str) -> Notice:
    """Return the notice that a machine is silent or its connection broke, and is being reconnected."""
    return Notice("reconnecting", name, Reason("recovery_reconnecting", {"machine": name}))


def reconnected_notice(name: str, seconds: float) -> Notice:
    """Return the notice that a machine is responding again and has kept everything."""
    facts: dict[str, Fact] = {"machine": name, "seconds": _rounded(seconds)}
    return Notice("continued", name, Reason("recovery_reconnected", facts), round(seconds, 1))


def continued_notice(recovered: Recovered) -> Notice:
    """Return the notice that the answer continues."""
    seconds = round(recovered.recovered_after_s, 1)
    facts: dict[str, Fact] = {"machine": recovered.machine, "seconds": _rounded(seconds)}
    return Notice("continued", recovered.machine, Reason("recovery_continued", facts), seconds)


def leaving_notice(name: str, successors: Sequence[str], seconds: float) -> Notice:
    """Return the notice that a machine is leaving but computes until others have loaded its layers."""
    facts: dict[str, Fact] = {"machine": name, "with": " and ".join(successors), "seconds": _rounded(max(1.0, seconds))}
    return Notice("leaving", name, Reason("recovery_leaving", facts), seconds)


def shortage_reason(loss: Loss, shortage: Reason) -> Reason:
    """Return the reason for a wait: the lost machine, or memory if no machine is to blame."""
    if not loss.machine:
        return Reason("recovery_short_here", {"what": shortage})
    return Reason("recovery_short", {"machine": loss.name, "what": shortage})


def wait_over_reason(short: Reason) -> Reason:
    """Return the reason why an answer ends after waiting for a machine, since nothing continues by itself now."""
    return Reason("recovery_waited", {"what": short.facts["what"], "minutes": round(WAIT_S / 60)})


def may_recover(times: int) -> bool:
    """Return whether an answer that was recovered `times` times may be recovered once more."""
    return times < MAX_RECOVERIES


def too_often_reason(loss: Loss) -> Reason:
    """Return the reason why an answer is not recovered again."""
    return Reason("recovery_too_often", {"times": MAX_RECOVERIES, "why": loss.why})


@dataclass(slots=True)
class Interruption:
    """The interruptions of one answer."""

    times: int = 0
    is_last_try: bool = False  # the last try is on the host alone, with no other machine left to exclude
    loss: Loss | None = None  # the loss since which no token has arrived
    others: str = ""  # machines that take over, as last reported
    recovered: list[Recovered] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)  # machines whose process ended in a step of this request
    calm: int = 0  # tokens since the last of these deaths

    @property
    def is_suspected(self) -> bool:
        """Return whether a process recently ended in one of its steps.

        If so, it is computed alone, so that another end would be conclusive.
        """
        return bool(self.deaths)

    def took_part(self, loss: Loss, is_special: bool) -> None:
        """Record that a process ended in a step of this answer.

        is_special: the step computed more than any plain answer needs. Otherwise, a process that merely vanished or
        hung is no evidence.
        """
        if is_special or fault_table.classify(loss.why).fault is not Fault.MACHINE:
            self.deaths.append(loss.machine)
            self.calm = 0

    def is_cause(self, loss: Loss) -> bool:
        """Return whether this answer caused another process to end, in a step of this answer alone.

        If it was a single other machine whose process ended repeatedly, that machine is excluded first, since it
        may be the cause.
        """
        if len(self.deaths) < MOST_DEATHS:
            return False
        if fault_table.classify(loss.why).fault is not Fault.MACHINE:
            return True
        return not loss.machine or len(set(self.deaths)) > 1

    def absolve(self, times: int) -> None:
        """Forget `times` of its interruptions, which another answer caused."""
        self.times = max(0, self.times - times)
        self.deaths.clear()

    def goes_on(self) -> None:
        """Count a token that arrived."""
        self.calm += bool(self.deaths)
        if self.calm >= CALM_TOKENS:
            self.deaths.clear()

    def lose(self, loss: Loss, *, alone: bool = False) -> bool:
        """Record an interruption. Return False if it was one too many.

        alone: the host computes everything from now on.
        """
        if loss.why.code == BESIDE:  # not caused by this request, so it does not count
            self.loss = self.loss or loss
            return True
        if not may_recover(self.times):
            if self.is_last_try or not alone:
                return False
            self.is_last_try = True
        self.times += 1
        self.loss = self.loss or loss
        return True

    def hear(self, notice: Notice) -> None:
        """Record what is being done about the interruption."""
        facts = notice.reason.facts
        successors = str(facts.get("with") or facts.get("to") or "")
        if successors or notice.state == "lost":
            self.others = successors

    def went_on(self, now_s: float) -> Recovered | None:
        """Record the next token. Return the recovery that it ended, if there was an interruption."""
        loss, self.loss = self.loss, None
        if loss is None:
            return None
        waited_s = now_s - loss.at_s
        done = Recovered(loss.name, loss.why, loss.silent_s, waited_s, loss.leaves, self.others)
        self.recovered.append(done)
        return done


def _again(planned: Planning, loss: Loss) -> tuple[State, tuple[Command, ...]]:
    """Return the step after another loss before the recovery had finished."""
    if is_final(loss, planned.loss):
        return Over(loss.why), (GiveUp(loss.why),)
    if planned.tries >= MAX_RECOVERIES:
        why = too_often_reason(loss)
        return Over(why), (GiveUp(why),)
    leave_out = {loss.machine} if loss.is_gone or loss.machine in planned.lost_once else set()
    without = planned.without | (leave_out - {""})
    tries, lost_once = planned.tries + 1, planned.lost_once | {loss.machine}
    planning = Planning(planned.loss, tries, without, lost_once)
    return planning, (Say(lost_notice(loss)), Plan(without))


def _rebuilding(loss: Loss, planned: Planned) -> Notice:
    seconds = max(1.0, planned.seconds + planned.replay_s)
    facts: dict[str, Fact] = {"machine": loss.name, "seconds": _rounded(seconds)}
    if not loss.name:  # no machine is to blame
        return Notice("rebuilding", loss.name, Reason("recovery_moving", facts), seconds)
    if not planned.machines and loss.leaves:
        return Notice("rebuilding", loss.name, Reason("recovery_handed_over", facts), seconds)
    if not planned.machines:
        return Notice("rebuilding", loss.name, Reason("recovery_replaying", facts), seconds)
    if planned.machines == (loss.name,):
        return Notice("rebuilding", loss.name, Reason("recovery_reloading", facts), seconds)
    facts["with"] = " and ".join(planned.machines)
    return Notice("rebuilding", loss.name, Reason("recovery_rebuilding", facts), seconds)


def _short(loss: Loss, why: Reason) -> Notice:
    return Notice("short", loss.name, why)


def _rounded(seconds: float) -> float:
    """Return seconds with only as many digits as people care about: 0.4, 3, 48."""
    return round(seconds, 1) if seconds < 2 else round(seconds)


REMEMBERED_S = 600.0  # how long a failure is remembered
MOST_FAILURES = 2  # failures within that time after which a machine is excluded
MOST_MACHINES = 64  # maximum machines whose failures are remembered

# An owner may refuse as often as they like. Everything else counts, even a machine's report that the model is bad: the
# report is believed and ends an answer, but after the second one the next answers are computed elsewhere.
_NOT_COUNTED = frozenset({Fault.OWNER, Fault.HOUSEHOLD, Fault.NEWS})


class RecentFailures:
    """The recent failures of a household's machines. The next placement avoids machines that fail repeatedly.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at_s: dict[str, list[float]] = {}

    def note(self, loss: Loss) -> None:
        """Record that a machine was lost while it computed, or ended an answer."""
        if not loss.machine or loss.leaves or fault_table.classify(loss.why).fault in _NOT_COUNTED:
            return
        times = self._at_s.pop(loss.machine, [])
        self._at_s[loss.machine] = [*times, self._clock()][-MOST_FAILURES:]
        while len(self._at_s) > MOST_MACHINES:
            del self._at_s[next(iter(self._at_s))]

    def forgive(self, machines: Iterable[str]) -> None:
        """Forget the last failure of each of these machines, because an answer that is over ended their processes."""
        for machine in machines:
            if times := self._at_s.get(machine):
                times.pop()

    def forget(self) -> None:
        """Forget all failures. A person who places a model gives every machine another chance."""
        self._at_s.clear()

    def left_out(self) -> frozenset[str]:
        """Return the machines that failed so often that the next placement avoids them if it can."""
        since_s = self._clock() - REMEMBERED_S
        return frozenset(
            machine for machine, times in self._at_s.items() if len(times) >= MOST_FAILURES and times[0] > since_s
        )
