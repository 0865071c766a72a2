"""The fault behind each reason code, and the retry that it allows.

Recovery and loading consult this table before they retry. If the same input would cause the same failure again, the
affected answer ends immediately with its own message. Nothing is rebuilt for it, and no machine is reported lost. Every
reason code occurs here exactly once, which a test checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.core.errors import Reason, StageFailed, StageLost


class Fault(StrEnum):
    """The origin of a failure."""

    REQUEST = "request"  # something that was requested, typed or chosen
    MODEL = "model"  # the model's file, or the numbers that it computes
    ENGINE = "engine"  # llama.cpp, or its installation
    MEMORY = "memory"  # too little memory or disk space
    MACHINE = "machine"  # a computer of the household, or a process on it
    LINK = "link"  # the network between computers of the household
    OWNER = "owner"  # a refusal by a person, or by a rule that a person set
    HOUSEHOLD = "household"  # membership, pairing, identities
    SOURCE = "source"  # a server or computer from which models come, or a server that answers
    APP = "app"  # this installation: its files, its settings, its bugs
    NEWS = "news"  # no fault, just information


class Retry(StrEnum):
    """The automatic retry that a failure allows."""

    NEVER = "never"  # it would fail again in the same way, so the affected answer ends
    ONCE = "once"  # the first time may be chance, but not the second in a row
    AGAIN = "again"  # on the machines that are available
    ELSEWHERE = "elsewhere"  # without the machine that the reason concerns


@dataclass(frozen=True, slots=True)
class FaultClass:
    """The classification of a reason code."""

    fault: Fault
    retry: Retry = Retry.NEVER


GROUPS: tuple[tuple[FaultClass, str], ...] = (
    # ends of a stage, a worker or a load
    (
        FaultClass(Fault.MODEL),
        """
        gguf_control_vector gguf_imatrix gguf_lora gguf_lora_of gguf_mmproj gguf_pictures gguf_vocabulary
        model_not_loaded numbers_not_finite model_changed model_gone source_changed cut_illegal kv_odd
        template_failed template_slow template_large engine_knows_not model_ends_process model_not_finite
        model_fails_there model_not_finite_over
        """,
    ),
    (
        FaultClass(Fault.ENGINE),
        """
        stage_failed engine_gave_up engine_missing engine_unproved engine_pre_unknown check_engine_missing
        device_unusable device_unfit
        """,
    ),
    (FaultClass(Fault.ENGINE, Retry.ONCE), "worker_crashed"),
    (
        FaultClass(Fault.REQUEST),
        """
        sampling_failed grammar_refused form_waits form_too_heavy text_too_slow answer_ends_process
        draft_other_tokens draft_recurrent draft_no_room
        """,
    ),
    (
        FaultClass(Fault.MEMORY, Retry.ELSEWHERE),
        """
        memory_short worker_memory_short worker_grew lend_too_large stage_too_large stages_full disk_full
        disk_failed
        """,
    ),
    (
        FaultClass(Fault.MACHINE, Retry.AGAIN),
        """
        worker_died worker_hung worker_garbled stage_lost stage_busy stage_gone stage_not_offered lend_busy
        lend_twice lend_not_open machine_closed shutting_down
        """,
    ),
    (
        FaultClass(Fault.MACHINE, Retry.ELSEWHERE),
        """
        stage_silent stage_missing stage_garbled stage_sent_odd stage_out_of_step stage_slow stage_not_taken
        machine_doubted peer_refused speed_silent
        """,
    ),
    (FaultClass(Fault.LINK, Retry.ELSEWHERE), "stage_unreachable peer_address_unknown peer_floods peer_speaks_oddly"),
    (FaultClass(Fault.MEMORY, Retry.AGAIN), "beside_no_room card_family_no_room card_short_no_room worker_card_short"),
    (
        FaultClass(Fault.LINK, Retry.AGAIN),
        """
        peer_offline peer_hung_up peer_unreachable peer_held_back peer_silent peer_stopped peer_no_hello
        link_lost link_replaced channel_closed stage_unfinished piece_wrong
        """,
    ),
    (
        FaultClass(Fault.OWNER, Retry.ELSEWHERE),
        """
        lend_stopped lend_taken_back lend_off lend_no_role machine_lends_nothing pause_active pause_battery
        pause_battery_at pause_card_hot pause_card_hot_at pause_card_off pause_card_only pause_card_test pause_gpu
        pause_hot pause_hot_at pause_hours pause_less pause_memory pause_metered pause_no_card pause_owner
        pause_program pause_program_named pause_quit pause_screen pause_shutdown pause_sleep pause_stopped pause_vpn
        """,
    ),
    (
        FaultClass(Fault.HOUSEHOLD, Retry.ELSEWHERE),
        """
        machine_removed removed_from_household role_missing role_missing_here version_differs peer_refused_us
        peer_is_another
        """,
    ),
    (FaultClass(Fault.MACHINE), "proof_unsteady proof_differs worker_not_started"),
    (FaultClass(Fault.OWNER), "load_stopped load_given_up node_stops stopped pipeline_closed worker_closed"),
    (
        FaultClass(Fault.APP),
        "bug pipeline_fault stage_bad_step stage_input_odd worker_refused node_fault manifest_odd stage_flood",
    ),
    # reported by another machine, whose own reason decides (see `classify`)
    (FaultClass(Fault.MACHINE), "lender_said said_by_node"),
    # engine packs
    (
        FaultClass(Fault.REQUEST),
        """
        pack_ambiguous pack_copy_running pack_copy_unnamed pack_file_exists pack_no_manifest pack_no_previous
        pack_none_for pack_not_exported pack_not_installed pack_not_offered pack_offers_many pack_order
        pack_unknown_backend pack_unreadable
        """,
    ),
    (
        FaultClass(Fault.ENGINE),
        """
        pack_for_processors pack_newer_format pack_no_device pack_not_loaded pack_other_engine pack_other_system
        pack_test_failed
        """,
    ),
    (
        FaultClass(Fault.SOURCE),
        "pack_damaged pack_incomplete pack_other_than_offered pack_too_large pack_unsafe pack_wrong_hash",
    ),
    (FaultClass(Fault.MEMORY), "pack_disk_full pack_no_room"),
    (FaultClass(Fault.APP), "pack_not_removed packs_not_written"),
    # updates of Poolhouse
    (
        FaultClass(Fault.REQUEST),
        """
        update_address update_by_system update_changed update_data_newer update_downgrade update_from_source
        update_no_folder update_no_previous update_none_ready update_same update_stopped
        """,
    ),
    (
        FaultClass(Fault.SOURCE),
        """
        update_expired update_file_missing update_incomplete update_layer_damaged update_mixed update_newer_format
        update_none_for update_odd update_older update_other_bytes update_other_content update_too_large update_unsafe
        update_wrong_key
        """,
    ),
    (FaultClass(Fault.MEMORY), "update_no_space"),
    (FaultClass(Fault.MACHINE), "update_busy"),
    (FaultClass(Fault.HOUSEHOLD), "update_others_first"),
    (FaultClass(Fault.APP), "update_disk update_no_keys update_rolled_back"),
    # failures before anything is computed
    (
        FaultClass(Fault.REQUEST),
        """
        api_access_many api_host_name api_host_unknown api_origin api_origin_unknown guest_reranker_missing
        model_only_ranks model_ranks_not model_ranks_not_alone reranker_missing reranker_unnamed template_objects
        api_content_unsupported api_count_elsewhere api_key_last api_key_name api_key_unknown api_keys_many
        api_model_not_loaded api_no_tools api_one_prompt api_part_without_text api_tool_missing
        api_tools_unknown api_unsupported attachment_broken attachment_empty
        attachment_heavy attachment_large attachment_locked attachment_no_text attachment_old attachment_scanned
        attachment_unreadable
        attachments_many bad_request bias_unknown card_limit_low card_unknown card_unnamed catalog_ambiguous
        catalog_no_version catalog_unknown catalog_unknown_near
        code_form code_wrong codes_wrong context_too_long context_too_short demo_too_many device_unknown
        download_unknown file_is_folder file_missing file_odd file_unreadable found_not_here host_not_left_out
        hours_odd hub_name_odd interface_not_own interface_unknown last_load_failed lend_more_than_there
        lend_threads_more lend_too_little link_limit_low machine_ambiguous machine_unknown max_tokens_low
        model_ambiguous model_builtin server_consent model_in_use model_inexact model_name_odd model_not_pulled
        model_unknown model_unknown_near models_enough models_folder_file models_folder_inside models_folder_nested
        models_folder_new models_folder_none models_folder_odd models_not_pulled name_empty name_taken
        move_none no_pairing_window nobody_to_ask nothing_loaded phone_code_wrong phone_model_gone phone_unknown
        phones_many phones_off program_unknown prompt_beyond_model prompt_empty
        picture_broken picture_failed picture_heavy picture_large picture_model_blind picture_pixels
        picture_remote picture_replicas picture_role picture_rows picture_unknown picture_upstream pictures_many
        projector_other projector_several projector_without_model
        prompt_missing prompt_too_long prompt_unclear prompt_unreadable replicas_need_two roles_contradict
        sampling_odd schema_refused shape_and_split shape_not_alone shape_not_split split_boundary split_family
        split_lenders split_sum split_two stops_too_many text_too_long token_odd token_unknown
        template_option_bad thinking_always thinking_never tool_address_none tool_address_plain tool_answer_long
        tool_arguments tool_changed tool_forbidden tool_gone tool_header_name tool_import_empty tool_import_unreadable
        tool_rounds_many tool_secrets_many tool_server_name tool_server_off tool_server_place tool_server_taken
        tool_server_unchecked tool_server_unknown tool_server_unstarted tool_servers_many tool_variable_name tools_many
        upstream_circle upstream_model_unknown upstream_raw_form upstream_refused
        upstream_tokens upstream_unknown upstream_url usage address_wrong address_not_ours
        """,
    ),
    (
        FaultClass(Fault.MODEL),
        """
        bench_silent gguf_alignment gguf_big_endian gguf_dimensions gguf_key_missing gguf_layer_extra
        gguf_layer_missing gguf_limit gguf_name gguf_not gguf_odd gguf_offset gguf_part gguf_repeated gguf_shape
        gguf_tensor_missing gguf_truncated gguf_type gguf_version model_builtin_missing projector_deep projector_gone
        projector_kind projector_large projector_unusable speed_shape_odd
        """,
    ),
    (
        FaultClass(Fault.MEMORY),
        """
        download_no_room helps_context helps_here helps_limit helps_machine helps_nothing helps_smaller
        history_full host_over_limit host_short_of_ends host_too_small machine_too_small models_move_no_room
        no_room_left pool_in_pieces pool_too_small recovery_short recovery_short_here recovery_waited
        recovery_given_over
        speed_no_room whole_over_limit whole_too_big
        """,
    ),
    (
        FaultClass(Fault.MACHINE),
        """
        api_model_asked api_model_stays api_tokens_minute control_full copy_waits guest_model_stays probe_busy
        probe_busy_here probe_silent queue_full reader_slow recovery_too_often speed_busy upstream_busy
        upstream_measuring
        answer_gone answer_doubted doubt_in_the_way
        """,
    ),
    (
        FaultClass(Fault.REQUEST),
        """
        admin_stays api_key_gone chats_none chats_odd chats_too_large embedding_model_missing
        embedding_model_unknown embedding_model_unnamed embedding_only_whole embedding_size embedding_too_long
        erase_no_home guest_embedding_missing guest_model_not_loaded home_missing home_no_folder
        keystore_unknown machine_not_doubted model_embeds_not model_only_embeds models_move_waits models_moving
        node_other_version peer_is_this remove_added remove_itself report_unwritten upstream_key_odd
        """,
    ),
    (
        FaultClass(Fault.MEMORY),
        """
        cure_disk cure_lends_nothing cure_memory embedding_gave_way embedding_no_room sample_no_room
        """,
    ),
    (
        FaultClass(Fault.LINK),
        """
        api_no_lan api_port_taken check_discovery_alone check_link_slow check_no_way check_not_called_back
        check_not_reached check_one_way_here check_one_way_there check_other_network check_virtual
        check_virtual_chosen check_vpn copy_away copy_held_up copy_unreached cure_address_unknown
        cure_called_all cure_discovery_alone cure_link_cable cure_link_vpn cure_link_wifi cure_no_way
        cure_not_called_back cure_not_reached cure_one_way_here cure_one_way_there cure_other_network
        cure_virtual cure_vpn discovery_failed discovery_no_multicast discovery_no_network interface_awaited
        interface_away interface_down interface_no_way interface_through_virtual interface_through_vpn
        interface_wifi_beside_cable link_doubled machine_heard_late measure_no_links pack_copy_away
        pack_copy_interrupted pack_unreached
        pairing_broken pairing_unreachable port_taken
        """,
    ),
    (
        FaultClass(Fault.HOUSEHOLD),
        """
        check_protocol cure_alone cure_protocol_here cure_protocol_there cure_removed discovery_identity_copied
        guest_alone guest_no_host host_gone host_gone_next host_answers_not host_ended_answer household_asks_not
        household_already household_damaged household_full household_full_here
        household_outranked household_unsaved identity_copied
        identity_damaged identity_locked identity_missing identity_unreadable identity_unwritten not_admin pairing_busy
        pairing_cancelled pairing_expired pairing_member pairing_nobody_near pairing_not_proved
        pairing_odd_certificate pairing_odd_household pairing_open pairing_several_near pairing_tries_used
        pairing_unfinished passphrase_lost removed_needs_reset reset_while_running
        """,
    ),
    (
        FaultClass(Fault.SOURCE),
        """
        tool_call_slow tool_server_ended tool_server_ended_saying tool_server_failed tool_server_flooded
        tool_server_silent
        copy_gone copy_no_hash copy_not_offered copy_not_there pack_gone pack_not_shared
        download_broken download_damaged download_no_size
        download_other_file download_other_size download_other_than_first download_stopped guest_upstream_off
        guest_upstream_spent hub_address_odd hub_answer_long hub_away hub_busy hub_fault hub_file_unknown
        hub_gated hub_held_up hub_mirror_held_up hub_mirror_unreached hub_odd hub_parts_missing hub_redirect_odd
        hub_slow hub_stalled hub_token_needed hub_token_wrong hub_unknown hub_unreached pull_ended
        update_slow updates_no_place updates_unreached upstream_certificate upstream_failed upstream_measure_off
        upstream_off upstream_short
        upstream_spent upstream_test_failed upstream_uncounted
        """,
    ),
    (
        FaultClass(Fault.ENGINE),
        """
        check_engine_unproved cure_engine_missing cure_engine_unproved cure_graphics_unused cure_card_family
        cure_card_unused cure_card_off cure_card_lost cure_card_only check_card_testing
        check_card_unused card_lost card_small card_test_crashed card_wrong
        card_untested card_not_finite card_unsteady engine_in_the_way
        engine_crashes engine_test_failed engine_wrong engine_no_room engine_folder
        engine_unknown log_node_engine_failed log_node_engine_family engine_not_offered engine_installing
        engine_not_installed engine_not_written engine_not_deleted engine_disk_short engine_file_changed
        engine_install_interrupted engine_unreadable
        engine_wheel_changed engine_wheels_missing engine_not_downloaded engine_processor_only
        graphics_unused
        """,
    ),
    (
        FaultClass(Fault.MACHINE),
        """
        check_lends_nothing check_on_battery cure_model_lost cure_on_battery demo_node_ended demo_slow
        lend_host_gone
        """,
    ),
    (
        FaultClass(Fault.OWNER),
        """
        pull_paused pack_copy_canceled pack_copy_used engine_install_canceled
        """,
    ),
    (
        FaultClass(Fault.APP),
        """
        tool_host_ended tool_servers_locked data_newer prompts_left
        pins_damaged api_closed api_keys_locked autostart_failed autostart_no_program autostart_no_unit bench_unkept
        catalog_damaged chats_in_use chats_not_exported check_confined_files check_confined_neither
        check_confined_network check_confined_none check_confined_unknown check_home_unwritable cure_confined
        cure_home_unwritable cure_key_in_file demo_without_model disk_read_only erase_away erase_keyring erase_left
        erase_while_running history_busy history_key_gone history_key_unkept history_key_unreadable history_key_wrong
        history_locked history_locked_aside history_newer history_set_aside history_unreadable history_unswept
        history_unwritten home_unusable model_away model_file_stays models_folder_away models_folder_other
        models_folder_taken models_folder_unusable models_move_damaged models_move_ended models_move_failed
        models_move_left node_away node_keeps_ending node_not_running node_restarted node_runs_already
        node_silent node_slow_start node_starts_already node_stopped node_went_away not_allowed secret_unread
        secret_unwritten settings_damaged settings_unsaved system_error token_locked window_libraries
        """,
    ),
    # information that is nobody's fault; planned moves continue automatically
    (
        FaultClass(Fault.NEWS, Retry.AGAIN),
        """
        template_none template_without_tools tools_not_offered unforecast_ranks advice_link_rate advice_link_time
        advice_card advice_memory_rate advice_memory_time advice_wifi_rate advice_wifi_time check_address_unknown
        check_alone check_both_ways check_called_all check_called_back check_came_in check_confined_full
        check_card check_card_at card_family card_other_library card_other_used card_switched_off card_testing
        log_node_card_family log_node_card_family_other card_family_other log_node_card_short
        pack_cards_elsewhere pack_removal_unused pack_removal_processor pack_removal_others_compute
        pack_removal_other
        check_device check_discovery_off check_disk check_engine check_engine_with check_hears check_hears_one
        check_node_runs check_rest_untested check_version
        check_home check_household check_ipv6 check_ipv6_off check_key check_key_in_file check_lending
        check_link check_link_busy check_link_limited check_link_untested check_listening check_memory
        check_model_loading check_model_ready check_no_virtual check_no_vpn check_nobody_to_call check_plugged
        check_reached
        left_out_doubted left_out_engine left_out_failed left_out_lends_nothing left_out_longer left_out_room
        left_out_same left_out_slower left_out_unmeasured log_lending_draining log_lending_off log_lending_on
        log_lending_paused log_lending_unused log_lending_used log_machine_added log_machine_came
        log_machine_doubted log_machine_failed log_machine_left log_machine_lost log_machine_removed
        log_machine_renamed log_machine_unclear log_machine_used_again log_model_alone log_model_begun
        log_model_broken log_model_broken_off log_model_downloaded log_model_failed log_model_goes_on
        log_model_goes_on_after log_model_lost log_model_mended log_model_mended_late log_model_ready
        log_model_stopped log_model_unloaded log_model_with log_model_without log_node_newer log_node_started
        log_node_update_asked
        server_answers answer_by_server answer_pool_then_server answer_server_then_pool
        log_node_pack_copied log_node_upstream log_node_uncounted log_machine_doubts_lost log_node_interfaces_lost
        log_node_phones_lost
        log_node_journal_lost log_node_pins_lost machine_replaced pace_link pace_machine pace_memory
        plan_server plan_server_single plan_server_unmeasured
        plan_alone_faster plan_beside plan_engine plan_estimated plan_fits_host plan_forced plan_kept
        plan_forced_by_program plan_measured plan_measured_links plan_replicas plan_replicas_chosen
        plan_replicas_chosen_mixed plan_exact plan_exact_cards plan_on_processor plan_overflow
        plan_chosen_engine plan_chosen_llamacpp plan_guess_gain
        plan_draft plan_draft_none plan_draft_refused plan_draft_exact plan_draft_recurrent
        plan_card_testing plan_card_unused plan_card_short
        plan_replicas_mixed plan_sketched plan_split plan_split_chosen plan_split_faster plan_unmeasurable
        plan_unmeasured recovery_beside recovery_better recovery_continued recovery_handed_over recovery_joining
        recovery_leaving recovery_moved recovery_moving recovery_rebuilding recovery_reconnected
        recovery_reconnecting recovery_reloading recovery_replaying recovery_slow recovery_taken_back states_by_cost
        states_kept
        states_no_room unforecast_busy unforecast_embeds unforecast_small unforecast_experts unforecast_family
        unforecast_indexer
        unforecast_unknown whole_family whole_one_layer whole_small whole_variant worker_log guide_answers
        name_means plan_narrow_wire host_answers host_replaced recovery_undone layers_moved
        move_stays recovery_doubted
        """,
    ),
)

TABLE: dict[str, FaultClass] = {code: blame for blame, codes in GROUPS for code in codes.split()}
UNKNOWN = FaultClass(Fault.APP)  # a code from another version

# After these, the worker still has all its layers, so the run can start again without loading them.
RUN_STAYS = frozenset(
    {
        "pipeline_closed",
        "stage_unreachable",
        "stage_silent",
        "numbers_not_finite",
        "sampling_failed",
        "stage_bad_step",
        "stage_input_odd",
    }
)
# The only reasons that a machine may give for the end of its layers, apart from those with which its owner reclaims
# them. With other codes, a machine could end answers or blame another machine at will.
LAYER_END_CODES = frozenset(
    {
        "engine_gave_up", "lend_host_gone", "lend_stopped", "lend_taken_back", "numbers_not_finite", "sampling_failed",
        "shutting_down", "stage_bad_step", "stage_failed", "stage_input_odd", "stage_missing", "worker_closed",
        "worker_card_short", "worker_crashed", "worker_died", "worker_garbled", "worker_grew", "worker_hung",
        "worker_memory_short",
        "worker_not_started",
    }
)  # fmt: skip
# The end of a process, or of its layers, during a step whose contents may be the cause.
ENDED_BY_A_STEP = frozenset({"engine_gave_up", "stage_failed", "worker_crashed", "worker_died", "worker_hung"})
_ANYWHERE = (Fault.MODEL, Fault.REQUEST)  # faults that would occur on every machine
# faults of one machine that the others do not share
OF_ONE_MACHINE = frozenset({Fault.ENGINE, Fault.MEMORY, Fault.MACHINE, Fault.OWNER})


# Codes sent to the machine that the reason is about, and the codes under which that machine reports them. It must not
# trust a name that another machine sent.
REQUESTER_CODES = {"role_missing": "role_missing_here"}
# Facts that name machines. The first always do; the others do only in reasons about machines.
ALWAYS_MACHINE_FACTS, SOMETIMES_MACHINE_FACTS = frozenset({"machine", "worker"}), frozenset({"name", "older", "newer"})


def cause_code(reason: Reason) -> str:
    """Return the code of a reason, or of the inner reason if a lender reported it."""
    if reason.code != "lender_said":
        return reason.code
    inner = reason.facts.get("what")
    return inner.code if isinstance(inner, Reason) else ""


def classify(reason: Reason) -> FaultClass:
    """Return the fault and the retry for a reason.

    If a lender reports a permanent fault of its own engine, app or memory, a retry on other machines is allowed.
    """
    if reason.code != "lender_said":
        return TABLE.get(reason.code, UNKNOWN)
    there = TABLE.get(cause_code(reason), FaultClass(Fault.MACHINE, Retry.ELSEWHERE))
    if there.retry is Retry.NEVER and there.fault not in _ANYWHERE:
        return FaultClass(there.fault, Retry.ELSEWHERE)
    return there


def may_end_layers(code: str) -> bool:
    """Return whether a machine may state this code as the reason why its layers ended."""
    return code in LAYER_END_CODES or TABLE.get(code, UNKNOWN) == FaultClass(Fault.OWNER, Retry.ELSEWHERE)


def is_permanent(reason: Reason) -> bool:
    """Return whether another attempt would fail in the same way."""
    return classify(reason).retry is Retry.NEVER


def limited_to_sender(reason: Reason, name: str) -> Reason:
    """Return the reason received from the machine `name`, changed so that it names no other machine.

    In reasons that are not about machines, a fact called "name" is the name of a model or an option.
    """
    speaks_of_one = classify(reason).fault in (Fault.MACHINE, Fault.LINK, Fault.HOUSEHOLD)
    machine_facts = SOMETIMES_MACHINE_FACTS if speaks_of_one else frozenset()
    its_own = dict.fromkeys(reason.facts.keys() & (ALWAYS_MACHINE_FACTS | machine_facts), name)
    inner = {fact: limited_to_sender(value, name) for fact, value in reason.facts.items() if isinstance(value, Reason)}
    return about_requester(Reason(reason.code, {**reason.facts, **inner, **its_own}), name)


def about_requester(reason: Reason, name: str) -> Reason:
    """Return a reason about this machine, sent by the machine `name`, reworded to name only the sender."""
    if reason.code not in REQUESTER_CODES:
        return reason
    return Reason(REQUESTER_CODES[reason.code], {**reason.facts, "name": name})


def loss_error(reason: Reason) -> StageLost:
    """Return StageFailed if another attempt would fail in the same way, otherwise StageLost."""
    kind = StageFailed if is_permanent(reason) else StageLost
    return kind(reason.code, **reason.facts)
