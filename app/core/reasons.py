"""Reason code -> the sentence a person reads: what happened, why, one action."""

from __future__ import annotations

from app.core.api_reasons import API_SENTENCES
from app.core.check_reasons import CHECK_SENTENCES
from app.core.command_reasons import COMMAND_SENTENCES, STOPPED_BY
from app.core.doubt_reasons import DOUBT_SENTENCES
from app.core.download_reasons import DOWNLOAD_SENTENCES
from app.core.errors import AppError, Fact, Reason
from app.core.folder_reasons import FOLDER_SENTENCES
from app.core.forecast_reasons import FORECAST_SENTENCES
from app.core.guest_reasons import GUEST_SENTENCES
from app.core.identity_reasons import IDENTITY_SENTENCES
from app.core.journal_reasons import JOURNAL_SENTENCES
from app.core.link_reasons import LINK_SENTENCES
from app.core.pause_reasons import PAUSE_SENTENCES
from app.core.recovery_reasons import RECOVERY_SENTENCES
from app.core.shape_reasons import SHAPE_SENTENCES
from app.core.window_reasons import WINDOW_SENTENCES

TIB, GIB, MIB, KIB = 1 << 40, 1 << 30, 1 << 20, 1 << 10

ELSEWHERE = (
    (WINDOW_SENTENCES | LINK_SENTENCES | JOURNAL_SENTENCES)
    | DOWNLOAD_SENTENCES
    | FOLDER_SENTENCES
    | (API_SENTENCES | GUEST_SENTENCES)
    | RECOVERY_SENTENCES
    | FORECAST_SENTENCES
    | COMMAND_SENTENCES
    | CHECK_SENTENCES
    | (SHAPE_SENTENCES | PAUSE_SENTENCES)
    | (IDENTITY_SENTENCES | DOUBT_SENTENCES)
)
SENTENCES: dict[str, str] = ELSEWHERE | {
    # model files
    "file_is_folder": "{path} is a folder. Give the path of one GGUF file in it.",
    "file_odd": "{path} is no ordinary file. Give the path of a GGUF file.",
    "file_missing": "There is no file {path}. Check the path and try again.",
    "file_unreadable": "{path} cannot be read: {why}. Check the disk and the file's permissions.",
    "gguf_not": "{path} does not hold a GGUF model. Download it again, or choose another file.",
    "gguf_part": "{path} should be part {part} of a model in {parts} files, and they do not belong together. "
    "Keep all of them in one folder, with the names they came with.",
    "gguf_version": "{path} is GGUF of version {version}; 2 and 3 can be read. "
    "Get a newer copy of the model.",
    "gguf_big_endian": "{path} was made for big-endian computers. Get the ordinary copy.",
    "gguf_truncated": "{path} is not whole: it ends after {size_bytes}. Download or copy it again.",
    "gguf_limit": "{path} was refused: {what} is {found}, and at most {most} is allowed. "
    "It is damaged or made to harm; get it from another place.",
    "gguf_repeated": "{path} is damaged: it names {name} twice. Get another copy.",
    "gguf_name": "{path} is damaged: a name in it is empty or not readable. Get another copy.",
    "gguf_type": "{path} was refused: {name} has the unknown type {kind}. "
    "It is damaged or newer than this app; update the app or get another copy.",
    "gguf_dimensions": "{path} is damaged: {name} has {found} dimensions, not 1 to 4. "
    "Get another copy.",
    "gguf_alignment": "{path} is damaged: its alignment is not a power of two up to 65536. "
    "Get another copy.",
    "gguf_shape": "{path} is damaged: {name} cannot have the shape {shape}. Get another copy.",
    "gguf_offset": "{path} is damaged: {name} does not lie where it must. Get another copy.",
    "gguf_lora": "{path} is a LoRA adapter: it changes a model and is not one. Choose a model file into which it has "
    "been merged.",
    "gguf_lora_of": "{path} is a LoRA adapter for {model}: it changes that model and is not one. Choose the file of "
    "{model}, or one into which the adapter has been merged.",
    "gguf_mmproj": "{path} is a vision or audio projector (mmproj): the part that lets a model see or hear. "
    "Choose the model file next to it, without mmproj in its name.",
    "gguf_imatrix": "{path} is an importance matrix (imatrix), which helps to make smaller copies of a model. "
    "Choose a model file next to it, such as one with Q4_K_M in its name.",
    "gguf_control_vector": "{path} is a control vector: it changes the style of a model and is not one. "
    "Choose the model file.",
    "gguf_pictures": "{path} is a model of the family {architecture}, which makes pictures, video or sound. "
    "Choose a model that writes text.",
    "gguf_vocabulary": "{path} has a vocabulary and no weights. Choose the file of the whole model.",
    "gguf_key_missing": "{path} does not say {key}, which a model needs. Get another copy.",
    "gguf_tensor_missing": "{path} has no {name}, which a model needs. Get another copy.",
    "gguf_odd": "{path} says of {key}: {found}. That cannot be right; get another copy.",
    "gguf_layer_missing": "{path} has nothing for layer {layer}. Get another copy.",
    "gguf_layer_extra": "{path} has {name} but only {layers} layers. Get another copy.",
    "whole_family": "Models of the family {architecture} are not proved to split, "
    "so this one runs whole on one machine.",
    "whole_variant": "This kind of {architecture} model is not proved to split, "
    "so it runs whole on one machine.",
    "whole_small": "This model has too few layers of each kind to be cut, so it runs whole on one machine.",
    "whole_one_layer": "This model has one layer, so it runs whole on one machine.",
    "model_unknown": "There is no model called {name}. There are: {there}.",
    "model_elsewhere": "There is no model called {name} here. {upstream} has one, and answers programs only: what is "
    "asked here goes to no other server.",
    "model_ambiguous": "{name} could be any of: {there}. Type more of the name.",
    "model_inexact": "{name} is only the beginning of {there}, and a model is loaded, which stays. "
    "Type the whole name to replace it.",
    "model_name_odd": "{name} cannot be the name of a model. "
    "Use letters, digits, dots, dashes and underscores, at most 100.",
    "model_builtin": "{name} belongs to the app and stays.",
    "model_builtin_missing": "The built-in model {path} is missing. Install the app again.",
    "model_gone": "The file of {name} is gone from {path}. "
    "Put it back, or remove the model and import it again.",
    "model_changed": "{path} is no longer the file that was imported as {name}. "
    "Remove the model and import it again.",
    "cut_illegal": "{model} cannot be cut into layers {first} to {last}. Choose another split.",
    "manifest_odd": "The list of a stage's pieces is not valid: {what}. "
    "Update the app on both machines.",
    "stage_too_large": "The stage needs {needed_bytes}, and {allowed_bytes} are allowed here. "
    "Lend more, or use a smaller model.",
    "stage_busy": "These layers are being received already. Wait until that is done.",
    "stages_full": "The layers need {needed_bytes} on the disk, and {allowed_bytes} are left for layers there. "
    "Free some space on that disk, or give that machine fewer layers.",
    "stage_unfinished": "The layers did not arrive whole: {missing_bytes} are missing. Try again.",
    "stage_flood": "More bytes came than were asked for. Update the app on both machines.",
    "piece_wrong": "Piece {piece} of the layers arrived damaged and was thrown away. Try again.",
    "source_changed": "{path} changed while it was read. Import the model again.",
    "disk_full": "The disk of {folder} is full: {needed_bytes} are needed, {free_bytes} are free. "
    "Free some space and try again.",
    "disk_failed": "The disk of {folder} does not work: {why}. Check the disk and try again.",
    # plans and loading
    "plan_fits_host": "One machine: {machine} holds it all, so nothing has to cross the network.",
    "plan_split": "Split over {machines} machines: {machine} alone cannot hold it.",
    "plan_forced": "The split was given, not planned.",
    "plan_split_faster": "Split over {machines} machines: a typical request takes {split_s:.1f} s, "
    "on {machine} alone {alone_s:.1f} s.",
    "plan_alone_faster": "One machine: on {machine} alone a typical request takes {alone_s:.1f} s, "
    "split at best {split_s:.1f} s.",
    "plan_narrow_wire": "The links are slow, so 8 bits a value travel: a typical request takes {narrow_s:.1f} s, "
    "with 16 bits {usual_s:.1f} s.",
    "plan_unmeasured": "{machine} has not been measured yet, so memory alone decided.",
    "pace_machine": "{machine} sets the pace: it computes for {percent:.0f} % of the time.",
    "pace_link": "The link to {machine} sets the pace: {percent:.0f} % of the time goes to the way there and back.",
    "pace_memory": "Memory sets the pace: if machines lent enough, {machine} most of all, "
    "requests would take {percent:.0f} % less time.",
    "left_out_slower": "{machine} left out: with it {with_tok_s:.1f} tok/s, without it {without_tok_s:.1f}.",
    "left_out_longer": "{machine} left out: with it a typical request takes {with_s:.1f} s, "
    "without it {without_s:.1f} s.",
    "left_out_same": "{machine} left out: it would make no difference.",
    "left_out_room": "{machine} left out: it lends {lent_bytes}, and no split gives it a part that fits.",
    "plan_unmeasurable": "{machine} could not be measured, so memory alone decided. {why}",
    "left_out_lends_nothing": "{machine} left out: it lends nothing now.",
    "left_out_unmeasured": "{machine} left out: it has not been measured yet.",
    "advice_wifi_rate": "{machine} is on Wi-Fi ({megabits:.0f} Mb/s, {milliseconds:.1f} ms). By cable this model "
    "would run at {with_tok_s:.1f} instead of {now_tok_s:.1f} tok/s.",
    "advice_wifi_time": "{machine} is on Wi-Fi ({megabits:.0f} Mb/s, {milliseconds:.1f} ms). By cable a typical "
    "request would take {with_s:.1f} instead of {now_s:.1f} s.",
    "advice_link_rate": "The link to {machine} is slow ({megabits:.0f} Mb/s, {milliseconds:.1f} ms). Over a gigabit "
    "cable this model would run at {with_tok_s:.1f} instead of {now_tok_s:.1f} tok/s.",
    "advice_link_time": "The link to {machine} is slow ({megabits:.0f} Mb/s, {milliseconds:.1f} ms). Over a gigabit "
    "cable a typical request would take {with_s:.1f} instead of {now_s:.1f} s.",
    "advice_memory_rate": "If {machine} lent {more_bytes} more, this model would run at {with_tok_s:.1f} "
    "instead of {now_tok_s:.1f} tok/s.",
    "advice_memory_time": "If {machine} lent {more_bytes} more, a typical request would take {with_s:.1f} "
    "instead of {now_s:.1f} s.",
    "helps_context": "A context of {context} tokens fits.",
    "helps_here": "With {more_bytes} more on {machine} it would fit.",
    "helps_limit": "With a limit that is {more_bytes} higher on {machine} it would fit.",
    "helps_machine": "One more machine that lends {more_bytes} would be enough.",
    "helps_smaller": "A smaller quantisation fits: a file of at most {file_bytes}; this one has {now_bytes}.",
    "helps_nothing": "Add machines, lend more, or choose a smaller model.",
    "whole_too_big": "{model} runs only whole on one machine and needs {need_bytes}, but {machine} has "
    "{free_bytes} free for models. {what_helps}",
    "whole_over_limit": "{model} runs only whole on one machine and needs {need_bytes}, but the limit set on {machine} "
    "leaves {free_bytes} for models. {what_helps}",
    "host_too_small": "{model} needs {need_bytes}, and {machine}, alone here, has {lent_bytes} free for models. "
    "{what_helps}",
    "host_over_limit": "{model} needs {need_bytes}, and the limit set on {machine}, alone here, leaves {lent_bytes} "
    "for models. {what_helps}",
    "pool_too_small": "{model} needs {need_bytes} and the {machines} machines here have {lent_bytes} for models "
    "in all. {what_helps}",
    "host_short_of_ends": "{model} needs {need_bytes}. The {machines} machines here have {lent_bytes} in all, but only "
    "{here_bytes} of it on {machine}, which computes the first and the last layers itself. {what_helps}",
    "pool_in_pieces": "{model} needs {need_bytes}. The {machines} machines here have {lent_bytes} in all, but in parts "
    "that are too small for its layers. {what_helps}",
    "machine_lends_nothing": "{machine} lends nothing now; `poolhouse status` says why. "
    "Wait until it does, or load the model without it.",
    "machine_too_small": "{machine} would need {need_bytes} for its layers and has {free_bytes} for them. "
    "Give it fewer layers, or choose a shorter context.",
    "kv_odd": "The context of {model} cannot be kept as {kv}: its heads are too small for that. Load it without --kv.",
    "load_stopped": "Loading {model} was stopped. Load it again when you want it.",
    "node_stops": "This node is being stopped. Start it again, then ask again.",
    "last_load_failed": "{model} could not be loaded, and nothing else is. {why} "
    "Load another model, or ask the Guide by its name, `guide`: `poolhouse ask --model guide`.",
    "nothing_loaded": "No model is loaded any more. Load one and ask again.",
    "context_too_long": "{asked} tokens of context are more than this model's {most}. Choose {most} or fewer.",
    "stage_slow": "The layers were not loaded within {seconds:.0f} seconds. Is the other machine's disk very slow?",
    "stage_not_taken": "{machine} took none of the layers for {seconds:.0f} seconds. "
    "Restart Poolhouse there, or load the model without it.",
    "stage_not_offered": "A stage was asked for that was not offered first. Update the app on both machines.",
    "stage_gone": "The layers for this stage are not on the disk any more. Load the model again.",
    "lender_said": "{machine}: {what}",
    "model_in_use": "{name} is loaded now, by this or another name. Unload it first, then remove it.",
    "machine_heard_late": "{name} has not been heard for some seconds. If it does not return, its link is closed.",
    "name_taken": "Another machine of this household is called {name} already. Choose another name.",
    "device_unknown": "This machine has no device called {device}. It has: {devices}.",
    "machine_ambiguous": "{count} machines are called {name}. Use the beginning of the id instead: "
    "`poolhouse machines` shows it.",
    "remove_itself": "This machine cannot remove itself. Remove it from another machine of the household, "
    f"or stop its node {STOPPED_BY} and run `poolhouse reset` here.",
    "measure_no_links": "There is no link to measure: no other machine of the household is reached now.",
    "probe_busy_here": "Links are measured only while this machine rests: no answer, no loading, no other "
    "measurement. Try again in a moment.",
    "probe_busy": "{name} is at work, so the link to it was not measured. Try again in a moment.",
    "probe_silent": "{name} did not finish measuring the link. Try again; if it stays so, restart Poolhouse there.",
    "name_empty": "A machine needs a name that can be seen.",
    "no_pairing_window": "No pairing window is open. Open one first.",
    # the node
    "node_starts_already": "Another process holds {home} and answers nothing: a node that starts, ends or hangs. "
    "End it, or use another --home.",
    "node_runs_already": "A node runs already for {home} (process {pid}). "
    f"Stop it first {STOPPED_BY}, or use another --home.",
    "bug": "Poolhouse made a mistake. The log in the home folder has the details.",
    "bad_request": "The request cannot be used: {why}.",
    "settings_unsaved": "The settings could not be saved in {path}: {why}. Free some space and try again.",
    "settings_damaged": "The settings in {path} cannot be read ({why}). Delete the file to start with new ones.",
    # machines and pairing
    "code_wrong": "That code does not match: it was mistyped, or the other machine shows a new one by now. "
    "Type the one that it shows; tries left: {tries_left}.",
    "codes_wrong": "Three codes were mistyped or out of date, so pairing is closed. "
    "Open it again on the other machine for a new one.",
    "code_form": "A pairing code has six digits. Type it as the other machine shows it.",
    "pairing_tries_used": "Someone entered a wrong code three times, so pairing was closed. "
    "Open it again and use the new code.",
    "pairing_expired": "The code was not used within two minutes. Open pairing again for a new one.",
    "pairing_cancelled": "Pairing was closed on the machine that showed the code. "
    "Open it again there.",
    "pairing_unfinished": "Pairing did not finish: the code was right, but no link came up. "
    "Check that no firewall blocks Poolhouse, then pair again with a new code.",
    "pairing_broken": "The connection ended before pairing was done. Try again with the same code, "
    "at the address that stands beside it: other ports of that machine do not pair.",
    "pairing_busy": "Another machine is being paired there at this moment. "
    "Wait ten seconds and try again.",
    "pairing_open": "A pairing code is shown already. Use it, wait until its two minutes "
    "are over, or call it off: `poolhouse pair --close`.",
    "pairing_not_proved": "The other machine did not prove that it knows the code. "
    "Check the address, then pair again with a new code.",
    "pairing_odd_certificate": "What answers at {address} is no Poolhouse pairing. "
    "Use the address shown beside the code.",
    "pairing_odd_household": "The other machine sent a household that does not hold together. "
    "Pair with another machine of it.",
    "pairing_nobody_near": "No open pairing was heard nearby. Run `poolhouse pair --open` on a machine of the "
    "household and try again, or give the address that it shows. If this machine is paired already, there is nothing "
    "to do.",
    "pairing_member": "{name} is in this household already; there is nothing to pair. "
    "`poolhouse machines` lists who is.",
    "pairing_several_near": "Several machines nearby let another one in: {there}. Give the name or address of one.",
    "pairing_unreachable": "Nothing answers at {address}. Use the address shown beside the code, "
    "and check that both machines are on the same network.",
    "household_already": "This machine belongs to a household already. "
    f"Stop its node {STOPPED_BY}, run `poolhouse reset` here, then pair it again.",
    "household_damaged": "What was kept about the household in {path} is damaged. "
    "Put a copy back, or reset the household and pair again.",
    "household_unsaved": "The household could not be saved in {path}: {why}. "
    "Free some space and try again.",
    "household_full": "The household has no room for another change, so nothing was changed. "
    "Leave it on every machine, and pair them anew.",
    "household_full_here": "What this machine may change in the household is used up, so nothing was changed. "
    "Make the change on {name}, where the household began.",
    "household_outranked": "Another machine that may change the household forbids this change, so nothing was changed. "
    "Remove that machine first.",
    "removed_from_household": "This machine was removed from the household.",
    "machine_removed": "{name} was removed from the household.",
    "removed_needs_reset": "This machine was removed from the household. "
    f"Stop its node {STOPPED_BY}, run `poolhouse reset` here, then pair it again.",
    "reset_while_running": f"The node of {{home}} runs. Stop it first {STOPPED_BY}, then reset.",
    "not_admin": "This machine may not change the household. Do it on a machine that may.",
    "admin_stays": "{name} may change the household, and only a removal takes that right away. "
    "Give --admin as well, or remove it, and pair it again after `poolhouse reset` there.",
    "remove_added": "{name} added {added} to this household. "
    "Say what becomes of that: add --keep-added, or --remove-added.",
    "role_missing": "{name} may not use other machines. `poolhouse roles` changes that, "
    "on a machine that may change the household.",
    "role_missing_here": "{name} says that this machine may not use other machines. `poolhouse roles` changes that, "
    "on a machine that may change the household.",
    "machine_unknown": "There is no machine called {name} in this household. "
    "`poolhouse machines` lists them.",
    "address_wrong": "{address} is no address with a port, and nobody nearby is called so. "
    "Write it as it stands beside the code, like 10.0.0.2:4242.",
    "address_not_ours": "This computer has no address {address}. Give one of its own, or leave it out.",
    "port_taken": "Port {port} cannot be used: {why}. Choose another, or stop what uses it.",
    "discovery_no_network": "This computer is on no network that joins machines of a household; those of "
    "virtual machines, containers and VPNs are not used unasked. Connect it, or start the node with --interface.",
    "discovery_failed": "Machines nearby cannot be looked for: {why}. Pair and reach them by address.",
    "discovery_no_multicast": "This machine does not hear its own announcement: multicast is blocked here. "
    "Let Poolhouse use UDP port 5353 in the firewall, or pair and reach machines by address.",
    "discovery_identity_copied": "Another machine, at {address}, announces itself with this machine's identity, "
    "as after copying a disk or a home folder. Stop one of the two, and run `poolhouse reset` there.",
    "version_differs": "{older} runs {older_build}, {newer} runs {newer_build}. "
    "They cannot share a model. Update {older}.",
    "peer_offline": "{name} is not connected. Check that it is on and that Poolhouse runs there.",
    "peer_address_unknown": "It is not known where {name} is. Start Poolhouse there, "
    "or pair it by address.",
    "peer_unreachable": "{name} does not answer at {address}. "
    "Check that it is on and that Poolhouse runs there.",
    "peer_held_back": "{name} at {address} is not reached: macOS is blocking access to your local network. "
    "Allow Poolhouse in Privacy & Security, Local Network, then test again.",
    "peer_silent": "{name} at {address} can be found but does not answer. "
    "Its firewall probably blocks Poolhouse.",
    "peer_hung_up": "{name} at {address} ended the connection. Try again.",
    "peer_is_another": "The machine at {address} is not {name}. "
    "If its identity was reset, remove {name} and pair it again.",
    "peer_is_this": "That is this machine itself, {name}. Use the address of another one.",
    "peer_refused": "The other machine said no, for a reason unknown here. "
    "Update the app on both machines.",
    "peer_refused_us": "{name} let nobody in with this machine's certificate. "
    "If this machine was removed there, reset its identity and pair it again.",
    "peer_no_hello": "{name} did not introduce itself in time. Try again.",
    "peer_floods": "{name} sent far more than a machine of the household has reason to, so the link was closed. "
    "It comes back in a minute; if this goes on, restart Poolhouse there, or remove the machine.",
    "peer_speaks_oddly": "{name} sent what cannot be understood, so the link was closed. "
    "Update the app on both machines.",
    "peer_stopped": "{name} stopped responding.",
    "link_lost": "The connection to {name} was lost. Poolhouse keeps trying to reconnect.",
    "link_doubled": "There is a link to {name} already; the second one was closed.",
    "link_replaced": "{name} linked anew, so the old link was closed.",
    "channel_closed": "The connection to {name} ended. It is opened again when needed.",
    "shutting_down": "Poolhouse was closed on that machine. Start it there again.",
    # workers, stages and answers
    "worker_not_started": "The process that computes ({worker}) could not be started: {cause}. "
    "Install the app again.",
    "worker_died": "The process that computes ({worker}) is gone: {how}. {words}",
    "worker_log": "Its own log says more.",
    "worker_hung": "The process that computes ({worker}) did nothing for {seconds} s and was ended.",
    "worker_garbled": "The process that computes ({worker}) said what makes no sense ({cause}) "
    "and was ended. Load the model again.",
    "worker_closed": "The process that computes ({worker}) was ended as asked.",
    "worker_refused": "{worker} could not do that: {cause}.",
    "worker_grew": "The layers lent on this machine grew to {used_bytes} where {allowed_bytes} are lent, "
    "so they were ended. Lend more, or use a shorter context.",
    "memory_short": "{worker} has too little memory: {cause}. Use a shorter context or a smaller model.",
    "model_not_loaded": "The model could not be loaded by {worker}: {cause}. "
    "Take another file of it, or another model.",
    "grammar_refused": "The form asked for the answer cannot be used: {cause}.",
    "text_too_slow": "This text could not be parted into tokens within {seconds} s. Send less of it at once.",
    "form_too_heavy": "To keep to the form asked for the answer takes too long, or too much memory, so the answer "
    "stopped. Ask for a simpler form: one that names itself within itself less often.",
    "template_failed": "The chat template of this model cannot be used: {cause}. "
    "Ask without a chat template, or use another file of the model.",
    "template_objects": "This model's chat template does not take this conversation. It says: {cause} "
    "Change the messages, or take another model.",
    "template_none": "This model's file has no chat template, so the chat was written as ChatML, which many models "
    "know. If it answers strangely, take a file of it that was made to chat.",
    "template_without_tools": "This model's chat template knows no tools, so their calls and results were told in "
    "words.",
    "template_option_bad": "The chat template cannot be given {name}: it takes at most {most} options, each a text, a "
    "number, true, false or null, of at most {characters} characters.",
    "stage_missing": "{machine} does not hold these layers any more.",
    "worker_crashed": "The process that computes ({worker}) crashed: {how}. {words} Try again; if it crashes again, "
    "use another file of the model, or update Poolhouse.",
    "model_ends_process": "{model} crashed the engine while it was loaded and tried, so its file is damaged, or one "
    "that this engine does not survive. Take another file of it, or another model.",
    "model_not_finite": "{model} computes numbers that are not finite, so its file is damaged or was made wrongly. "
    "Take another file of it, or another model.",
    "model_not_finite_over": "{model} computed numbers that are not finite over {machines}: its file is damaged, or "
    "one of these machines computes wrongly. Load it on one machine alone, or take another file of it.",
    "model_fails_there": "{model} could not be computed on {machine}: the engine crashed there, or the numbers were "
    "not finite. The file of {model} may be damaged, or {machine} at fault. Load it without "
    "{machine}, or take another file of it.",
    "answer_ends_process": "A process that computes ended {times} times over this answer (the last time "
    "{worker}: {how}), so this answer was stopped and no other one. Change the question, its sampling settings or the "
    "form asked for, or use another file of the model.",
    "worker_memory_short": "The process that computes ({worker}) ran out of memory and ended. "
    "Use a shorter context or a smaller model, or close other programs there.",
    "engine_gave_up": "The engine cannot compute this model ({worker}), and stopped. {words} "
    "Use another file of the model, or update Poolhouse.",
    "numbers_not_finite": "The model computed numbers that are not finite, so the answer stopped. "
    "It would happen again: change the question, or use another file of the model.",
    "sampling_failed": "No token could be chosen for this answer: {cause}. Change the sampling settings or the form "
    "that is asked for.",
    "stage_bad_step": "Poolhouse sent {machine} a step that cannot be computed ({cause}). "
    "This is a mistake of Poolhouse on this computer; update it.",
    "stage_input_odd": "Poolhouse handed on numbers that cannot be used ({cause}). "
    "This is a mistake of Poolhouse on this computer; update it.",
    "stage_sent_odd": "{machine} sent numbers that cannot be used.",
    "stage_failed": "The engine could not compute this: {cause}. It would happen again: use another file of the "
    "model, or update Poolhouse.",
    "proof_unsteady": "{model} gave two answers to one question while it was checked, so it is not used. "
    "A machine computes wrongly: load it without one machine after another to find which.",
    "proof_differs": "{model} answers otherwise over these machines than on one alone, so it is not used. "
    "Load it without one of them to find which computes wrongly.",
    "stage_lost": "{machine} stopped computing its layers.",
    "stage_unreachable": "The connection to {machine} broke. Check that it is on and in the network.",
    "stage_silent": "{machine} did not answer for {seconds} s. "
    "Check that it is awake and in the network.",
    "stage_garbled": "{machine} answered what makes no sense ({cause}). "
    "Update the app on both machines.",
    "stage_out_of_step": "{machine} has lost its place in this conversation.",
    "pipeline_closed": "The model was unloaded while it answered. Ask again to have it loaded anew.",
    "form_waits": "Answers in a form that is asked for come from this machine's own copy of the model, which is being "
    "loaded again. Ask again in a moment.",
    "pipeline_fault": "A fault in the app ended the answer. Load the model again; "
    "the details are in the log.",
    "prompt_empty": "There is nothing to answer: the prompt is empty.",
    "prompt_unclear": "Give exactly one of messages, a prompt and its token ids.",
    "prompt_too_long": "The prompt has {tokens} tokens, and the context holds {context}. "
    "Shorten it, or load the model with a longer context.",
    "prompt_beyond_model": "The prompt has {tokens} tokens, and this model reads at most {context}. Shorten it.",
    "token_unknown": "The prompt has token ids beyond the model's last, {most}.",
    "max_tokens_low": "An answer of {tokens} tokens cannot be asked for. Ask for one at least.",
    "sampling_odd": "{name} must be between {least} and {most}.",
    "stops_too_many": "At most {most} stop strings of at most {characters} characters are taken.",
    "text_too_long": "The text has {characters} characters; at most {most} are taken. Shorten it.",
    "queue_full": "{waiting} requests are waiting already. Try again in {seconds} s.",
    "reader_slow": "Nobody read this answer for {seconds} s, so it was ended.",
    "template_slow": "This model's chat template took longer than {seconds} s and was stopped. "
    "Use another file of the model.",
    "template_large": "This model's chat template used more than {allowed_bytes} and was stopped. "
    "Use another file of the model.",
    "lend_too_large": "These layers need {needed_bytes} here, and {free_bytes} of the "
    "{lent_bytes} lent are free. Lend more, or give this machine fewer layers.",
    "lend_busy": "{count} runs of layers are being loaded here already. Try again in a moment.",
    "lend_twice": "These layers are open here already.",
    "lend_not_open": "These layers are not open here any more. Load the model again.",
    "lend_stopped": "{machine} takes its memory back.",
    "program_unknown": "{name} is no program that lending pauses for. There are: {there}.",
    "lend_taken_back": "{machine} takes its memory back. {why}",
    "lend_more_than_there": "This machine has {total_bytes} of memory in all, so it cannot give {asked_bytes}. "
    "Choose less.",
    "lend_threads_more": "This machine has {cores} processor threads for this, fewer than {threads}. Choose {cores} or "
    "less, or 0 for all.",
    "lend_too_little": "No part of a model fits in {asked_bytes}. Choose {least_bytes} or more, or turn it off.",
    "link_limit_low": "With less than {least} Mbit/s, machines cannot be told from lost ones. Choose {least} or more, "
    "or no limit.",
    "lend_off": "Its owner has turned lending off.",
    "lend_no_role": "The household does not let it lend. `poolhouse roles` changes that, "
    "on a machine that may change the household.",
    "pause_owner": "Paused by its owner.",
    "pause_stopped": "Stopped by its owner.",
    "pause_hours": "Paused: it lends at other hours.",
    "pause_active": "Paused: its owner is using it. Resumes some time after that.",
    "pause_battery": "Paused: it runs on battery. Resumes when it is plugged in.",
    "pause_program": "Paused: a program runs beside which nothing is lent. Resumes when it closes.",
    "pause_hot": "Paused: its processor is too hot. Resumes when it has cooled down.",
    "pause_screen": "Paused: a program fills the screen. Resumes when it no longer does.",
    "pause_vpn": "Paused: it is on a VPN. Resumes when that is off.",
    "pause_metered": "Paused: its network counts what is transferred. Resumes on another one.",
    "pause_gpu": "Paused: another program keeps the graphics card busy. Resumes when that ends.",
    "pause_memory": "Paused: its own programs need the memory. Resumes when enough is free.",
    "pause_less": "Paused: its owner lends less memory than was in use.",
    "hours_odd": "No hours of a week: '{typed}'. Write them like `mon-fri 18:00-08:00, sat, sun`, or `always`.",
    "speed_busy": "Something is computed there at this moment, so its speed cannot be measured. "
    "Try again when it is done.",
    "speed_silent": "{machine} did not answer when its speed was to be measured. It is asked again after ten minutes.",
    "speed_no_room": "Measuring the speed needs {needed_bytes} of memory, and {free_bytes} may be used. "
    "Lend more, or close programs that are not needed.",
    "speed_shape_odd": "The speed of this model cannot be measured: {what} cannot be. "
    "Update the app on both machines.",
    "lend_host_gone": "The machine that used these layers is gone.",
}


_COUNTED = frozenset(("asked", "characters", "context", "least", "mbit", "most", "tokens"))


def said(what: Reason | AppError) -> str:
    """The sentence for a reason. Facts named `…_bytes` are written in GiB, MiB or KiB.

    Raises KeyError for a code without a sentence: a bug that a test looks for.
    """
    reason = what.reason if isinstance(what, AppError) else what
    facts = {name: _shown(name, fact) for name, fact in reason.facts.items()}
    return SENTENCES[reason.code].format(**facts)


def in_words(code: str, **facts: Fact) -> str:
    """The sentence of what is only told, and is nobody's error."""
    return said(Reason(code, facts))


def _shown(name: str, fact: Fact) -> Fact:
    if isinstance(fact, str):
        return fact
    if name.endswith("_bytes"):
        return size(int(fact))
    return f"{fact:,}" if name in _COUNTED and isinstance(fact, int) else fact


def size(n_bytes: int) -> str:
    """A number of bytes as people read it: `1.5 TiB`, `12.0 MiB`, `3.2 KiB`, `7 bytes`."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return "1 byte" if n_bytes == 1 else f"{n_bytes} bytes"
