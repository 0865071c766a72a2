"""The sentences of `doctor`: what each check found, and its cure."""

from __future__ import annotations

from app.core.command_reasons import STOPPED_BY

CHECK_SENTENCES: dict[str, str] = {
    # this computer
    "check_engine": "The engine {engine} {version} runs on {processor}.",
    "check_engine_with": "The engine {engine} {version} runs on {processor} with {features}.",
    "check_engine_unproved": "The engine {engine} {version} computes whole models only: parts were proved with "
    "{proved} only.",
    "cure_engine_unproved": "Run `make clean` and `make setup` in the Poolhouse folder.",
    "check_engine_missing": "The engine {engine} cannot be used: {why}.",
    "cure_engine_missing": "Run `make run` in the Poolhouse folder: it compiles the engine.",
    "check_device": "{device} by {api}: {free_bytes} of {total_bytes} are free.",
    "graphics_unused": "This computer has a graphics card ({cards}), but Poolhouse computes on the processor alone, "
    "which is slower: this version uses no graphics cards.",
    "cure_graphics_unused": "No driver and no setting changes that. Smaller models answer faster.",
    "check_plugged": "Plugged in.",
    "check_on_battery": "On battery, {percent:.0f} % left.",
    "cure_on_battery": "Plug it in: it is faster then.",
    "check_disk": "{free_bytes} are free where models are kept ({folder}).",
    "cure_disk": "Free some space, or keep models on another disk: `poolhouse folder FOLDER --move`.",
    "check_memory": "{free_bytes} of {total_bytes} are free.",
    "cure_memory": "Close programs that are not needed.",
    "check_home": "{folder} can be written.",
    "check_home_unwritable": "{folder} cannot be written: {why}.",
    "cure_home_unwritable": "Make it writable for you, or choose another folder with --home.",
    "check_key": "The key is kept {where}.",
    "check_confined_full": "Whatever is in a model file, what reads it reaches no network and none of your files.",
    "check_confined_files": "What reads model files is kept from your other files, but not from the network: "
    "this Linux kernel filters no calls (seccomp) on this processor.",
    "check_confined_network": "What reads model files is kept from the network, but not from your other files: "
    "this Linux kernel has no Landlock, which came with version 5.13, or it is turned off.",
    "check_confined_neither": "Nothing keeps what reads model files from your other files or from the network: "
    "this Linux kernel has neither Landlock nor seccomp, or both are turned off.",
    "check_confined_unknown": "Whether what reads model files is kept from your other files and from the network "
    "could not be found out.",
    "check_confined_none": "Nothing keeps what reads model files from your other files or from the network: "
    "on this system Poolhouse has no means for that.",
    "cure_confined": "Open only models whose source you trust.",
    # the household
    "check_listening": "Other machines reach this one at {address}.",
    "cure_removed": f"Stop its node {STOPPED_BY} and run `poolhouse reset` here, then pair it again.",
    "check_alone": "Only this machine so far.",
    "cure_alone": "Run `poolhouse pair --open` here, and `poolhouse pair ADDRESS` on the other machine.",
    "check_household": "{machines} machines are paired.",
    "check_lending": "Up to {lent_bytes} for others.",
    "check_lends_nothing": "No memory is free for others.",
    "cure_lends_nothing": "See the rules with `poolhouse lend`; --memory 2GiB lends.",
    "check_reached": "Reached at {address}.",
    "check_address_unknown": "This machine has not met it yet, so its address is not known here.",
    "cure_address_unknown": "It is met when either side is given the address.",
    "check_not_reached": "It is off, or on another network.",
    "cure_not_reached": "Start Poolhouse there; both machines must be on one network.",
    "check_model_ready": "{model} is loaded and answers.",
    "check_model_loading": "{model} is being loaded.",
    "cure_model_lost": "Load it again.",
    # the network
    "check_discovery_off": "Machines nearby are not looked for, as chosen. They are reached by address.",
    "check_discovery_alone": "This machine announces itself, and hears no other one.",
    "cure_discovery_alone": "Where others run, the network keeps them apart, as a guest Wi-Fi does: "
    "use another one, or pair by address.",
    "check_hears_one": "Machines nearby find this one, and it hears one other.",
    "check_hears": "Machines nearby find this one, and it hears {count} others.",
    "check_protocol": "A Poolhouse of another version is nearby, and the two cannot talk.",
    "cure_protocol_there": "Update the older one.",
    "cure_protocol_here": "Update this one.",
    "check_other_network": "{machine} was last met at {address}, which is on none of this computer's networks now.",
    "cure_other_network": "Connect both to the same network, or give the address it has now.",
    "check_nobody_to_call": "No other machine is connected that could call this one back.",
    "check_called_all": "All connections were made from here, so it is not known whether others get in.",
    "cure_called_all": "If only this side connects, a firewall of this computer blocks Poolhouse.",
    "check_came_in": "Another machine connected to this one by itself.",
    "check_called_back": "{machine} was asked to call this computer back, and could.",
    "check_not_called_back": "{machine} was asked to call this computer back, and could not.",
    "cure_not_called_back": "A firewall of this computer probably blocks Poolhouse: let it through there.",
    "check_both_ways": "{machine} and this computer hear each other nearby.",
    "check_one_way_there": "Discovery goes one way: this computer hears {machine} nearby, and {machine} does not hear "
    "this computer.",
    "cure_one_way_there": "A firewall on {machine} probably lets no announcements in. Until it does, {machine} finds "
    "this computer only by its address.",
    "check_one_way_here": "Discovery goes one way: {machine} hears this computer nearby, and this computer does not "
    "hear {machine}.",
    "cure_one_way_here": "A firewall of this computer probably lets no announcements in. Until it does, this computer "
    "finds {machine} only by its address.",
    "check_no_way": "{machine} and this computer are connected, and neither hears the other nearby.",
    "cure_no_way": "They find each other by their addresses only. Other networks do that, and routers that keep "
    "machines apart.",
    "check_link": "The link to {machine} carries {mbit} Mbit/s, with a round trip of {ms} ms.",
    "check_link_limited": "The link to {machine} is held to {mbit} Mbit/s, as chosen, with a round trip of {ms} ms.",
    "check_link_slow": "The link to {machine} carries {mbit} Mbit/s, with a round trip of {ms} ms. "
    "This slows down answers that need both machines.",
    "check_link_untested": "The link to {machine} could not be measured just now.",
    "check_link_busy": "The link to {machine} is not measured while an answer runs.",
    "cure_link_vpn": "It goes through a VPN: leave that for the home, or choose another interface for this link.",
    "cure_link_wifi": "It goes through Wi-Fi: use a cable, or bring the machine nearer to the router.",
    "cure_link_cable": "Look for another cable or switch, and for what else uses the network.",
    "check_no_vpn": "No VPN is connected.",
    "check_vpn": "A VPN is connected ({names}). Some keep all other traffic out.",
    "cure_vpn": "Disconnect it for a moment and test again.",
    "check_no_virtual": "No network of containers or virtual machines is up.",
    "check_virtual": "Networks of containers and virtual machines ({names}) are left alone.",
    "check_virtual_chosen": "{names} is used, as chosen: a network of containers or virtual machines, which mostly "
    "leads to no other computer.",
    "cure_virtual": "If other machines do not find this one, start its node without `--interface {names}`.",
    "check_ipv6": "IPv4 and IPv6 can be used.",
    "check_ipv6_off": "IPv6 is off. IPv4 is enough.",
}
