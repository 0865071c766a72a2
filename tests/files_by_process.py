"""Distribution of test files over the processes of pytest-xdist, even after one of them crashed."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling


class FilesByProcess(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """A variant of `--dist loadfile` that handles a process that ends.

    xdist's own gives the next one finished work, hears of no test, and waits forever.
    """

    def remove_node(self, node: Any) -> str | None:
        """Drop the test that crashed its process, so that the next one does not retry it: `make test` does, alone."""
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
