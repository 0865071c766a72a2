"""A snapshot becomes facts and words: states with reasons, layers as people count, what a link costs."""

from __future__ import annotations

from dataclasses import replace

from app.gui.pool import inspector, machine_words
from app.gui.pool.machine_facts import active_of, hosts_of, machines_of, merged_ranges, strangers_of
from app.gui.pool.map.card_item import last_line
from testbed.snapshots import GIB, household, machine, snapshot_of

LEFT_OUT = {"code": "left_out_slower", "facts": {"machine": "kitchen-laptop", "with_tok_s": 9.6, "without_tok_s": 11.8}}


def test_this_machine_comes_first_and_is_the_host_of_what_is_loaded() -> None:
    snapshot = household(3)
    first, *machine_facts = machines_of(snapshot_of(snapshot))
    assert (first.this, first.host) == (True, True)
    assert [other.name for other in machine_facts] == ["attic-pc", "kitchen-laptop"]
    assert machine_words.relation(first) == "This machine, host"
    assert not machines_of(snapshot_of(household(3, with_model=False)))[0].host


def test_what_its_own_model_takes_counts_on_this_machine() -> None:
    first, other, *_ = machines_of(snapshot_of(household(2)))
    assert (first.memory.used, first.memory.lent) == (5 * GIB, 13 * GIB)
    assert machine_words.lent_memory(first) == "5.0 GiB used by the model", "lent is what others use"
    assert machine_words.lent(first) == "lends 8.0 GiB"
    assert machine_words.all_memory(first).startswith("5.0 GiB used by the model, lends 8.0 GiB; ")
    entries = dict(inspector._machine_details(first))
    assert (entries["For other computers"], entries["Used by the model"]) == ("lends 8.0 GiB", "5.0 GiB")
    nothing = replace(first.held, layers=())
    assert machine_words.held_models(replace(first, held=nothing)) == "", "it comes yet, and is no other machine's"
    shared = replace(first, memory=replace(first.memory, used=7 * GIB))
    assert machine_words.lent_memory(shared) == "2.0 GiB lent, 5.0 GiB used here"
    assert machine_words.lent(shared) == "2.0 of 8.0 GiB"
    assert machine_words.held_models(replace(shared, held=nothing)) == "layers for another machine"
    assert (machine_words.lent(other), machine_words.lent_memory(other)) == ("6.0 of 10.0 GiB", "6.0 of 10.0 GiB lent")
    assert "Used by the model" not in dict(inspector._machine_details(other))
    assert "Computed by" not in dict(inspector._machine_details(other))
    on_card = replace(other, held=replace(other.held, card="NVIDIA GeForce RTX 3060"))
    assert dict(inspector._machine_details(on_card))["Computed by"] == "NVIDIA GeForce RTX 3060"


def test_heat_is_told_where_a_system_tells_it() -> None:
    snapshot = household(2)
    snapshot["machines"][machine(1)["id"]]["hottest_c"] = 61
    first, other = machines_of(snapshot_of(snapshot))
    assert (machine_words.temperature(first), machine_words.temperature(other)) == ("", "61 °C")
    assert ("Processor", "61 °C") in inspector._machine_details(other)
    assert "Processor" not in dict(inspector._machine_details(first))


def test_who_uses_a_machine_its_power_and_another_engine_are_told() -> None:
    snapshot = household(3)
    item, two, three = (snapshot["machines"][machine(number)["id"]] for number in range(3))
    item |= {"engine": "llamacpp 2", "used_by": [two["id"]]}
    two |= {"engine": "llamacpp 1", "used_by": [item["id"], three["id"], "f" * 64], "watts": 46, "link_mbit": 50}
    three |= {"engine": "llamacpp 2"}
    den, attic, kitchen = machines_of(snapshot_of(snapshot))
    assert attic.used_by == ("den-pc", "kitchen-laptop")  # nobody who is no machine of ours
    entries = dict(inspector._machine_details(attic))
    assert (entries["Engine"], entries["Power"]) == ("llamacpp 1", "46 W")
    assert entries["Network"] == "at most 50 Mbit/s"
    assert entries["Used by"] == "den-pc, kitchen-laptop"
    assert dict(inspector._machine_details(den))["Used by"] == "attic-pc"
    assert dict(inspector._machine_details(kitchen))["Used by"] == "nobody"
    assert "Engine" not in dict(inspector._machine_details(kitchen))


def test_the_placement_of_another_machine_has_that_one_in_the_center() -> None:
    snapshot = household(3)
    item, two, three = (snapshot["machines"][machine(number)["id"]] for number in range(3))
    assert hosts_of(snapshot_of(snapshot)) == ((item["id"], "den-pc"),)
    three["used_by"] = [two["id"], item["id"]]
    assert hosts_of(snapshot_of(snapshot)) == ((item["id"], "den-pc"), (two["id"], "attic-pc"))
    attic, den, kitchen = machines_of(snapshot_of(snapshot), center=two["id"])
    assert (attic.host, den.host, machine_words.relation(attic)) == (True, False, "Host")
    assert den.link is not None  # the way between both, which this machine measured
    assert attic.link is None
    assert kitchen.link is not None  # told by the attic, and measured there only
    assert (kitchen.link.to, kitchen.can_test, den.can_test) == ("", False, True)
    assert den.link.to == two["id"]  # who is measured there, though this machine carries the link
    assert [machine_facts.held.layers for machine_facts in (attic, den, kitchen)] == [
        (),
        (),
        (),
    ]  # none of that placement is known
    assert (machine_words.held_models(attic), machine_words.held_models(den)) == ("its own model",) * 2
    assert machine_words.held_models(kitchen) == "layers for attic-pc, den-pc"
    first, *_ = machines_of(snapshot_of(snapshot), center=item["id"])
    assert (first.name, first.host, first.link) == ("den-pc", True, None)


def test_the_model_of_vectors_is_told_of_the_machine_that_holds_it() -> None:
    snapshot = household(2)
    me = machine(0)["id"]
    before = {
        machine_facts.name: (machine_words.held_models(machine_facts), machine_facts.memory.used)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    snapshot["embeds"] = {"model": "bert", "machines": [{"machine": "den-pc", "id": me, "needs_bytes": 1 << 29}]}
    after = {
        machine_facts.name: (machine_words.held_models(machine_facts), machine_facts.memory.used)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    held, used = before.pop("den-pc")
    assert after.pop("den-pc") == (f"{held}, creates embeddings with bert", used + (1 << 29))
    assert after == before
    snapshot["loaded"] = None
    result = {
        machine_facts.name: machine_words.held_models(machine_facts)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    assert result["den-pc"].endswith("creates embeddings with bert")
    snapshot["embeds"] |= {"model": "judge", "ranks": True}
    result = {
        machine_facts.name: machine_words.held_models(machine_facts)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    assert result["den-pc"].endswith("scores texts with judge")
    assert "vectors" not in result["den-pc"]


def test_machines_that_each_hold_the_whole_model_are_told_as_such() -> None:
    snapshot = household(4)
    ids = [machine(number)["id"] for number in range(4)]
    snapshot["loaded"] |= {
        "shape": "replicas",
        "replicas": [
            {"machine": "den-pc", "ids": [ids[0]], "state": "ready", "answering": 0, "waiting": 0},
            {"machine": "attic-pc", "ids": [ids[1]], "state": "ready", "answering": 2, "waiting": 1},
            {"machine": "kitchen-laptop", "ids": [ids[2]], "state": "draining", "answering": 1, "waiting": 0},
            {"machine": "studio-mac", "ids": [ids[3]], "state": "lost", "answering": 0, "waiting": 0},
        ],
    }  # fmt: skip
    snapshot["answers"] = {"running": 3, "waiting": 1}
    result = {
        machine_facts.name: machine_words.held_models(machine_facts)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    assert result == {
        "den-pc": "whole model: idle",
        "attic-pc": "whole model: 3 answer(s)",
        "kitchen-laptop": "whole model: finishing",
        "studio-mac": "whole model: lost",
    }
    assert active_of(snapshot_of(snapshot)) == {ids[1], ids[2]}  # dots move only where an answer is made
    snapshot["loaded"]["replicas"][1]["state"] = "recovering"
    assert active_of(snapshot_of(snapshot)) == {ids[2]}
    snapshot["loaded"]["replicas"][1]["state"] = "ready"
    attic = machines_of(snapshot_of(snapshot))[1]
    assert last_line(attic) == "whole model: 3 answer(s)"
    assert dict(inspector._machine_details(attic))["Holds"] == "whole model: 3 answer(s)"
    snapshot["loaded"]["replicas"] = []
    assert active_of(snapshot_of(snapshot)) == set(ids)
    snapshot["loaded"]["state"] = "recovering"
    assert active_of(snapshot_of(snapshot)) == set(), "nothing is sent while its layers are put elsewhere"
    snapshot["loaded"]["state"] = "ready"
    snapshot["answers"]["running"] = 0
    assert active_of(snapshot_of(snapshot)) == set()


def test_of_several_models_each_machine_names_the_one_whose_layers_it_holds() -> None:
    snapshot = household(3)
    other = {"model": "guide", "state": "ready", "machines": []}
    layers = [(1, 0, 3), (1, 3, 4), (2, 4, 8)]
    stages = [{"machine": "", "id": machine(n)["id"], "first": first, "last": last} for n, first, last in layers]
    snapshot["beside"] = [other | {"stages": stages}]
    den, *rest = [machine_words.held_models(machine_facts) for machine_facts in machines_of(snapshot_of(snapshot))]
    assert den == "Llama 3.3 70B Q4_K_M: layers 1–8"
    assert rest == [
        "Llama 3.3 70B Q4_K_M: layers 9–16; Guide: layers 1–4",
        "Llama 3.3 70B Q4_K_M: layers 17–24; Guide: layers 5–8",
    ]
    elsewhere = machines_of(snapshot_of(snapshot), center=machine(1)["id"])  # another machine's placement is shown
    assert not any(machine_facts.held.by_model for machine_facts in elsewhere)
    alone = [
        machine_words.held_models(machine_facts) for machine_facts in machines_of(snapshot_of(snapshot), model="guide")
    ]
    assert alone == ["layers of Llama 3.3 70B Q4_K_M", "layers 1–4", "layers 5–8"]
    assert [machine_facts.share for machine_facts in machines_of(snapshot_of(snapshot), model="guide")] == [None] * 3


def test_of_several_models_dots_move_only_along_those_that_answer() -> None:
    snapshot = household(3)
    ids = [machine(number)["id"] for number in range(3)]
    guide = {"model": "guide", "state": "ready", "answering": 0}
    snapshot["beside"] = [guide | {"stages": [{"machine": "", "id": ids[2], "first": 0, "last": 8}]}]
    snapshot["loaded"]["stages"] = [{"machine": "", "id": ids[1], "first": 0, "last": 8}]
    snapshot["answers"] = {"running": 1, "waiting": 0}
    assert active_of(snapshot_of(snapshot)) == {ids[1]}
    snapshot["beside"][0]["answering"] = 1
    assert active_of(snapshot_of(snapshot)) == {ids[1], ids[2]}
    assert active_of(snapshot_of(snapshot), "guide") == {ids[2]}
    snapshot["loaded"]["answering"] = 0
    assert active_of(snapshot_of(snapshot)) == {ids[2]}


def test_what_others_placed_on_a_machine_is_told_by_its_user() -> None:
    snapshot = household(3)
    attic, kitchen = (snapshot["machines"][machine(number)["id"]] for number in (1, 2))
    attic |= {"layers": [], "state": "loaded", "used_by": [machine(2)["id"]]}
    kitchen |= {"layers": [], "state": "loaded", "used_by": []}
    result = {
        machine_facts.name: dict(inspector._machine_details(machine_facts))["Holds"]
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    assert result["attic-pc"] == "layers for kitchen-laptop"
    assert result["kitchen-laptop"] == "layers for another machine"
    kitchen |= {"used_bytes": 0}
    assert dict(inspector._machine_details(machines_of(snapshot_of(snapshot))[2]))["Holds"] == "no layers"


def test_why_our_placement_left_a_machine_out_is_not_said_of_another_one() -> None:
    snapshot = household(3)
    two, three = (snapshot["machines"][machine(number)["id"]] for number in (1, 2))
    three |= {"state": "ready", "layers": [], "used_bytes": 0}
    snapshot["loaded"]["why"] = [LEFT_OUT]
    assert machines_of(snapshot_of(snapshot))[2].state == "left_out"
    assert machines_of(snapshot_of(snapshot), center=two["id"])[2].state == "ready"


def test_of_a_split_beside_whole_machines_all_that_share_it_are_active() -> None:
    snapshot = household(4)
    ids = [machine(number)["id"] for number in range(4)]
    split = {"machine": "den-pc", "ids": ids[:2], "state": "ready", "answering": 1, "waiting": 0}
    alone = {"machine": "studio-mac", "ids": [ids[3]], "state": "ready", "answering": 0, "waiting": 0}
    snapshot["loaded"] |= {"shape": "replicas", "replicas": [split, alone]}
    snapshot["answers"] = {"running": 1, "waiting": 0}
    assert active_of(snapshot_of(snapshot)) == set(ids[:2])
    result = {
        machine_facts.name: machine_words.held_models(machine_facts)
        for machine_facts in machines_of(snapshot_of(snapshot))
    }
    assert result["studio-mac"] == "whole model: idle"
    assert result["den-pc"].startswith("layers ")  # what it holds of the split


def test_layers_are_counted_from_one_and_neighbors_are_one_run() -> None:
    assert merged_ranges([(4, 8), (0, 4), (12, 13)]) == ((0, 8), (12, 13))
    assert machine_words.layer_ranges(((0, 8), (12, 13))) == "layers 1–8, 13"
    assert machine_words.layer_ranges(()) == ""


def test_a_link_says_what_it_costs_and_which_end_is_no_cable() -> None:
    _, attic, kitchen = machines_of(snapshot_of(household(3)))
    assert attic.link is not None
    assert kitchen.link is not None
    assert machine_words.share_badge(attic.link.share or 0).color == "warning"
    assert machine_words.share_badge(kitchen.link.share or 0).word == "36%, main bottleneck"
    assert machine_words.link_carrier(attic.link) == "cable (eth0, 1.00 Gbit/s)"
    inside = replace(attic.link, kind="loopback", interface="lo", negotiated_bits_per_s=None,
                     far_kind="loopback", far_interface="lo")  # fmt: skip
    assert machine_words.link_carrier(inside) == "same computer (lo)"
    assert kitchen.link.worst_kind == "wifi"
    assert machine_words.link_speed(attic.link) == "936 Mbit/s, 0.5 ms"
    assert attic.link.token_s == 0.001


def test_offline_and_left_out_machines_say_why() -> None:
    snapshot = household(3)
    gone = machine(1, online=False, state="offline", layers=[], used_bytes=0)
    idle = machine(2, state="ready", layers=[], used_bytes=0)
    snapshot["machines"] |= {gone["id"]: gone, idle["id"]: idle}
    sentence = "kitchen-laptop is not used: 9.6 tok/s with it, 11.8 without it."
    snapshot["loaded"]["why"] = [LEFT_OUT]
    _, attic, kitchen = machines_of(snapshot_of(snapshot))
    assert machine_words.state_badge(attic).word == "Offline"
    assert machine_words.state_reason(attic) == "Not seen by this computer yet."
    assert (machine_words.state_badge(kitchen).word, machine_words.state_reason(kitchen)) == ("Left out", sentence)
    gone["seen_at"] = 1_700_000_000.0
    assert machine_words.state_reason(machines_of(snapshot_of(snapshot))[1]).startswith("Last seen ")


def test_a_machine_left_out_by_hand_says_so() -> None:
    snapshot = household(3)
    _, attic, kitchen = machines_of(snapshot_of(snapshot), {machine(1)["id"]})
    assert (attic.left_out, kitchen.left_out) == (True, False)
    assert machine_words.state_badge(attic).word == "Left out"


def test_whoever_lets_a_machine_in_comes_first() -> None:
    item = {"name": None, "addresses": ["10.0.0.8"], "pairing_address": None}
    two = {"name": "hall-pc", "addresses": ["10.0.0.9"], "pairing_address": "10.0.0.9:4"}
    strangers = strangers_of(snapshot_of({"strangers": {"a" * 16: item, "b" * 16: two}}))
    assert [stranger.address for stranger in strangers] == ["10.0.0.9", "10.0.0.8"]
