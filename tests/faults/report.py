"""The results of the matrix as a page of tables: how many runs, how many passed, and how long they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set

from tests.faults import proofs, slowed, soak
from tests.faults.outcome import Kind, Outcome, quantile

HEAD = """# Faults and attacks

`make faults` writes this page: {n} runs, of which {failed} failed; {late} more succeeded, but took longer than their
row allows. Each run is a line of [faults.jsonl](faults.jsonl), with its commit, its figures, its seed and the kind of
machine that made it; `make faults ARGS=--resume` makes the runs that are missing.

Real nodes run on one computer, with the Guide in the split 2, 2, 2, 2 over a host and two lenders, a spare machine,
and f32 between them. A reader asks for an answer of {tokens} tokens, a fault strikes, and every token that the reader
gets is compared with the undisturbed greedy answer: none may be lost, repeated or changed.

{machines}0 failures in n runs bound the rate at 3/n (95 %). A quantile is given only if there are enough runs for it:
p50 from 2 runs, p90 from 10, p99 from 100. {missing}{missed}
"""
MISSING = "**{n} of {all} kinds of runs are missing; the last section names them.** "
MISSED = "{n} more runs do not count: their fault struck no layers, because these had already moved."
TOLD = """
*Told*: from the fault until the reader's stream says what happened. *Goes on*: from the fault to the first token
after the longest gap. *In time*: both within these limits. A death: told in 1 s, goes on in 10 s. A machine that is
silent or stopped for good: told in 5 s, goes on in 15 s. A machine that returns in time: goes on 1 s later. A row
without a recovery went on with what its stages had kept. *F8*: the clocks that a node's program reads are changed; a
clock that is set must not be noticed at all, and a machine that believes it slept goes on in 15 s. *Put to sleep*,
*shut down*: logind announces it (played on a bus of the machine's own) and waits for up to 5 s, as the node asked it
to. *Signed out*: all processes, workers too, get SIGTERM and SIGHUP. Told in 1 s, goes on in 10 s, and the machine
leaves once.
"""
PROCESSES = "\n## Processes that die or stop\n" + TOLD
SPREAD = """
| | N | Passed | In time | Told p50 / p90 / p99 / worst | Goes on p50 / p90 / p99 / worst |
|---|---|---|---|---|---|
"""
ROWS = """
| Row | Fault | Phase | N | Passed | In time | Recovered anew | Told p50 / worst | Goes on p50 / worst |
|---|---|---|---|---|---|---|---|---|
"""
HOST = """
## The host's node is killed and started again

Its reader is told, its lenders stop computing (*quiet*: time after the death) and free what they held (*free*: time
after the new start). Then the same question gets the same answer.

| N | Passed | In time | Told worst | Quiet p50 / worst | Free p50 / worst |
|---|---|---|---|---|---|
"""
SLOWED = """
## Machines that become slow

A quota in periods of 0.1 s leaves the first lender a share of one processor. It must not be taken for dead, and no
token may take longer than a second. *Replaced*: after the answer, while nothing runs, once layers have been there for
a minute.

| Row | Fault | N | Passed | In time | Gap p50, longest / clean | Replaced p50 / worst |
|---|---|---|---|---|---|---|
"""
NETWORK = """
## The network

Each lender is in a network namespace of its own, at the end of a cable that has the row's fault in both directions,
for real packets (testbed/fault_link.py). *Gap*: between two tokens at the 95th percentile, beside the undisturbed
one; the limit is three times that plus 250 ms. *Back*: from the end of the fault until every machine is online again.

| Row | Fault | Phase | N | Passed | In time | Anew | Told worst | Goes on p50 / worst | Gap p50 / clean | Back worst |
|---|---|---|---|---|---|---|---|---|---|---|
"""
SIEGES = """
## Attacks while an answer runs

A host and a lender answer without a pause while another process, at the lowest priority, attacks one of their ports.
*Stall*: the gap between two tokens at the 99th percentile, before and during the attack; it may grow by 50 ms.
*Memory*: that of both nodes before, after a tenth, and at the end.

| Row | Attack | Tries | Sieges withstood | Stall before / during / worst | Memory, MiB | Tries a second |
|---|---|---|---|---|---|---|
"""
SLOW = """
## Slow connections

All ports are visited at once while a host and a lender answer without a pause. Each port gets one kind after the
other.

| Row | Kind of connection, and port | Connections | Passed | Open at most |
|---|---|---|---|---|
"""
SOAK = """
## Faults for hours

A random fault of the kinds above every 30 s, or as fast as they can follow; each is judged as above. The memory
column is the growth of the host's node for each hour of 120 faults since its caches were full, which is after a third
of the faults and at least 240. Fewer than 120 faults after that say nothing about a slope: the first run ended before
its caches were full, and was judged by how they filled.

| Row | Faults, and pace | Commit | Hours | Faults | Passed | MB in 120 faults | More open files and sockets |
|---|---|---|---|---|---|---|---|
"""
PROOFS = """
## Rows that other tests prove

These need no household of processes and are part of `make test` and `make long`; several cases of a row are often one
test. Tests that were skipped on this computer are not counted.

| Row | Case | Tests | Passed | Seconds | Where |
|---|---|---|---|---|---|
"""


def written(outcomes: Sequence[Outcome], n_tokens: int, expected: Set[Kind], simulated: str = "") -> str:
    """Return the page. `wanted`: all kinds that the whole matrix has; `simulated`: its part on the simulation."""
    every, outcomes = outcomes, [outcome for outcome in outcomes if outcome.struck or not outcome.passed]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    absent = expected - {outcome.kind for outcome in outcomes}
    text = HEAD.format(
        n=len(outcomes), failed=len(failed), tokens=n_tokens,
        late=sum(outcome.passed and not outcome.in_time for outcome in outcomes),
        machines=_machines(outcomes),
        missing=MISSING.format(n=len(absent), all=len(expected)) if absent else "",
        missed=MISSED.format(n=len(every) - len(outcomes)) if len(every) > len(outcomes) else "",
    )  # fmt: skip
    processes = [outcome for outcome in outcomes if outcome.row in DEATHS and outcome.phase not in APART]
    if processes:
        text += PROCESSES + _commits(processes) + SPREAD + "".join(_spreads(processes)) + ROWS
        text += "".join(map(_row, _groups(processes)))
    for head, rows, line in SECTIONS:
        chosen = [
            outcome
            for outcome in outcomes
            if outcome.row in rows
            and (outcome.phase == "slow") == (head is SLOW)
            and (outcome.phase == slowed.PHASE) == (head is SLOWED)
            and outcome.phase != proofs.PHASE
        ]
        if chosen:
            title, table = head.rsplit("\n\n", 1)
            text += f"{title}\n{_commits(chosen)}\n{table}" + "".join(map(line, _groups(chosen)))
    proved = [outcome for outcome in outcomes if outcome.phase == proofs.PHASE]
    if proved:
        title, table = PROOFS.rsplit("\n\n", 1)
        text += f"{title}\n{_commits(proved)}\n{table}" + "".join(map(_proof, _groups(proved)))
    text += simulated
    if failed:
        text += "\n## What failed\n\n"
        text += "".join(
            f"- {outcome.row}, {outcome.name}, {outcome.phase}: {outcome.why} (commit {outcome.commit or 'unknown'})\n"
            for outcome in failed
        )
    if absent:
        text += "\n## Not run\n\n"
        text += "".join(f"- {', '.join(kind)}\n" for kind in sorted(absent, key=_order))
    return text


def _commits(outcomes: Sequence[Outcome]) -> str:
    """Return the commits that ran, with the number of runs if there are several. `dirty` marks uncommitted changes."""
    commits = Counter(outcome.commit or "unknown" for outcome in outcomes)
    if len(commits) == 1:
        return f"\nCommit {next(iter(commits))}.\n"
    text = ", ".join(f"{name} ({n})" for name, n in commits.items())
    return f"\nCommits, and the runs of each: {text}.\n"


def _machines(outcomes: Sequence[Outcome]) -> str:
    """Return the machines on which the runs were made."""
    kinds = Counter(outcome.made_on or "a kind of machine that is not known" for outcome in outcomes)
    return "".join(f"{n} of them on {name}. " for name, n in kinds.most_common())


def _groups(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    groups: dict[Kind, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.kind, []).append(outcome)
    return [groups[kind] for kind in sorted(groups, key=_order)]


def _order(kind: Kind) -> tuple[object, ...]:
    """Return the sort key: by row, then by name with its numbers as numbers."""
    words = [(0, float(word), "") if _is_number(word) else (1, 0.0, word) for word in kind[1].split()]
    return kind[0], words, kind[2]


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def _spreads(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the spread of each row's times, without loads, during which no answer was running."""
    rows: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.phase != "load":
            deed = "kill -9" if outcome.row == "F1" else outcome.name.partition(",")[0]
            deed = {"F7": "two machines", "F8": "clocks"}.get(outcome.row, deed)
            rows.setdefault(f"{outcome.row}, {deed}", []).append(outcome)
    return [
        f"| {name} | {_counted(row)} | {_times(row, _said, ALL)} | {_times(row, _next, ALL)} |\n"
        for name, row in sorted(rows.items())
    ]


def _row(outcomes: list[Outcome]) -> str:
    return (
        f"| {_named(outcomes)} | {outcomes[0].phase} | {_counted(outcomes)} | {_anew(outcomes)} "
        f"| {_times(outcomes, _said, ENDS)} | {_times(outcomes, _next, ENDS)} |\n"
    )


def _network(outcomes: list[Outcome]) -> str:
    gap, usual = _fact("gap_p95_s"), _fact("usual_gap_p95_s")
    return (
        f"| {_named(outcomes)} | {outcomes[0].phase} | {_counted(outcomes)} | {_anew(outcomes)} "
        f"| {_times(outcomes, _said, WORST)} | {_times(outcomes, _next, ENDS)} "
        f"| {_times(outcomes, gap, MIDDLE)} / {_times(outcomes, usual, MIDDLE)} "
        f"| {_times(outcomes, _fact('back_s'), WORST)} |\n"
    )


def _slowed(outcomes: list[Outcome]) -> str:
    gap, longest, usual = _fact("gap_p50_s"), _fact("gap_worst_s"), _fact("usual_gap_p95_s")
    return (
        f"| {_named(outcomes)} | {_counted(outcomes)} | {_times(outcomes, gap, MIDDLE)}, "
        f"{_times(outcomes, longest, WORST)} / {_times(outcomes, usual, MIDDLE)} "
        f"| {_times(outcomes, _fact('moved_s'), ENDS)} |\n"
    )


def _host(outcomes: list[Outcome]) -> str:
    quiet, free = _fact("quiet_s"), _fact("free_s")
    return (
        f"| {_counted(outcomes)} | {_times(outcomes, _said, WORST)} "
        f"| {_times(outcomes, quiet, ENDS)} | {_times(outcomes, free, ENDS)} |\n"
    )


def _siege(outcomes: list[Outcome]) -> str:
    def most(name: str) -> float:
        return max(outcome.facts.get(name, 0.0) for outcome in outcomes)

    memory = " → ".join(f"{most(f'{when}_bytes') / (1 << 20):.0f}" for when in ("before", "tenth", "after"))
    tries = sum(outcome.facts.get("n", 0.0) for outcome in outcomes)
    stalls = " / ".join(f"{1000 * most(name):.0f} ms" for name in ("usual_p99_s", "p99_s", "worst_s"))
    seconds = sum(outcome.facts.get("took_s", 0.0) for outcome in outcomes) or 1.0
    good = sum(outcome.passed and outcome.in_time for outcome in outcomes)
    done = f"{good} of {len(outcomes)}"
    return f"| {_named(outcomes)} | {tries:.0f} | {done} | {stalls} | {memory} | {tries / seconds:.0f} |\n"


def _slow(outcomes: list[Outcome]) -> str:
    tries = sum(outcome.facts["n"] for outcome in outcomes)
    good = "yes" if all(outcome.passed for outcome in outcomes) else "no"
    return f"| {_named(outcomes)} | {tries:.0f} | {good} | {_times(outcomes, _fact('worst_s'), WORST)} |\n"


def _soak(outcomes: list[Outcome]) -> str:
    """A line for each: hours of different builds do not add up."""
    return "".join(map(_soak_line, outcomes))


def _soak_line(outcome: Outcome) -> str:
    facts = outcome.facts
    is_long = facts.get("warm_hours", 0) >= soak.LEAST_HOURS
    slope = f"{facts.get('bytes_per_hour', 0) / 1e6:.2f}" if is_long else "–"
    return (
        f"| {_named([outcome])} | {outcome.commit} | {facts.get('hours', 0):.2f} | {facts.get('n', 0):.0f} "
        f"| {'yes' if outcome.passed else 'no'} | {slope} | {facts.get('more_handles', 0):.0f} |\n"
    )


def _proof(outcomes: list[Outcome]) -> str:
    last = outcomes[-1]
    facts = last.facts
    where = proofs.BY_NAME[last.kind].where if last.kind in proofs.BY_NAME else ()  # of an older book
    files = ", ".join(dict.fromkeys(f"`{name.partition('::')[0]}`" for name in where))
    return (
        f"| {_named(outcomes)} | {facts.get('n', 0):.0f} | {facts.get('passed', 0):.0f} "
        f"| {facts.get('took_s', 0):.0f} | {files} |\n"
    )


Value = Callable[[Outcome], float | None]
SECTIONS: tuple[tuple[str, tuple[str, ...], Callable[[list[Outcome]], str]], ...] = (
    (SLOWED, ("F2",), _slowed),
    (HOST, ("F6",), _host),
    (NETWORK, ("F3", "F4", "F5", "F9", "S10"), _network),
    (SIEGES, ("S1", "S2", "S6"), _siege),
    (SLOW, ("S4",), _slow),
    (SOAK, ("F13",), _soak),
)
DEATHS, APART = ("F1", "F2", "F7", "F8"), (proofs.PHASE, slowed.PHASE)
MIDDLE, WORST, ENDS, ALL = (0.5,), (1.0,), (0.5, 1.0), (0.5, 0.9, 0.99, 1.0)


def _said(outcome: Outcome) -> float | None:
    return outcome.said_s


def _next(outcome: Outcome) -> float | None:
    return outcome.next_token_s


def _fact(name: str) -> Value:
    return lambda outcome: outcome.facts.get(name)


def _times(outcomes: Sequence[Outcome], value: Value, shares: Sequence[float]) -> str:
    known = [item for item in map(value, outcomes) if item is not None]
    alone = len(shares) == 1  # of one run, it is what there is to say
    results = [
        quantile(known, share) if alone or round(len(known) * (1 - share), 6) >= (share < 1) else None
        for share in shares
    ]
    return " / ".join("–" if item is None else f"{item:.2f} s" for item in results)


def _named(outcomes: Sequence[Outcome]) -> str:
    return f"{outcomes[0].row} | {outcomes[0].name}"


def _counted(outcomes: Sequence[Outcome]) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    return f"{len(outcomes)} | {passed} | {sum(outcome.in_time for outcome in outcomes)}"


def _anew(outcomes: Sequence[Outcome]) -> str:
    return str(sum(outcome.recoveries > 0 for outcome in outcomes))
