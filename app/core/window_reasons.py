"""The sentences of what only the window meets: the node away, files of its own, the screen."""

from __future__ import annotations

WINDOW_SENTENCES: dict[str, str] = {
    "node_away": "The background service does not run just now, so that could not be done. "
    "Wait a moment and try again.",
    "node_keeps_ending": "The background service stopped several times in two minutes. "
    "Look at the details, then press Start again.",
    "node_stopped": "The background service stopped unexpectedly.",
    "node_restarted": "The background service stopped unexpectedly and was started again. "
    "An answer under way ended there; its text is kept.",
    "node_slow_start": "The background service was started and does not answer after {seconds} seconds. "
    "Press Start again, or restart the computer.",
    "host_not_left_out": "{machine} asks for the model, so it always holds a part of it. "
    "Leave out another machine.",
    "autostart_no_program": "Poolhouse runs from its source here, so there is no program that could start "
    "at sign-in. Install it first.",
    "autostart_failed": "{where} could not be changed: {why}. Check who may write there, then try again.",
    # newer versions
    "updates_no_place": "This copy of Poolhouse names no place where newer versions are published, so nobody can be "
    "asked. Look where you got it.",
    "updates_unreached": "{source} could not be asked for newer versions: {why}. "
    "Check the internet connection, then try again.",
    # the history of chats
    "history_full": "The disk is full, so your chats could not be written to {path}. "
    "Free some space; what is shown here is kept and written then.",
    "history_unwritten": "Your chats cannot be written to {path}: {why}. They last only until the window closes. "
    "Check the disk and the permissions of the folder.",
    "history_set_aside": "The file with your chats is damaged. It is kept as {path}, and a new one was begun.",
    "history_unreadable": "Nothing in {path} can be read any more. It stays there; nothing was changed.",
    "history_newer": "Your chats were written by a newer Poolhouse and stay untouched in {path}. "
    "Update this app to see them; until then a new history is used.",
    "history_locked": "Your chats are encrypted, and their key is in the system keyring, which is locked. "
    "Unlock it, then try again. Nothing is lost.",
    "history_key_unreadable": "Your chats are encrypted, and the file with their key, {path}, cannot be read. "
    "Let your user read it, then try again. Nothing is lost.",
    "history_key_gone": "Your chats are encrypted, and their key is gone from its place, {place}. "
    "Put it back there, as from a copy of the disk, then try again; {path} stays as it is.",
    "history_key_wrong": "Your chats are encrypted with another key than the one in {place}. "
    "Put the right one there, as from a copy of the disk, then try again; {path} stays as it is.",
    "history_locked_aside": "The locked chats are kept as {path}. If their key comes back, close Poolhouse and give "
    "the file its old name again.",
    "history_key_unkept": "The key for your chats could not be kept in {place}, so they were not encrypted. "
    "Look at that place, then try again.",
    "history_busy": "Your chats are being rewritten just now, so that was not done. Do it again in a moment.",
    "history_unswept": "Your chats are encrypted now, but remains of the old text may still stand in {path}: {why}. "
    "They are removed at the next start.",
    "chats_odd": "{path} cannot be imported: {what}. Nothing was changed; export the chats again there.",
    "chats_too_large": "{path} is larger than {most_bytes}, so it was not imported. Export fewer chats at once.",
    "chats_not_exported": "The chats could not be written to {path}: {why}. Choose another place.",
    "interface_awaited": "This computer has no network interface {name} now. It is used as soon as it is there; "
    "these are: {there}.",
    "interface_unknown": "This computer has no network interface {name}. Choose one of the list.",
    # what goes with a message
    "attachment_unreadable": "{name} could not be read: {why}. Choose another file.",
    "attachment_large": "{name} is larger than {most_bytes}, too much for a message. Choose a smaller file, "
    "or copy the part that matters.",
    "attachment_no_text": "{name} is not a text file. Choose a file that holds plain text.",
    "attachments_many": "At most {most} files go with one message. Remove one first.",
    "window_libraries": "The window needs libraries of the system that are missing. "
    "On Debian or Ubuntu: sudo apt-get install {packages}",
    "home_unusable": "The folder {path} cannot be used: {why}. Change that, or name another one with --home.",
    "home_no_folder": "{path} is a file. Name a folder with --home, also one that does not exist yet.",
}
