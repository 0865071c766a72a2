"""The search: what the hub lists, what is refused of it, and how long anybody waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest

from app.catalog.hub import hub_search as online
from app.catalog.hub.hub_address import Hub
from app.catalog.hub.hub_search import HubModel, Listing
from app.catalog.transfers.download_records import joint_hash
from app.core.errors import AppError, BadInput
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, TOKEN, HubServer, serving

DATA = bytes(range(256)) * 64


@pytest.fixture
async def server() -> AsyncGenerator[HubServer, None]:
    async with serving(DATA) as running:
        yield running


async def search(server: HubServer, text: str = "tiny", seconds: float = 20) -> list[HubModel]:
    return await online.search(server.hub, text, 30, None, seconds)


async def listing(server: HubServer, repository: str = REPOSITORY) -> Listing:
    return await online.list_files(server.hub, repository, None)


async def refused(server: HubServer, seconds: float = 20) -> str:
    with pytest.raises(AppError) as caught:
        await search(server, seconds=seconds)
    return caught.value.reason.code


async def test_a_search_finds_repositories_with_what_is_known_of_them(server: HubServer) -> None:
    first, second = await search(server)
    assert first == HubModel(REPOSITORY, 7, 3, "2026-10-02", True, "apache-2.0", "llama", 1234, 64)
    assert first.splits is True
    assert second == HubModel("b/c", None, None, None, False, None, None, None, None)
    assert second.splits is None
    (request,) = server.requests
    assert isinstance(request.query_string, str)
    assert "filter=gguf" in request.query_string
    assert "search=tiny" in request.query_string
    assert request.headers["User-Agent"].startswith("poolhouse/")
    assert "Authorization" not in request.headers


async def test_the_files_of_a_repository_the_smallest_first(server: HubServer) -> None:
    result = await listing(server)
    assert result.revision == COMMIT
    small, large, *parts = result.files
    assert (small.file, small.size_bytes, small.sha256) == (FILE, len(DATA), server.sha256)
    assert (small.quantization, small.recommended, small.reason) == ("Q4_K_M", True, None)
    assert (large.quantization, large.recommended) == ("Q8_0", False)
    (several,) = parts
    assert (several.file, several.n_parts) == ("Tiny-F16-00001-of-00002.gguf", 2)
    assert (several.size_bytes, several.reason) == (8 << 30, None)
    assert several.sha256 == joint_hash(["ab" * 32] * 2)


async def test_what_is_not_on_the_hub_is_named(server: HubServer) -> None:
    for name, code in (("no/body", "hub_unknown"), ("../../etc", "hub_name_odd")):
        with pytest.raises(BadInput) as caught:
            await listing(server, name)
        assert caught.value.reason.code == code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"<html>", "hub_odd"),
        (b'[{"no": "id"}]', "hub_odd"),
        (b'[{"id": 7, "lastModified": "yesterday"}]', "hub_odd"),
        (b"[" * 100_000, "hub_odd"),
        (b'[{"id": "a/b", "x": ' + b"[" * 100_000, "hub_odd"),
        (b'["' + b"x" * (17 << 20) + b'"]', "hub_answer_long"),
    ],
)
async def test_an_odd_answer_is_refused(server: HubServer, answer: bytes, code: str) -> None:
    server.faults.listing = answer
    assert await refused(server) == code


@pytest.mark.parametrize(("status", "code"), [(429, "hub_busy"), (500, "hub_fault"), (503, "hub_fault")])
async def test_a_hub_in_trouble_is_asked_once(server: HubServer, status: int, code: str) -> None:
    server.faults.listing_status = status
    assert await refused(server) == code
    assert len(server.requests) == 1


@pytest.mark.parametrize("to", ["https://evil.example/x", "http://10.0.0.1/", "/api/models"])
async def test_a_redirect_of_a_listing_elsewhere_or_in_a_circle_is_refused(server: HubServer, to: str) -> None:
    server.faults.listing_redirect = to
    code = await refused(server)
    assert code == ("hub_odd" if to.startswith("/") else "hub_redirect_odd")


async def test_who_does_not_wait_any_more_ends_the_search(server: HubServer) -> None:
    server.faults.silent = True
    async with asyncio.timeout(5):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(search(server), name="a search")
            await server.asked.wait()
            task.cancel()
    assert task.cancelled()


async def test_a_token_goes_to_the_hub_alone(server: HubServer) -> None:
    await online.list_files(server.hub, REPOSITORY, TOKEN)
    assert server.requests[-1].headers["Authorization"] == f"Bearer {TOKEN}"
    server.faults.listing_redirect = f"http://localhost:{server.store_port}/blob"  # another host
    with pytest.raises(AppError):
        await online.list_files(server.hub, REPOSITORY, TOKEN)
    assert server.requests[-1].path == "/blob"
    assert "Authorization" not in server.requests[-1].headers


@pytest.mark.parametrize(("status", "code"), [(401, "hub_token_wrong"), (403, "hub_token_wrong"), (404, "hub_unknown")])
async def test_a_refused_token_is_told_apart_from_what_is_not_there(server: HubServer, status: int, code: str) -> None:
    server.faults.listing_status = status
    with pytest.raises(AppError) as caught:
        await online.list_files(server.hub, REPOSITORY, TOKEN)
    assert caught.value.reason.code == code


async def test_nobody_waits_for_a_silent_hub(server: HubServer) -> None:
    server.faults.silent = True
    assert await refused(server, seconds=0.3) == "hub_slow"


async def test_no_network_is_a_sentence() -> None:
    with pytest.raises(AppError) as caught:
        await online.search(Hub("http://127.0.0.1:9"), "x", 3, None, 5)
    assert caught.value.reason.code == "hub_away"


@pytest.mark.parametrize(
    ("endpoint", "good"),
    [
        ("", True), ("https://hf-mirror.com/", True), ("http://127.0.0.1:8080", True),
        ("http://hf-mirror.com", False), ("file:///etc", False), ("https://u:p@x.org", False),
        ("https://", False), ("nonsense", False), ("https://[", False),
        ("https://x.org:99999", False), ("https://x.org:x", False), ("https://x.org:0", False),
    ],
)  # fmt: skip
def test_only_safe_addresses_are_hubs(endpoint: str, good: bool) -> None:
    if good:
        assert Hub.of({"HF_ENDPOINT": endpoint}).endpoint == (endpoint.rstrip("/") or "https://huggingface.co")
    else:
        with pytest.raises(BadInput):
            Hub.of({"HF_ENDPOINT": endpoint})


@pytest.mark.parametrize(
    ("location", "good"),
    [
        ("https://cas-bridge.xethub.hf.co/x?sig=1", True),
        ("https://cdn-lfs.huggingface.co/x", True),
        ("/api/resolve-cache/x", True),
        ("http://cdn-lfs.huggingface.co/x", False),
        ("https://evilhf.co/x", False),
        ("https://hf.co.evil.org/x", False),
        ("https://127.0.0.1/x", False),
        ("https://user@hf.co/x", False),
        ("javascript:x", False),
        ("https://hf.co:99999/x", False),
        ("https://hf.co:x/x", False),
        ("https://hf.co/" + "x" * 9000, False),
    ],
)
def test_redirects_stay_with_the_hub(location: str, good: bool) -> None:
    hub = Hub()
    start = hub.file("a/b", "main", "c.gguf")
    if good:
        assert hub.next(start, location).startswith("https://")
    else:
        with pytest.raises(AppError) as caught:
            hub.next(start, location)
        assert caught.value.reason.code == "hub_redirect_odd"


def test_the_token_is_only_for_the_hub_itself() -> None:
    hub = Hub()
    assert hub.is_own("https://huggingface.co/x")
    for other in ("http://huggingface.co/x", "https://cdn.huggingface.co/x", "https://huggingface.co:8443/"):
        assert not hub.is_own(other)


def test_a_node_loads_what_speaks_to_the_hub_only_when_it_asks() -> None:
    """Loading it would take a sixth of the start. A node needs no arrays either: those are the workers' part."""
    code = "import sys, app.node.start as _; print({'truststore', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert run.stdout == "set()\n"
