"""Prompts on disk between real nodes: all of them are restarted, killed, told to delete, or lose a file."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from tests.node.pool import BUSY, Json, TestNode, node, pair

DOCUMENT = [100 + n * n % 900 for n in range(800)]
QUESTIONS = [[210, 220, 230], [310, 320, 330, 340]]
GUIDE: Json = {"model": "guide", "split": [1, 6, 1], "measure": False}


@contextmanager
def household(
    folder: Path, ports: list[int], *, is_new: bool = False, order: Json = GUIDE
) -> Iterator[tuple[TestNode, TestNode]]:
    """A host and a lender of these homes, with the Guide or the model of `order` loaded on both.

    `order["path"]`, if there is one, is imported first.
    """
    with ExitStack() as stack:
        names = zip(("den", "attic"), ports, strict=True)
        host, lender = (stack.enter_context(node(folder / name, name, port=port)) for name, port in names)
        if is_new:
            pair(host, lender)
        asyncio.run(_linked(host, lender))
        load = dict(order)
        if path := load.pop("path", ""):
            load["model"] = host.work("/models", {"path": path, "name": None})["model"]["name"]
        host.work("/load", load)
        yield host, lender


async def _linked(host: TestNode, lender: TestNode) -> None:
    async with asyncio.timeout(10 * BUSY):
        while not host.control("GET", "/status")["machines"].get(lender.ready["id"], {}).get("online"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def free_ports() -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def ask(host: TestNode, ids: list[int], chat: str | None) -> Json:
    sampling = {"temperature": 0.0}
    order = {"prompt_ids": ids, "max_tokens": 12, "ignore_end": True, "sampling": sampling, "conversation": chat}
    return host.work("/ask", order)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/kept/*/*") if not path.suffix)


async def until_kept(folder: Path, n: int) -> None:
    """Wait for the files of the host's two runs, of its list, and of the lender's run."""
    async with asyncio.timeout(10 * BUSY):
        while len(files(folder)) < n:  # noqa: ASYNC110  files tell nobody
            await asyncio.sleep(0.05)


def test_a_chat_about_the_same_document_starts_at_once_after_all_nodes_were_restarted(tmp_path: Path) -> None:
    ports = free_ports()
    with household(tmp_path, ports, is_new=True) as (host, lender):
        assert ask(host, DOCUMENT + QUESTIONS[0], "one")["reused_tokens"] == 0
        asyncio.run(until_kept(tmp_path, 4))
        assert all(document not in path.read_bytes() for path in files(tmp_path) for document in plain_forms())
        assert host.control("GET", "/prompts")["used_bytes"] > 100_000
        assert lender.control("GET", "/prompts")["used_bytes"] > 100_000
    with household(tmp_path, ports) as (host, lender):
        again = ask(host, DOCUMENT + QUESTIONS[1], "two")
        assert again["reused_tokens"] >= 768
        assert ask(host, DOCUMENT + QUESTIONS[1], None)["token_ids"] == again["token_ids"]
    with household(tmp_path, ports) as (host, lender):
        for path in files(tmp_path):
            if f"{os.sep}attic{os.sep}" in str(path):
                path.unlink()
        computed = ask(host, DOCUMENT + QUESTIONS[1], "three")
        assert computed["reused_tokens"] == 0
        assert computed["token_ids"] == again["token_ids"]


def plain_forms() -> list[bytes]:
    """Forms in which a part of the document's ids could be written."""
    return [b"".join(token.to_bytes(4, "little") for token in DOCUMENT[100:108]), str(DOCUMENT[100:108])[1:-1].encode()]


def test_a_node_that_is_killed_loses_nothing_and_leaves_nothing_half(tmp_path: Path) -> None:
    ports = free_ports()
    with household(tmp_path, ports, is_new=True) as (host, lender):
        expected = ask(host, DOCUMENT, None)
        ask(host, DOCUMENT, "one")
        for each in (lender, host):
            process = psutil.Process(each.process.pid)
            children = process.children(recursive=True)
            process.kill()
            each.process.wait()
            psutil.wait_procs(children, timeout=5)
    half = tmp_path / "den" / "kept" / "own" / ("a" * 64 + ".part")
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(bytes(1000))
    with household(tmp_path, ports) as (host, _):
        assert ask(host, DOCUMENT, "two")["token_ids"] == expected["token_ids"]
        assert not half.exists()


def test_the_owner_deletes_them_limits_them_and_switches_them_off(tmp_path: Path) -> None:
    ports = free_ports()
    with household(tmp_path, ports, is_new=True) as (host, lender):
        ask(host, DOCUMENT, "one")
        asyncio.run(until_kept(tmp_path, 4))
        shown = host.run("prompts")
        assert shown.returncode == 0
        assert "encrypted" in shown.stdout
        assert host.run("prompts", "delete").returncode == 0
        assert not list((tmp_path / "den" / "kept").rglob("*"))
        assert ask(host, DOCUMENT, "two")["reused_tokens"] == 0
        asyncio.run(until_kept(tmp_path, 4))
        off = lender.run("prompts", "off")
        assert "poolhouse prompts on" in off.stdout
        assert not list((tmp_path / "attic" / "kept").rglob("*"))
        assert ask(host, DOCUMENT, "three")["reused_tokens"] == 0
        assert host.control("POST", "/prompts", {"most_bytes": 64 << 20})["limit_bytes"] == 64 << 20
        assert host.control("POST", "/prompts", {"most_bytes": None})["chosen_bytes"] is None


def test_what_a_removed_machine_asked_to_keep_is_deleted(tmp_path: Path) -> None:
    ports = free_ports()
    with household(tmp_path, ports, is_new=True) as (host, lender):
        ask(host, DOCUMENT, "one")
        asyncio.run(until_kept(tmp_path, 4))
        of_host = tmp_path / "attic" / "kept" / str(host.ready["id"])
        assert list(of_host.iterdir())
        host.control("DELETE", f"/machines/{lender.ready['id']}")
        asyncio.run(_gone(of_host))


async def _gone(folder: Path) -> None:
    async with asyncio.timeout(10 * BUSY):
        while folder.exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.05)
