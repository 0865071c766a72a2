"""docs/hostile.md: what hostile members and strangers achieved, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.faults.outcome import Kind, Outcome, quantile

WHO = {
    "lender": "A lender that lies",
    "host": "A host that floods and lies",
    "admin": "An admin that signs anything",
    "guest": "A guest that asks for the impossible",
    "stranger": "Strangers before the doors",
}
HEAD = """# Hostile members and strangers

`make hostile` (tests/hostile) writes this page from the runs in `hostile.jsonl`. Each run has a seed. Hostile lenders
are real nodes with lies patched in; hosts, guests and strangers are programs beside the household. Meanwhile a host
and an honest lender answer without a pause, and an honest member returns. After every tenth run one of the nodes is
stopped and must start again. Each admin has a household of its own, which is started again after its run.

*Not started*: nodes that did not start again. *Named*: honest machines that were blamed. *Lost*: answers of others
that ended with an error or differed. *Back*: time until a member that returned meanwhile was connected (for the
pairing window: until a new machine was paired), median and longest. *Memory*: the largest growth of all nodes
together since the first run; a node that was started again begins anew.
"""


def written(outcomes: Sequence[Outcome], kinds: Iterable[Kind]) -> str:
    known = list(kinds)
    counted = [outcome for outcome in outcomes if outcome.kind in known]
    parts = [HEAD, _sum(counted)]
    for role, title in WHO.items():
        rows = [kind for kind in known if kind[0] == role]
        parts.append(f"## {title}\n\n{_table(rows, counted)}")
    failed = [outcome for outcome in counted if not outcome.passed]
    if failed:
        lines = [
            f"- {outcome.row}: *{outcome.name}*, seed {outcome.seed}, at {outcome.commit}: {outcome.why[:200]}"
            for outcome in failed[-40:]
        ]
        parts.append("## What failed, the latest last\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _sum(counted: Sequence[Outcome]) -> str:
    back = [outcome.facts.get("back_s") for outcome in counted]
    longest = quantile(back, 1.0)
    return (
        f"In all: {len(counted)} runs of {len({outcome.kind for outcome in counted})} kinds, "
        f"{sum(outcome.passed for outcome in counted)} passed. "
        f"{_total(counted, 'not_started')} nodes that did not start again, "
        f"{_total(counted, 'named')} honest machines named, {_total(counted, 'lost')} answers of others lost; "
        f"a member was back after {_s(quantile(back, 0.5))}, at most {_s(longest)} "
        f"({sum(outcome.passed and not outcome.in_time for outcome in counted)} times later than 10 s).\n"
    )


def _table(rows: Sequence[Kind], counted: Sequence[Outcome]) -> str:
    lines = [
        "| kind | runs | passed | not started | named | lost | back | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in rows:
        outcomes = [outcome for outcome in counted if outcome.kind == kind]
        back = [outcome.facts.get("back_s") for outcome in outcomes]
        grown = max((outcome.facts.get("grown_bytes", 0.0) for outcome in outcomes), default=0.0)
        lines.append(
            f"| {kind[1]} | {len(outcomes)} | {sum(outcome.passed for outcome in outcomes)} "
            f"| {_total(outcomes, 'not_started')} "
            f"| {_total(outcomes, 'named')} | {_total(outcomes, 'lost')} "
            f"| {_s(quantile(back, 0.5))} / {_s(quantile(back, 1.0))} "
            f"| {round(grown) >> 20} MiB |"
        )
    return "\n".join(lines) + "\n"


def _total(outcomes: Iterable[Outcome], fact: str) -> int:
    return round(sum(outcome.facts.get(fact, 0.0) for outcome in outcomes))


def _s(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
