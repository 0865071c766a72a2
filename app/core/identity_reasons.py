"""What a person reads about this machine's identity and the places where secrets are kept."""

from __future__ import annotations

IDENTITY_SENTENCES = {
    "identity_locked": "The keyring is locked. Unlock it to reach your household.",
    "identity_damaged": "The identity of this machine in {path} is damaged. "
    "Put a copy back, or reset the identity and pair again.",
    "identity_missing": "The identity of this machine, {path}, is gone, and what belongs to it is still here. "
    "Put a copy of that file back, or run `poolhouse reset` and pair again.",
    "identity_unreadable": "The identity of this machine in {path} cannot be read. "
    "Check the permissions of the file.",
    "identity_unwritten": "The identity of this machine could not be written to {path}. "
    "Check the disk and the permissions of the folder.",
    "identity_copied": "Two machines run with the identity of {name}, as after copying a disk. "
    "Reset the identity of one of them.",
    "keystore_unknown": "POOLHOUSE_KEYSTORE is {value}. Set it to keyring or file, or not at all.",
    "passphrase_lost": "The passphrase of this machine's identity, in {path}, is missing or wrong. "
    "Put a copy back, or reset the identity and pair again.",
    "secret_unread": "{path} cannot be read: {why}. Change that, or put a copy back, and try again.",
    "secret_unwritten": "{path} cannot be written: {why}. "
    "Free some space, or check the permissions of its folder, and try again.",
}
