"""The sentences of getting models: the hub, downloads, the access token, files of other apps."""

from __future__ import annotations

DOWNLOAD_SENTENCES: dict[str, str] = {
    "pins_damaged": "{path} is damaged: it holds which bytes were taken first of models that no catalogue knows. Put a "
    "copy of it back, or delete it to trust the next download of each anew.",
    # the hub
    "hub_address_odd": "HF_ENDPOINT is set to {address}, which is no https address. Change it, then start again.",
    "hub_name_odd": "{name} cannot be a GGUF file or repository of the hub. Check it, or search for the model.",
    "hub_away": "{source} cannot be reached. Check the internet connection, then try again.",
    "hub_held_up": "{source} cannot be reached: {why}. Check the internet connection.",
    "hub_mirror_held_up": "{source}, the address in HF_ENDPOINT, cannot be reached: {why}. "
    "Check that address and the connection.",
    "hub_stalled": "{source} sends nothing just now.",
    "hub_unreached": "{source} could not be reached in {tries} tries: {why}. "
    "Check the internet connection, then go on with the download.",
    "hub_mirror_unreached": "{source}, the address in HF_ENDPOINT, could not be reached in {tries} tries: {why}. "
    "Check that address and the connection, then go on with the download.",
    "hub_slow": "{source} takes too long to answer. Try again in a moment.",
    "hub_busy": "{source} wants fewer requests just now. Try again in a few minutes.",
    "hub_fault": "{source} has trouble of its own (error {status}). Try again later.",
    "hub_odd": "What {source} answered was not understood. Try again later, or update the app.",
    "hub_answer_long": "The answer of {source} was too long and was refused. Search for something narrower.",
    "hub_unknown": "{repository} is not on {source}, or it is private. Check the name, or search for it.",
    "hub_file_unknown": "{repository} has no file {file} any more. Choose another version of the model.",
    "hub_redirect_odd": "{source} points to {host}, where models are not taken from, so nothing was sent there. "
    "Try again later.",
    "hub_gated": "Your account may not have {repository} yet. Agree to its terms on its page, then try again.",
    "hub_token_needed": "{repository} is given only to people who agreed to its terms. "
    "Agree on its page, and put an access token into Settings.",
    "hub_token_wrong": "{source} did not accept the access token. Put a new one into Settings, then try again.",
    "hub_parts_missing": "It should come in {parts} files, and only {here} of them are there. Choose another version.",
    # downloads
    "download_unknown": "There is no such download any more.",
    "download_no_room": "Not enough space in {folder}: {needed_bytes} are needed with the 5 GiB that stay free, "
    "and {free_bytes} are free. Free some space, then try again.",
    "download_no_size": "{source} does not say how large {file} is, so it was not begun. Choose another version.",
    "download_other_size": "{file} has {found_bytes} on {source} and {known_bytes} were promised. "
    "Choose another version, or try again later.",
    "download_other_file": "{file} on {source} is no longer the file this app knows. "
    "Search for the model online and take it from there.",
    "download_other_than_first": "{file} on {source} is no longer the file that your household took first, so it was "
    "not used. Copy it from a computer that has it, or take another version.",
    "download_broken": "The connection to {source} broke {tries} times. What is here is kept; go on with it later.",
    "download_damaged": "{file} arrived damaged and was not used. Its source vouches for the file as a whole only, "
    "so all of it has to come again: try again.",
    "download_stopped": "The part that is here could not be read: {why}. Download it again.",
    # copies from other machines of the household
    "copy_no_hash": "Nobody can say that {file} on {name} is the same file, so it is not copied. Download it instead.",
    "copy_not_offered": "{name} gives no models to other machines. Turn that on there, in Settings, Models, "
    "or download this one instead.",
    "copy_not_there": "{name} does not give this model. Check that it has it, that it is connected, and that "
    "`poolhouse share` is on there.",
    "copy_gone": "{name} has this model no more. Download it instead.",
    "copy_waits": "{name} gives a model to another machine just now; it is this one's turn afterwards.",
    "copy_away": "{name} is not connected, so nothing can be copied from it. "
    "Turn it on and go on, or download the model instead.",
    "copy_held_up": "{source} cannot be reached: {why}. Check that Poolhouse runs there.",
    "copy_unreached": "{source} could not be reached in {tries} tries: {why}. "
    "Check that Poolhouse runs there, then go on, or download the model instead.",
    "pull_ended": "The download ended: {why}",
    "catalogue_damaged": "The list of models that came with the app is damaged. Install the app again.",
    "catalogue_unknown": "{name} is not in the catalogue. There are: {there}.",
    "catalogue_ambiguous": "{name} could be any of: {there}. Type more of the name.",
    "catalogue_no_version": "{name} has no such version. There are: {there}.",
    # the access token
    "token_odd": "That is no access token: it is one word that begins with hf_. Copy it again.",
    "token_locked": "The place for the access token cannot be opened. Unlock the system keyring, then try again.",
    # files of other apps
    "found_not_here": "{path} belongs to {app}, which has deleted it. Look again for files of other apps.",
}
