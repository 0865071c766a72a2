"""Which process of pytest-xdist runs which test files, also after one of them has ended in the middle."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling


class FilesByProcess(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """As `--dist loadfile`, but for a process that ends: xdist's own gives to the next one what that had done long
    ago, hears of no test, and waits for ever.
    """

    def remove_node(self, node: Any) -> str | None:
        """What ended its process is not tried again by the next one: `make test` does, alone."""
        files: dict[str, dict[str, bool]] = self.assigned_work[node]
        left = [test for tests in files.values() for test, is_done in tests.items() if not is_done]
        for file, tests in list(files.items()):
            tests.update({test: True for test in left[:1] if test in tests})
            if all(tests.values()):
                del files[file]
        super().remove_node(node)
        return left[0] if left else None

    def schedule(self) -> None:
        """A process begins a test once it knows the one after it: as at the beginning, a new one gets two files."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)
