"""The sentences of the command line: its node, what was typed, the demo."""

from __future__ import annotations

STOPPED_BY = (
    "(Ctrl-C in its terminal, or Quit in the menu of Poolhouse's tray icon)"  # a running node
)

COMMAND_SENTENCES: dict[str, str] = {
    "autostart_no_unit": "Only Linux has units of systemd. Leave --headless out, or start the node by the means of "
    "this system.",
    "node_not_running": "No Poolhouse node runs for {home}. Open Poolhouse (`poolhouse`), "
    "or start one with `poolhouse node`.",
    "home_missing": "There is no folder {home}, so no Poolhouse node runs for it. Check the path; "
    "opening Poolhouse (`poolhouse --home {home}`) or `poolhouse node --home {home}` makes it and starts one.",
    "node_other_version": "The running node is Poolhouse {node}, this command is {own}. "
    f"Stop that node {STOPPED_BY} and start it again.",
    "node_silent": f"The node has not answered for {{seconds}} seconds. Stop it {STOPPED_BY} and start it again.",
    "node_went_away": "The node stopped before it had answered. "
    "Start it again with `poolhouse node`.",
    "node_fault": "The node failed because of a fault of its own ({detail}). "
    "Its log says more; `poolhouse doctor` checks the rest.",
    "said_by_node": "{sentence}",
    "stopped": "Stopped.",
    "pull_paused": "Paused; what is here is kept. `poolhouse pull {model}` goes on.",
    "model_not_pulled": "{model} is in the catalogue, and not on the shelf yet. `poolhouse pull {model}` gets it.",
    "models_not_pulled": "No model on the shelf is called {name}. In the catalogue it could be any of: {there}. "
    "`poolhouse pull NAME` gets one.",
    "guide_answers": "No other model is loaded, so the Guide answers, the small model that comes with Poolhouse. "
    "`poolhouse load MODEL` loads another.",
    "name_means": "{name} means {model} here.",
    "load_given_up": "Stopped before {model} was loaded as asked. `poolhouse status` shows what is loaded now.",
    "usage": "{sentence}",
    "system_error": "This computer refused a step: {detail}.",
    "no_room_left": "The disk is full ({detail}). Free some space and try again.",
    "not_allowed": "This computer does not allow a step ({detail}). Change the permissions of that folder, "
    "or name another one with --home.",
    "nobody_to_ask": "Cannot ask for confirmation here (no terminal, or --json). Add --yes to confirm.",
    "prompt_missing": "There is nothing to ask. Give a prompt, or `-` and text on standard input.",
    "prompt_unreadable": "The text on standard input is not UTF-8. Convert it and try again.",
    "demo_without_model": "This installation holds no built-in model. "
    "Install Poolhouse again, or load a model of your own with `poolhouse import`.",
    "demo_node_ended": "{name} of the demo ended before it was ready: {detail}.",
    "demo_slow": "{name} of the demo was not ready after {seconds} seconds. "
    "Try again when this computer is less busy.",
    "bench_silent": "{model} gave no token, so nothing could be timed. "
    "See `poolhouse status`, load it again and try once more.",
    "erase_while_running": "The node of {home} runs. Quit Poolhouse first, in the tray too, then erase.",
    "erase_no_home": "{path} is no data folder of Poolhouse, so nothing was deleted. Check the path.",
    "models_folder_new": "There is no folder {folder}. Check its name, or add --create to have it made.",
    "models_folder_nested": "There is no folder {folder}. Check its name, or make it: --create makes only the last "
    "folder of a path.",
    "models_move_ended": "The move ended: {why}",
    "erase_away": "The models in {folder} could not be deleted: its disk is not there. Delete that folder by hand.",
    "erase_left": "{path} could not be deleted: {why}. Delete it by hand.",
    "erase_keyring": "The keys of Poolhouse in the system keyring could not be deleted. "
    "Unlock it and delete them there; they open nothing any more.",
    "chats_none": "There are no chats of the window in {path}. Write one there first, or give another --home.",
    "chats_in_use": "The chats in {path} are in use. Quit the window, in the tray too, then do it again.",
    "demo_too_many": "The built-in model has {layers} layers: "
    "at most {most} machines can share it.",
}
