"""Windows: a value of this person's Run key. Written from the system's manual; not yet run there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
NAME = "Poolhouse"


def run_line(command: Sequence[str]) -> str:
    """The command as the Run key wants it: quoted for the system's own parser."""
    return subprocess.list2cmdline(command)


def is_started(line: str | None, approval: bytes | None) -> bool:
    """Whether the system starts it. The Task Manager turns it off by an odd first byte of `approval`."""
    return bool(line and line.strip()) and not (approval and approval[0] & 1)


if sys.platform == "win32":
    import winreg

    class RunKey:
        """One value; another one holds what the Task Manager was told."""

        where = rf"HKEY_CURRENT_USER\{RUN}\{NAME}"

        def is_on(self) -> bool:
            line, approval = _read(RUN), _read(APPROVED)
            return is_started(
                line if isinstance(line, str) else None, approval if isinstance(approval, bytes) else None
            )

        def write(self, command: Sequence[str]) -> None:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, RUN) as key:
                winreg.SetValueEx(key, NAME, 0, winreg.REG_SZ, run_line(command))
            _delete(APPROVED)

        def remove(self) -> None:
            _delete(RUN)
            _delete(APPROVED)

    def _read(path: str) -> object:
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, path) as key:
                return winreg.QueryValueEx(key, NAME)[0]
        except FileNotFoundError:
            return None

    def _delete(path: str) -> None:
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, path, 0, winreg.KEY_SET_VALUE) as key:
                winreg.DeleteValue(key, NAME)
        except FileNotFoundError:
            return

else:

    class RunKey:
        """Asked on Windows only."""

        where = rf"HKEY_CURRENT_USER\{RUN}\{NAME}"

        def is_on(self) -> bool:
            return False

        def write(self, command: Sequence[str]) -> None:
            raise OSError("this is not Windows")

        def remove(self) -> None:
            """Nothing is there."""
