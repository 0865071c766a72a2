"""The network of namespaces for tests: where none can be made, the test is skipped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from testbed import namespaces
from testbed.namespaces import Lan, NoNamespaces


@contextlib.contextmanager
def lan(n_computers: int) -> Iterator[Lan]:
    """Such a network until the end of the block."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(namespaces.lan(n_computers))
        except NoNamespaces as reason:
            pytest.skip(str(reason))
        yield made
