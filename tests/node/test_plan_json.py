"""A plan as JSON holds every number that its sentences are made of, and the command line reads it."""

from __future__ import annotations

import json

from rich.console import Console

from app.api.plans import Plan as Shown
from app.cli.views.placement_view import plan_view
from app.core.errors import Reason
from app.core.household.household import Connected, Described, Household, Machine, SilenceNoted, apply
from app.core.household.link import LinkKind
from app.core.ids import MachineId
from app.core.planner.advice import advise
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.decoding import convert
from app.node.snapshot import Json, machines_json, plan_json, reason_json, trouble_json, with_names
from testbed.households import MIB, link, machine, model, speed

HOST = machine("den", 900, speed(0.004))
LENDERS = [
    machine("attic", 1900, speed(0.004), link(0.05, 1e6, LinkKind.WIFI)),
    machine("old", 900, speed(0.2), link()),
    machine("new", 900, None),
]
MODEL = model([100 * MIB] * 16)
WORK = Workload(1024, users=2)


def described() -> Json:
    placed = plan(HOST, LENDERS, MODEL, WORK)
    lends = {candidate.id: candidate.lends_bytes for candidate in (HOST, *LENDERS)}
    advice = advise(HOST, LENDERS, MODEL, WORK, placed)
    return dict(json.loads(json.dumps(plan_json(placed, MODEL, lends, advice))))


def test_every_number_behind_the_words_is_there() -> None:
    sent = described()
    known = sent["forecast"]
    assert known["request_s"] > known["ttft_s"] > 0
    assert {(share["part"], share["machine"]) for share in known["shares"]} == {
        ("machine", "den"), ("machine", "attic"), ("link", "attic"),
    }  # fmt: skip
    assert [alternative["shape"] for alternative in sent["alternatives"]] == ["split"]
    assert [item["sentence"] for item in sent["why"]] == sent["reasons"]
    assert sent["why"][0]["facts"] == {"machine": "den", "machines": 2}
    assert sent["advice"][0]["facts"]["machine"] == "attic"
    made_from = {item["machine"]: item for item in sent["from"]["machines"]}
    assert made_from["attic"]["link"]["kind"] == "wifi"
    assert made_from["attic"]["chunk_way_s"] > made_from["attic"]["token_way_s"] > 0.05
    assert made_from["den"]["token_way_s"] is None
    assert made_from["old"]["speed"]["layer_s"] == 0.2
    assert made_from["new"]["speed"] is None
    assert sent["first_token"]["prompt_tokens"] == 1000
    assert sent["first_token"]["ttft_s"] > 1.5 * known["ttft_s"] / WORK.users
    assert (sent["from"]["prompt_tokens"], sent["from"]["output_tokens"]) == (512, 256)


def test_what_was_not_measured_has_no_forecast() -> None:
    placed = plan(machine("den", 9000, None), [], MODEL, WORK)
    sent = plan_json(placed, MODEL, {HOST.id: 1, placed.stages[0].machine: 1})
    assert sent["forecast"] is None
    assert sent["first_token"] is None
    assert sent["alternatives"] == []


def test_the_command_line_tells_it_in_words() -> None:
    console = Console(width=160, record=True, force_terminal=False)
    console.print(plan_view(convert(described(), Shown)))
    lines = console.export_text().splitlines()
    assert lines[0].startswith("made · split over 2 machines")
    known = next(line for line in lines if line.startswith("Forecast (prompt of "))
    assert "; 2 at once " in known
    assert any(line.startswith("old left out: ") for line in lines)
    assert any(line.startswith("new left out: it has not been measured") for line in lines)
    assert any(line.startswith("attic is on Wi-Fi (7 Mb/s, 50.0 ms). By cable") for line in lines)


def test_a_renamed_machine_has_its_new_name_wherever_its_id_stands() -> None:
    result: Json = {"stages": [{"machine": "hare", "id": "h"}, {"machine": "wren", "id": "w"}],
            "replicas": [{"machine": "hare", "id": "h", "ids": ["h"]}], "reason": None}  # fmt: skip
    loft = MachineId("h")
    now = with_names(result, Household({loft: Machine(loft, "loft")}))
    assert [stage["machine"] for stage in now["stages"]] == ["loft", "wren"]
    assert now["replicas"] == [{"machine": "loft", "id": "h", "ids": ["h"]}]
    assert result["stages"][0]["machine"] == "hare"  # what was kept is as it was
    assert with_names(None, Household()) is None


def test_a_reason_of_the_placement_says_the_new_name_too() -> None:
    hare = MachineId("h")
    household = apply(Household({hare: Machine(hare, "hare")}), Described(hare, "loft", "", 1, 1, 0))
    result: Json = {"why": [reason_json(Reason("left_out_same", {"machine": "hare"}))]}
    (why,) = with_names(result, household)["why"]
    assert why["facts"] == {"machine": "loft"}
    assert why["sentence"].startswith("loft left out")
    (said,) = with_names(result | {"reasons": ["hare left out"]}, household)["reasons"]
    assert said == why["sentence"]
    lost = trouble_json(Reason("stage_lost", {"machine": "hare"}))
    assert lost["reason"].startswith("hare")
    assert with_names(lost, household)["reason"] == "loft stopped computing its layers."
    assert with_names(trouble_json(None), household)["reason"] is None
    assert machines_json(apply(household, SilenceNoted(hare, Reason("machine_heard_late", {"name": "hare"}))), hare)[
        "h"
    ]["reason"].startswith("loft")
    back = Reason("lend_taken_back", {"machine": "hare", "why": ""})
    lends = Described(hare, "loft", "", 1, 1, 0, "paused", back)
    online = apply(apply(household, Connected(hare, None)), lends)
    assert machines_json(online, hare)["h"]["reason"].startswith("loft took its memory back")
