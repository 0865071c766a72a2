"""A plan as JSON holds every number that its sentences are made of, and the command line reads it."""

from __future__ import annotations

from rich.console import Console

from app.api.plans import LoadedModel, Replica, Stage
from app.api.plans import Plan as Shown
from app.cli.views.placement_view import plan_view
from app.core.errors import Reason
from app.core.household.household import Connected, Described, Household, Machine, SilenceNoted, apply
from app.core.household.link import LinkKind
from app.core.ids import MachineId
from app.core.planner.advice import advise
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.core.reasons import said
from app.node.snapshot import describe_machines, describe_plan, explain, with_current_names
from testbed.households import MIB, link, machine, model, speed

HOST = machine("den", 900, speed(0.004))
LENDERS = [
    machine("attic", 1900, speed(0.004), link(0.05, 1e6, LinkKind.WIFI)),
    machine("old", 900, speed(0.2), link()),
    machine("new", 900, None),
]
MODEL = model([100 * MIB] * 16)
WORK = Workload(1024, users=2)


def described() -> Shown:
    placed = plan(HOST, LENDERS, MODEL, WORK)
    lends = {candidate.id: candidate.lends_bytes for candidate in (HOST, *LENDERS)}
    advice = advise(HOST, LENDERS, MODEL, WORK, placed)
    return describe_plan(placed, MODEL, lends, advice)


def test_every_number_behind_the_words_is_there() -> None:
    sent = described()
    known = sent.forecast
    assert known is not None
    assert sent.first_token is not None
    assert known.request_s > known.ttft_s > 0
    assert {(share.part, share.machine) for share in known.shares} == {
        ("machine", "den"), ("machine", "attic"), ("link", "attic"),
    }  # fmt: skip
    assert [item.shape for item in sent.alternatives] == ["split"]
    assert [item.sentence for item in sent.why] == sent.reasons
    assert sent.why[0].facts == {"machine": "den", "machines": 2}
    assert sent.advice[0].facts["machine"] == "attic"
    made_from = {item.machine: item for item in sent.facts.machines}
    attic = made_from["attic"]
    assert attic.link is not None
    assert attic.link.kind == "wifi"
    assert (attic.chunk_way_s or 0) > (attic.token_way_s or 0) > 0.05
    assert made_from["den"].token_way_s is None
    assert (old := made_from["old"].speed) is not None
    assert old.layer_s == 0.2
    assert made_from["new"].speed is None
    assert sent.first_token.prompt_tokens == 1000
    assert sent.first_token.ttft_s > 1.5 * known.ttft_s / WORK.users
    assert (sent.facts.prompt_tokens, sent.facts.output_tokens) == (512, 256)


def test_what_was_not_measured_has_no_forecast() -> None:
    placed = plan(machine("den", 9000, None), [], MODEL, WORK)
    sent = describe_plan(placed, MODEL, {HOST.id: 1, placed.stages[0].machine: 1})
    assert sent.forecast is None
    assert sent.first_token is None
    assert sent.alternatives == []


def test_the_command_line_tells_it_in_words() -> None:
    console = Console(width=160, record=True, force_terminal=False)
    console.print(plan_view(described()))
    lines = console.export_text().splitlines()
    assert lines[0].startswith("made · split over 2 machines")
    known = next(line for line in lines if line.startswith("Forecast for a "))
    assert " (2 at once: " in known
    assert any(line.startswith("old is not used") for line in lines)
    assert any(line.startswith("new is not used because it has not been measured") for line in lines)
    assert any(line.startswith("attic is on Wi-Fi (7 Mbit/s, 50.0 ms). Over a cable") for line in lines)


def test_a_renamed_machine_has_its_new_name_wherever_its_id_stands() -> None:
    loft = MachineId("h")
    kept = LoadedModel(
        model="m", stages=[Stage("hare", "h"), Stage("wren", "w")], replicas=[Replica("hare", "h", ["h"])]
    )
    now = with_current_names(kept, Household({loft: Machine(loft, "loft")}))
    assert [stage.machine for stage in now.stages] == ["loft", "wren"]
    assert now.replicas == [Replica("loft", "h", ["h"])]
    assert kept.stages[0].machine == "hare"  # what was kept is as it was
    assert with_current_names(None, Household()) is None


def test_a_reason_of_the_placement_says_the_new_name_too() -> None:
    hare = MachineId("h")
    household = apply(Household({hare: Machine(hare, "hare")}), Described(hare, "loft", "", 1, 1, 0))
    left_out = explain(Reason("left_out_same", {"machine": "hare"}))
    now = with_current_names(Shown(model="m", why=[left_out], reasons=["hare left out"]), household)
    (why,) = now.why
    assert why.facts == {"machine": "loft"}
    assert why.sentence.startswith("loft is not used")
    assert now.reasons == [why.sentence]
    lost = Reason("stage_lost", {"machine": "hare"})
    gone = with_current_names(LoadedModel(model="m", reason=said(lost), reason_facts=lost), household)
    assert gone.reason == "loft stopped computing its layers."
    late = apply(household, SilenceNoted(hare, Reason("machine_heard_late", {"name": "hare"})))
    assert (describe_machines(late, hare)["h"].reason or "").startswith("loft")
    back = Reason("lend_taken_back", {"machine": "hare", "why": ""})
    lends = Described(hare, "loft", "", 1, 1, 0, "paused", back)
    online = apply(apply(household, Connected(hare, None)), lends)
    assert (describe_machines(online, hare)["h"].reason or "").startswith("loft took its memory back")
