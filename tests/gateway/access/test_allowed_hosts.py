"""Host names and origins as people type them, and as requests carry them."""

from __future__ import annotations

import pytest

from app.core.errors import BadInput
from app.gateway.access.allowed_origins import host_name, is_allowed_host, origin


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("host.docker.internal", "host.docker.internal"),
        ("HOST.docker.Internal.", "host.docker.internal"),
        ("host.docker.internal:47114", "host.docker.internal"),
        (" my_pool ", "my_pool"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("192.168.1.5", "192.168.1.5"),
        ("[2001:DB8:0::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:80", "[2001:db8::1]"),
    ],
)
def test_a_host_name_is_kept_as_requests_carry_it(typed: str, kept: str) -> None:
    assert host_name(typed) == kept
    assert is_allowed_host(typed.strip() if typed.isascii() else kept, [kept]) or ":DB8" in typed


@pytest.mark.parametrize(
    "typed",
    ["", "*", "*.example", "http://a", "a/b", "a b", "a..b", "-a", "a:b", "a:0", "a:99999", "[::1", "[::1]x",
     "x" * 254, "a\n", "☃" * 64, "user@host", "a\x00"],
)  # fmt: skip
def test_what_is_no_host_name_is_refused(typed: str) -> None:
    if typed == "a\n":
        assert host_name(typed) == "a"  # a line end that was pasted along
        return
    with pytest.raises(BadInput) as error:
        host_name(typed)
    assert error.value.reason.code == "api_host_name"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("http://localhost:3000", "http://localhost:3000"),
        ("HTTP://LocalHost:3000/", "http://localhost:3000"),
        ("http://a.example:80", "http://a.example"),
        ("https://a.example:443/", "https://a.example"),
        ("https://a.example:80", "https://a.example:80"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("app://obsidian.md", "app://obsidian.md"),
        ("app://open-webui", "app://open-webui"),
        ("chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"),
        ("http://[::1]:5173", "http://[::1]:5173"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(typed: str, kept: str) -> None:
    assert origin(typed) == kept


@pytest.mark.parametrize(
    "typed",
    ["", "*", "null", "localhost:3000", "http://", "http://*", "http://*.example", "http://a/b", "http://a?x",
     "http://a#x", "http://u@a", "http://u:p@a", "file:///home", "file://host", "data://a", "javascript://a",
     "http://a:", "http://a:0", "http://a:x", "http://a b", "://a", "http:/a", "http://a, http://b"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(typed: str) -> None:
    with pytest.raises(BadInput) as error:
        origin(typed)
    assert error.value.reason.code == "api_origin"


def test_only_the_whole_name_is_allowed_at_any_port() -> None:
    allowed = ["host.docker.internal", "[::1]"]
    for header in ("host.docker.internal", "host.docker.internal:1", "Host.Docker.Internal.:47114", "[::1]:8"):
        assert is_allowed_host(header, allowed), header
    for header in ("", "docker.internal", "x.host.docker.internal", "host.docker.internal.evil.example",
                   "evil.example:host.docker.internal", "[::1].evil.example:80"):  # fmt: skip
        assert not is_allowed_host(header, allowed), header
    assert not is_allowed_host("", [])
