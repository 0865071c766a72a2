"""The recovery of a placement that fails during answers: reconnect, plan again, replay, wait or give up.

`step` makes the decisions, and app/inference/pipeline/recovery_loop.py runs the commands. SAFETY.md 6 explains the
rules. In short: A broken connection is reopened within RECONNECT_S. If that fails, the layers are placed again and the
recorded tokens are replayed. If memory is too short, the text is preserved until the lost machine returns. An answer is
recovered at most three times, and once more if the host can do without all other machines. Then it ends with a clear
error. A failure that would only repeat (app/core/recovery/fault_table.py) ends the answer immediately, with its own
message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.core.errors import Fact, Reason
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault, Retry

RECONNECT_S = 5.0  # the limit on reconnecting to a stage, counted from its last sign of life
MAX_RECOVERIES = 3  # per request
PROCESS_ENDS = {  # phrases for ends of processes that reported no reason themselves
    "engine_gave_up": Reason("end_gave_up"),
    "stage_failed": Reason("end_not_computed"),
    "worker_crashed": Reason("end_crashed"),
    "worker_hung": Reason("end_hung"),
}
MOST_DEATHS = 2  # the number of processes that may end in steps of one request; the second is no coincidence
CALM_TOKENS = 32  # a request is no longer suspected after this many more tokens
BYSTANDER = "recovery_beside"
# the wait for a machine without which memory is too short: as long as lenders keep the layers of a lost host
WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a machine: which machine, why, and when it was detected."""

    machine: str  # its id, or "" if no single machine is to blame
    name: str
    why: Reason
    at_s: float
    silent_s: float = 0.0  # how long the machine had been silent by then
    is_gone: bool = False  # it is unreachable or must not be used, so the next plan excludes it
    leaves: bool = False  # it announced its departure and has computed until now
    slots: frozenset[int] = frozenset()  # the slots in the step that ended the process, if known
    is_shared: bool = False  # the step contained several answers, and it is not known yet which of them is the cause


@dataclass(frozen=True, slots=True)
class Recovered:
    """A completed recovery of one answer."""

    machine: str  # its name
    why: Reason
    detected_after_s: float
    recovered_after_s: float  # from the detection to the next token
    left: bool = False  # the machine announced its departure and computed until others took over
    others: str = ""  # names of the machines that took over its layers, or "" if none had to load any


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about a recovery for people who are waiting for an answer."""

    state: str  # "reconnecting", "lost", "leaving", "rebuilding", "short", "continued"
    machine: str  # the name of the lost machine
    reason: Reason
    seconds: float | None = None  # how long it will take, or how long it took


# States


@dataclass(frozen=True, slots=True)
class Steady:
    """The state in which all stages are working."""


@dataclass(frozen=True, slots=True)
class Planning:
    """The state in which the planner computes a new placement."""

    loss: Loss
    tries: int = 1
    without: frozenset[str] = frozenset()
    lost_once: frozenset[str] = frozenset()  # machines that were lost once during this recovery
    last_shortage: Reason | None = None  # the latest shortage that was reported


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The state in which the moved stages are being loaded."""

    planned: Planning


@dataclass(frozen=True, slots=True)
class Short:
    """The state in which no placement fits on the remaining machines. A machine that joins may change this."""

    planned: Planning
    why: Reason
    until_s: float


@dataclass(frozen=True, slots=True)
class Over:
    """The state after the recovery has failed."""

    why: Reason


State = Steady | Planning | Rebuilding | Short | Over

# Events


@dataclass(frozen=True, slots=True)
class Planned:
    """An event that carries a new placement."""

    machines: tuple[str, ...]  # names of the machines that take over layers
    seconds: float  # time to load them
    replay_s: float = 0.0  # further time until the next token


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """An event reporting that no placement fits."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Built:
    """An event reporting that all stages of the new placement are open."""


@dataclass(frozen=True, slots=True)
class HouseholdChanged:
    """An event reporting that the household may have changed since the last plan failed."""


@dataclass(frozen=True, slots=True)
class WaitExpired:
    """An event reporting that the maximum waiting time is over."""


Event = Loss | Planned | PlanFailed | Built | HouseholdChanged | WaitExpired

# Commands


@dataclass(frozen=True, slots=True)
class Plan:
    """The command to plan a placement on the available machines. Machines in `without` are excluded."""

    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Build:
    """The command to load the layers that moved, and to begin a new epoch on the stages that did not."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The command to wait until the household changes, but no longer than `until_s`."""

    until_s: float


@dataclass(frozen=True, slots=True)
class Resume:
    """The command to replay the answers and continue them."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The command to end every answer with this reason."""

    why: Reason


@dataclass(frozen=True, slots=True)
class Notify:
    """The command to notify everybody who is waiting for an answer."""

    notice: Notice


Command = Plan | Build | Wait | Resume | GiveUp | Notify


def step(state: State, event: Event) -> tuple[State, tuple[Command, ...]]:
    """Return the next state and the commands to run now."""
    match state, event:
        case Steady(), Loss() if is_final(event):
            return Over(event.why), (GiveUp(event.why),)
        case Steady(), Loss():
            without = frozenset({event.machine} if event.is_gone and event.machine else ())
            planning = Planning(event, 1, without, frozenset({event.machine}))
            return planning, (Notify(lost_notice(event)), Plan(without))
        case Planning(), Planned() if state.loss.why.code == BYSTANDER:
            return Rebuilding(state), (Build(),)  # it was reported already, or is too quick to report
        case Planning(), Planned():
            return Rebuilding(state), (Notify(_rebuilding(state.loss, event)), Build())
        case Planning(), PlanFailed(why):
            wait = Wait(state.loss.at_s + WAIT_S)
            short = Short(state, why, wait.until_s)
            return short, ((wait,) if why == state.last_shortage else (Notify(_short(state.loss, why)), wait))
        case Planning(), Loss():
            return _again(state, event)
        case Rebuilding(planned), Loss():
            return _again(planned, event)
        case Rebuilding(), Built():
            return Steady(), (Resume(),)
        case Short(planned, why), HouseholdChanged():
            # a machine that was lost before may have come back
            planning = replace(planned, without=frozenset(), last_shortage=why)
            return planning, (Plan(),)
        case Short(_, why), WaitExpired():
            over = wait_over_reason(why)
            return Over(over), (GiveUp(over),)
        case _:
            return state, ()  # late or repeated events change nothing


def is_final(loss: Loss, before: Loss | None = None) -> bool:
    """Return whether another attempt would only fail in the same way.

    before: the previous loss during the same answer, if no token has arrived since.
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
            # either no machine can be excluded, or the engine of another machine reports the same
            if blame.fault is Fault.MEMORY:
                return not loss.machine
            again = before is not None and fault_table.classify(before.why) == blame
            return blame.fault is Fault.ENGINE and again
    return False


def bystander_loss(loss: Loss) -> Loss:
    """Return the loss to record for answers that did not cause this final loss. They restart from their text."""
    return Loss("", "", Reason(BYSTANDER), loss.at_s)


def ended_in_step(loss: Loss) -> bool:
    """Return whether a process ended during a step whose answers are known."""
    return bool(loss.slots) and fault_table.cause_code(loss.why) in fault_table.ENDED_BY_A_STEP


def may_be_model(loss: Loss) -> bool:
    """Return whether the model may have caused the loss, for a model that has not produced an answer yet."""
    return ended_in_step(loss) or fault_table.classify(loss.why).fault in (Fault.MODEL, Fault.ENGINE)


def ends_process_reason(loss: Loss) -> Reason:
    """Return the reason for abandoning an answer after it has ended too many processes."""
    return Reason("answer_ends_process", death_facts(loss.why, loss.name))


def death_facts(why: Reason, name: str = "") -> dict[str, Fact]:
    """Return the facts about the process that ended last.

    They include no remedy because the message already has one.
    """
    worker = why.facts.get("worker") or why.facts.get("machine") or name
    how = why.facts.get("how") or PROCESS_ENDS.get(fault_table.cause_code(why), Reason("end_vanished"))
    return {"times": MOST_DEATHS, "worker": worker, "how": how}


def lost_notice(loss: Loss) -> Notice:
    """Return the notice that a machine was lost."""
    return Notice("lost", loss.name, loss.why)


def reconnecting_notice(name: str) -> Notice:
    """Return the notice that a machine is silent or was disconnected, and that this machine is trying to reconnect."""
    return Notice("reconnecting", name, Reason("recovery_reconnecting", {"machine": name}))


def reconnected_notice(name: str, seconds: float) -> Notice:
    """Return the notice that a machine responds again and has lost no data."""
    facts: dict[str, Fact] = {"machine": name, "seconds": _rounded(seconds)}
    return Notice("continued", name, Reason("recovery_reconnected", facts), round(seconds, 1))


def continued_notice(recovered: Recovered) -> Notice:
    """Return the notice that the answer continues."""
    seconds = round(recovered.recovered_after_s, 1)
    facts: dict[str, Fact] = {"machine": recovered.machine, "seconds": _rounded(seconds)}
    return Notice("continued", recovered.machine, Reason("recovery_continued", facts), seconds)


def leaving_notice(name: str, successors: Sequence[str], seconds: float) -> Notice:
    """Return the notice that a machine is leaving but computes until other machines have loaded its layers."""
    facts: dict[str, Fact] = {"machine": name, "with": " and ".join(successors), "seconds": _rounded(max(1.0, seconds))}
    return Notice("leaving", name, Reason("recovery_leaving", facts), seconds)


def shortage_reason(loss: Loss, shortage: Reason) -> Reason:
    """Return the reason for waiting: a lost machine or, if no machine was lost, a lack of memory."""
    if not loss.machine:
        return Reason("recovery_short_here", {"what": shortage})
    return Reason("recovery_short", {"machine": loss.name, "what": shortage})


def wait_over_reason(short: Reason) -> Reason:
    """Return the reason for ending an answer because the wait for a machine took too long."""
    return Reason("recovery_waited", {"what": short.facts["what"], "minutes": round(WAIT_S / 60)})


def may_recover(times: int) -> bool:
    """Return whether an answer that has been recovered `times` times may be recovered again."""
    return times < MAX_RECOVERIES


def too_often_reason(loss: Loss) -> Reason:
    """Return the reason for not recovering an answer again."""
    return Reason("recovery_too_often", {"times": MAX_RECOVERIES, "why": loss.why})


@dataclass(slots=True)
class InterruptionRecord:
    """The record of one answer's interruptions and recoveries."""

    times: int = 0
    is_last_try: bool = False  # the last attempt uses the host alone, so no other machine is left to exclude
    loss: Loss | None = None  # the first loss since the latest token
    others: str = ""  # the machines that take over, according to the latest notice
    recovered: list[Recovered] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)  # machines whose process ended in a step of this request
    calm: int = 0  # tokens since the last of these deaths

    @property
    def is_suspected(self) -> bool:
        """Return whether a process recently ended during a step of this answer.

        Such an answer is computed alone, so that another death would be conclusive.
        """
        return bool(self.deaths)

    def record_death(self, loss: Loss, is_special: bool) -> None:
        """Record that a process ended during a step of this answer.

        is_special: whether the step computed more than a plain answer needs. Otherwise, a process that merely vanished
        or hung is no evidence against the answer.
        """
        if is_special or fault_table.classify(loss.why).fault is not Fault.MACHINE:
            self.deaths.append(loss.machine)
            self.calm = 0

    def is_cause(self, loss: Loss) -> bool:
        """Return whether this answer is to blame for the loss of a process that was computing it alone.

        If all its deaths occurred on one other machine, that machine is excluded first because it may be the cause.
        """
        if len(self.deaths) < MOST_DEATHS:
            return False
        if fault_table.classify(loss.why).fault is not Fault.MACHINE:
            return True
        return not loss.machine or len(set(self.deaths)) > 1

    def absolve(self, times: int) -> None:
        """Remove `times` interruptions from the count. Another answer caused them."""
        self.times = max(0, self.times - times)
        self.deaths.clear()

    def count_token(self) -> None:
        """Record a token. After enough tokens, the answer is no longer suspected."""
        self.calm += bool(self.deaths)
        if self.calm >= CALM_TOKENS:
            self.deaths.clear()

    def record_loss(self, loss: Loss, *, alone: bool = False) -> bool:
        """Record a loss. Return whether the answer may be recovered.

        alone: whether the host computes everything from now on.
        """
        if loss.why.code == BYSTANDER:  # another request caused it, so it does not count
            self.loss = self.loss or loss
            return True
        if not may_recover(self.times):
            if self.is_last_try or not alone:
                return False
            self.is_last_try = True
        self.times += 1
        self.loss = self.loss or loss
        return True

    def record_notice(self, notice: Notice) -> None:
        """Record the machines that take over according to a notice."""
        facts = notice.reason.facts
        successors = str(facts.get("with") or facts.get("to") or "")
        if successors or notice.state == "lost":
            self.others = successors

    def record_recovery(self, now_s: float) -> Recovered | None:
        """Record the next token. Return the recovery that it completes, or None if the answer was not interrupted."""
        loss, self.loss = self.loss, None
        if loss is None:
            return None
        waited_s = now_s - loss.at_s
        done = Recovered(loss.name, loss.why, loss.silent_s, waited_s, loss.leaves, self.others)
        self.recovered.append(done)
        return done


def _again(planned: Planning, loss: Loss) -> tuple[State, tuple[Command, ...]]:
    """Return the next state and the commands to run after another loss during a recovery."""
    if is_final(loss, planned.loss):
        return Over(loss.why), (GiveUp(loss.why),)
    if planned.tries >= MAX_RECOVERIES:
        why = too_often_reason(loss)
        return Over(why), (GiveUp(why),)
    leave_out = {loss.machine} if loss.is_gone or loss.machine in planned.lost_once else set()
    without = planned.without | (leave_out - {""})
    tries, lost_once = planned.tries + 1, planned.lost_once | {loss.machine}
    planning = Planning(planned.loss, tries, without, lost_once)
    return planning, (Notify(lost_notice(loss)), Plan(without))


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
    if loss.why.code == "lend_taken_back":
        return Notice("rebuilding", loss.name, Reason("recovery_taken_back", facts), seconds)
    return Notice("rebuilding", loss.name, Reason("recovery_rebuilding", facts), seconds)


def _short(loss: Loss, why: Reason) -> Notice:
    return Notice("short", loss.name, why)


def _rounded(seconds: float) -> float:
    """Return seconds rounded to a precision that people care about, such as 0.4, 3 or 48."""
    return round(seconds, 1) if seconds < 2 else round(seconds)


REMEMBERED_S = 600.0  # how long a failure is remembered
MOST_FAILURES = 2  # the number of failures within that time after which a machine is avoided
MOST_MACHINES = 64  # the maximum number of machines whose failures are remembered

# An owner may refuse as often as they like. All other faults count, even a report that the model is bad: it is believed
# and ends an answer, but after the second such report, the next answers are computed elsewhere.
_NOT_COUNTED = frozenset({Fault.OWNER, Fault.HOUSEHOLD, Fault.NEWS})


class RecentFailures:
    """The recent failures of a household's machines. The next placement avoids machines that failed repeatedly.

    clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at_s: dict[str, list[float]] = {}

    def note(self, loss: Loss) -> None:
        """Record that a machine was lost while computing, or that its failure ended an answer."""
        if not loss.machine or loss.leaves or fault_table.classify(loss.why).fault in _NOT_COUNTED:
            return
        times = self._at_s.pop(loss.machine, [])
        self._at_s[loss.machine] = [*times, self._clock()][-MOST_FAILURES:]
        while len(self._at_s) > MOST_MACHINES:
            del self._at_s[next(iter(self._at_s))]

    def forgive(self, machines: Iterable[str]) -> None:
        """Forget the latest failure of each of these machines. An answer that has ended was to blame."""
        for machine in machines:
            if times := self._at_s.get(machine):
                times.pop()

    def forget(self) -> None:
        """Forget all failures. Every machine gets another chance when a person loads a model."""
        self._at_s.clear()

    def left_out(self) -> frozenset[str]:
        """Return the machines that failed so often that the next placement should avoid them."""
        since_s = self._clock() - REMEMBERED_S
        return frozenset(
            machine for machine, times in self._at_s.items() if len(times) >= MOST_FAILURES and times[0] > since_s
        )
