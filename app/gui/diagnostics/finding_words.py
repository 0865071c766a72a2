"""The texts of the doctor's findings, including headlines, advice and the fix offered by the button."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.core.diagnostics import Check
from app.gui.app.navigation import ERROR_PAGES
from app.gui.look.sentences import said


class Fix(StrEnum):
    """The fixes that the button can offer. None of them modifies the system."""

    AGAIN = "again"
    COMMAND = "command"  # copy a firewall command
    ADDRESS = "address"  # enter the address of the machine
    PAIR = "pair"
    LEAVE = "leave"  # leave the household, which creates a new identity
    START = "start"  # start the node
    SYSTEM = "system"  # open the system's own settings
    LINK = "link"  # show the link on the Pool page
    PLACE = "place"  # open the page of the window on which the user can fix it


FIXES = {
    "node_away": Fix.START,
    "peer_silent": Fix.COMMAND,
    "discovery_no_multicast": Fix.COMMAND,
    "port_closed": Fix.COMMAND,
    "one_way_here": Fix.COMMAND,
    "one_way_there": Fix.COMMAND,
    "peer_unreachable": Fix.ADDRESS,
    "peer_offline": Fix.ADDRESS,
    "peer_address_unknown": Fix.ADDRESS,
    "other_network": Fix.ADDRESS,
    "only_this_machine": Fix.PAIR,
    "discovery_alone": Fix.PAIR,
    "removed_needs_reset": Fix.LEAVE,
    "discovery_identity_copied": Fix.LEAVE,
    "identity_copied": Fix.LEAVE,
    "peer_refused_us": Fix.LEAVE,
    "discovery_no_network": Fix.SYSTEM,
    "peer_held_back": Fix.SYSTEM,
    "vpn_up": Fix.SYSTEM,
    "link_slow": Fix.LINK,
}

_HEADLINES = {
    "node_away": QT_TRANSLATE_NOOP("Doctor", "Poolhouse is not running on this computer"),
    "removed_needs_reset": QT_TRANSLATE_NOOP("Doctor", "This computer was removed from the household"),
    "discovery_no_network": QT_TRANSLATE_NOOP("Doctor", "This computer is not on any network"),
    "discovery_identity_copied": QT_TRANSLATE_NOOP("Doctor", "Two computers have the same identity"),
    "identity_copied": QT_TRANSLATE_NOOP("Doctor", "Two computers have the same identity"),
    "version_differs": QT_TRANSLATE_NOOP("Doctor", "Different versions"),
    "protocol_differs": QT_TRANSLATE_NOOP("Doctor", "Different versions"),
    "peer_is_another": QT_TRANSLATE_NOOP("Doctor", "A different computer answers at the address of {machine}"),
    "peer_refused_us": QT_TRANSLATE_NOOP("Doctor", "{machine} no longer knows this computer"),
    "peer_held_back": QT_TRANSLATE_NOOP("Doctor", "macOS is blocking access to your local network"),
    "peer_silent": QT_TRANSLATE_NOOP("Doctor", "A firewall on {machine} may be blocking Poolhouse"),
    "discovery_no_multicast": QT_TRANSLATE_NOOP("Doctor", "A firewall on this computer may be blocking Poolhouse"),
    "port_closed": QT_TRANSLATE_NOOP("Doctor", "A firewall on this computer may be blocking Poolhouse"),
    "discovery_failed": QT_TRANSLATE_NOOP("Doctor", "Discovery of nearby computers failed"),
    "peer_unreachable": QT_TRANSLATE_NOOP("Doctor", "Poolhouse is not running on {machine}"),
    "other_network": QT_TRANSLATE_NOOP("Doctor", "{machine} is on another network"),
    "peer_offline": QT_TRANSLATE_NOOP("Doctor", "{machine} is off, asleep or away"),
    "peer_address_unknown": QT_TRANSLATE_NOOP("Doctor", "The address of {machine} is unknown"),
    "only_this_machine": QT_TRANSLATE_NOOP("Doctor", "No other computer is paired yet"),
    "discovery_alone": QT_TRANSLATE_NOOP("Doctor", "No other computer was found"),
    "one_way_here": QT_TRANSLATE_NOOP("Doctor", "This computer can't discover {machine}"),
    "one_way_there": QT_TRANSLATE_NOOP("Doctor", "{machine} can't discover this computer"),
    "vpn_up": QT_TRANSLATE_NOOP("Doctor", "A VPN may be blocking connections"),
    "virtual_chosen": QT_TRANSLATE_NOOP("Doctor", "Poolhouse is using a virtual network"),
    "link_slow": QT_TRANSLATE_NOOP("Doctor", "The link to {machine} is slow"),
    "models_folder_away": QT_TRANSLATE_NOOP("Doctor", "The disk with your models is not connected"),
    "models_folder_other": QT_TRANSLATE_NOOP("Doctor", "The disk with your models is not connected"),
    "models_folder_unusable": QT_TRANSLATE_NOOP("Doctor", "The models folder is not writable"),
    "discovery_off": QT_TRANSLATE_NOOP("Doctor", "Discovery of nearby computers is off"),
}
_ADVICE = {
    "only_this_machine": QT_TRANSLATE_NOOP(
        "Doctor", "Start Poolhouse on the other computer. Then show a code on one computer and enter it on the other."
    ),
    "peer_silent": QT_TRANSLATE_NOOP(
        "Doctor", "Copy the command and run it on {machine}. Poolhouse never changes firewall settings itself."
    ),
    "discovery_no_multicast": QT_TRANSLATE_NOOP(
        "Doctor", "Copy the command and run it here. Poolhouse never changes firewall settings itself."
    ),
    "port_closed": QT_TRANSLATE_NOOP(
        "Doctor", "Copy the command and run it here. Poolhouse never changes firewall settings itself."
    ),
    "peer_held_back": QT_TRANSLATE_NOOP("Doctor", "Poolhouse never changes these settings itself."),
    "peer_unreachable": QT_TRANSLATE_NOOP(
        "Doctor", "Start Poolhouse on that computer. If it is already running, enter the computer's new address."
    ),
    "peer_address_unknown": QT_TRANSLATE_NOOP(
        "Doctor", "You can find the address on that machine in Settings > Network."
    ),
    "lends_nothing": QT_TRANSLATE_NOOP("Doctor", "See the lending rules on the “This computer” page."),
    "discovery_off": QT_TRANSLATE_NOOP("Doctor", "Turn on discovery in Settings > Network."),
    "removed_needs_reset": QT_TRANSLATE_NOOP("Doctor", "Leave the household here too, then pair this computer again."),
    "engine_missing": QT_TRANSLATE_NOOP("Doctor", "Reinstall Poolhouse, then test again."),
    "disk_low": QT_TRANSLATE_NOOP("Doctor", "Free some space on the disk with your models."),
    "home_unwritable": QT_TRANSLATE_NOOP("Doctor", "Make this folder writable for your account, then test again."),
}
NAMES = {
    "Listening": QT_TRANSLATE_NOOP("Doctor", "Listening"),
    "Discovery": QT_TRANSLATE_NOOP("Doctor", "Machines nearby"),
    "Version": QT_TRANSLATE_NOOP("Doctor", "Version"),
    "Network": QT_TRANSLATE_NOOP("Doctor", "Network"),
    "Incoming connections": QT_TRANSLATE_NOOP("Doctor", "Incoming connections"),
    "Mutual discovery": QT_TRANSLATE_NOOP("Doctor", "Mutual discovery"),
    "VPN": QT_TRANSLATE_NOOP("Doctor", "VPN"),
    "Virtual": QT_TRANSLATE_NOOP("Doctor", "Virtual networks"),
    "Link": QT_TRANSLATE_NOOP("Doctor", "Link"),
    "IPv6": QT_TRANSLATE_NOOP("Doctor", "IPv6"),
    "Household": QT_TRANSLATE_NOOP("Doctor", "Household"),
    "Lending": QT_TRANSLATE_NOOP("Doctor", "Lending"),
    "Model": QT_TRANSLATE_NOOP("Doctor", "Model"),
    "Engine": QT_TRANSLATE_NOOP("Doctor", "Engine"),
    "Sandbox": QT_TRANSLATE_NOOP("Doctor", "Model files"),
    "Device": QT_TRANSLATE_NOOP("Doctor", "Graphics"),
    "Disk": QT_TRANSLATE_NOOP("Doctor", "Disk"),
    "Memory": QT_TRANSLATE_NOOP("Doctor", "Memory"),
    "Power": QT_TRANSLATE_NOOP("Doctor", "Power supply"),
    "Home": QT_TRANSLATE_NOOP("Doctor", "Data folder"),
    "Key": QT_TRANSLATE_NOOP("Doctor", "Key"),
}


def name_of(check: Check) -> str:
    """Return the display name of a check: a term used in the app, or the name of a machine."""
    name = None if check.name == check.machine else NAMES.get(check.name)
    return _translated(name, check) if name else check.name


def cause(check: Check) -> str:
    """Return a sentence about what a check found."""
    return said(check.cause) if check.cause else ""


def headline(check: Check) -> str:
    """Return a short headline for the problem."""
    text = _HEADLINES.get(check.code)
    return _translated(text, check) if text else name_of(check)


def advice(check: Check) -> str:
    """Return advice on a problem. The window's own text, which mentions its button, replaces the node's."""
    text = _ADVICE.get(check.code)
    return _translated(text, check) if text else said(check.cure) if check.cure else ""


def fix_of(check: Check) -> Fix:
    """Return the fix that the button should offer."""
    usual = Fix.PLACE if check.code in ERROR_PAGES else Fix.AGAIN
    return FIXES.get(check.code, usual)


def result_of(check: Check) -> tuple[str, str, str]:
    """Return the icon, color and word for the result of a check."""
    if not check.tested:
        return "info", "muted", QCoreApplication.translate("Doctor", "The test failed")
    if check.ok is None:
        return "info", "muted", QCoreApplication.translate("Doctor", "Note")
    if check.ok:
        return "check", "good", QCoreApplication.translate("Doctor", "Pass")
    return "error", "error", QCoreApplication.translate("Doctor", "Fail")


def _translated(text: object, check: Check) -> str:
    machine = check.machine or QCoreApplication.translate("Doctor", "the other computer")
    return QCoreApplication.translate("Doctor", str(text)).format(machine=machine)
