"""Measuring a link: work comes first, and peers that cheat gain nothing."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time

import pytest

from app.core.errors import AppError, Busy, Refused, Unreachable
from app.core.household.link import LinkEnd, LinkKind
from app.core.household.operations import Role
from app.network import measured_paths
from app.network.peer import frame_channel as channels
from app.network.peer import peer_client, probe
from app.network.peer.frame_channel import FrameChannel, MemoryChannel
from app.network.peer.probe import BUSY, DONE, ECHO, GIVE, Measured, Probes, decode_end, encode_end, round_trips_of
from testbed.fault_link import Faults, relay
from tests.network.nodes import Node, Nodes, at, measured, pair, until

# the figures


def test_the_figures_of_round_trips() -> None:
    round_trips = round_trips_of([0.001, 0.003, 0.002, 0.002])
    assert round_trips.median_s == 0.002
    assert round_trips.p95_s == 0.003
    assert round_trips.jitter_s == pytest.approx(0.001)
    assert round_trips_of([n / 1000 for n in range(1, 201)]).p95_s == 0.190


@pytest.mark.parametrize(
    ("expected", "end"),
    [
        (encode_end(LinkEnd(LinkKind.WIFI, "Wi-Fi 2", 866_000_000)), LinkEnd(LinkKind.WIFI, "Wi-Fi 2", 866_000_000)),
        (encode_end(LinkEnd()), LinkEnd()),
        (b"wifi", LinkEnd(LinkKind.WIFI)),  # of a version that says no more
        (b"carrier pigeon", LinkEnd()),
        (b"wifi 99999999999999999999 wlan0", LinkEnd(LinkKind.WIFI, "wlan0")),
        (b"wifi -5 <b>wlan0", LinkEnd(LinkKind.WIFI)),
        (b"\xff\xfe 1 \x1b[31m", LinkEnd(negotiated_bits_per_s=1)),
        (b"ethernet 1 " + b"e" * 10_000, LinkEnd(LinkKind.ETHERNET, "", 1)),
        (b"", LinkEnd()),
    ],
)
def test_the_other_end_is_shown_only_where_it_can_be(expected: bytes, end: LinkEnd) -> None:
    assert decode_end(expected) == end


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        ([(0.0, 0)], None),
        ([(0.0, 0), (0.0, 9)], None),
        ([(0.0, 0), (1.0, 0)], None),
        ([(0.0, 0), (2.0, 100)], 50.0),
        ([(0.0, 0), (1.0, 0), (2.0, 100), (3.0, 200)], 100.0),  # the slow start does not count
        ([(0.0, 0), (0.01, 500), (1.0, 600), (2.0, 700)], 100.0),  # nor a burst
        ([(0.0, 0), (5.0, 70), (9.0, 70)], 70 / 9),  # nothing came after the start
        ([(n / 10, n * 10 if n < 12 or n > 15 else 110) for n in range(31)], 100.0),  # a pause
        ([(0.0, 0), (0.1, 4), (2.7, 8), (3.0, 3_000)], 1_000.0),  # and a long one
    ],
)
def test_the_rate_of_what_arrived(samples: list[tuple[float, int]], rate: float | None) -> None:
    assert probe.rate_of(samples) == (rate if rate is None else pytest.approx(rate))


# work comes first


async def test_a_machine_at_work_is_left_alone(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    attic.at_work = True
    with pytest.raises(Busy) as there:
        await measured(den, attic)
    assert there.value.reason.code == "probe_busy"
    attic.at_work, den.at_work = False, True
    with pytest.raises(Busy) as here:
        await measured(den, attic)
    assert here.value.reason.code == "probe_busy_here"
    den.at_work = False
    await measured(den, attic)


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("after_s", [0.02, 0.4, 1.1])  # among the echoes, the way out, the way back
async def test_a_measurement_ends_at_once_when_work_begins(nodes: Nodes, end: int, after_s: float) -> None:
    both = await nodes.paired("den", "attic")
    den, attic = both
    with relay(attic.network.port, Faults(rate_bits_per_s=100e6, delay_s=0.002)) as link:
        for _ in range(20):  # on a slow computer it may be over before work begins
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(_ended_by_busy(den, attic, link.port), name="measure")
                await asyncio.sleep(after_s)
                both[end].at_work = True
                await running
            both[end].at_work = False
            if running.result():
                break
        else:
            pytest.fail("no measurement ended when work began")
    assert not den.network.probes._active
    await until(lambda: not attic.network.probes._active)  # it hears of the end a moment later
    await measured(den, attic)


async def _ended_by_busy(den: Node, attic: Node, port: int) -> bool:
    try:
        await measured(den, attic, port)
    except Busy:
        return True
    return False


async def test_one_measurement_at_a_time(nodes: Nodes) -> None:
    """Both at once, again and again: some are refused as busy, none hangs, and in turn all succeed."""
    den, attic = await nodes.paired("den", "attic")
    results = await asyncio.gather(
        measured(den, attic), measured(den, attic), measured(attic, den), return_exceptions=True
    )
    assert all(isinstance(item, Measured | Busy) for item in results)
    assert sum(isinstance(item, Busy) for item in results) >= 1
    for node, other in ((den, attic), (attic, den)):
        await until(lambda: not (den.network.probes._active or attic.network.probes._active))
        await measured(node, other)


# peers that cheat, ask too much, or say nothing


async def test_a_member_gets_only_so_many_bytes_a_minute(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MAX_BYTES_PER_MINUTE", 2 * probe.MAX_BYTES)
    den, attic = await nodes.paired("den", "attic")
    now = [1000.0]
    attic.network.probes._clock = lambda: now[0]
    for _ in range(2):
        await measured(den, attic)
    with pytest.raises(Busy):
        await measured(den, attic)
    now[0] += probe.MINUTE_SECONDS + 1
    await measured(den, attic)


async def test_a_peer_that_opens_and_says_nothing(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SILENT_SECONDS", 0.2)
    den, attic = await nodes.paired("den", "attic")

    async def silent(member: object, channel: FrameChannel, ends: object) -> None:
        await asyncio.sleep(30)

    attic.network._listener._probe = silent
    started = time.monotonic()
    with pytest.raises(Unreachable) as error:
        await measured(den, attic)
    assert error.value.reason.code == "probe_silent"
    assert time.monotonic() - started < 20
    assert den.network.id in attic.network.links  # the control link never noticed


async def test_a_peer_that_knows_no_probes(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, attic = await nodes.paired("den", "attic")
    monkeypatch.setattr(peer_client, "PROBE_PATH", "probe/2")
    with pytest.raises(Refused):
        await measured(den, attic)


async def test_strangers_may_not_measure_and_lenders_may(nodes: Nodes) -> None:
    den, attic, loft = [await nodes.open(name) for name in ("den", "attic", "loft")]
    await pair(den, attic, (Role.LENDER,))
    await measured(attic, den)
    await den.network.remove(attic.network.id)
    with pytest.raises(AppError):
        await measured(attic, den)
    with pytest.raises(AppError):
        await measured_paths.measure(loft.network, den.network.id, at(den))


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels in memory hold as many small answers as a socket's buffer does."""
    monkeypatch.setattr(channels, "QUEUED_FRAMES", 4096)


class Scripted:
    """The far end of a memory channel, as a test wants it to be."""

    def __init__(self) -> None:
        self.ours, self.theirs = MemoryChannel.pair()

    async def echoes(self) -> None:
        """Answer honestly until the first message that is no echo; give that back."""
        while (message := await self.theirs.receive())[:1] == ECHO:
            await self.theirs.send(message)
        self.first = message


async def asking(script: Scripted) -> Measured:
    async def channel() -> FrameChannel:
        return script.ours

    return await Probes(lambda: False, lambda own, other: LinkEnd()).measure(channel, "liar")


async def both(script: Scripted, lies: object) -> AppError:
    """The error that a measurement ends with while the other side lies."""
    assert asyncio.iscoroutine(lies)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(lies, name="lies")
        with pytest.raises(AppError) as error:
            await asking(script)
        task.cancel()
    return error.value


async def test_tokens_cannot_be_sent_before_the_bytes() -> None:
    """A peer that confirms bytes it has not read would appear fast. It cannot know the tokens."""
    script = Scripted()

    async def lies() -> None:
        await script.echoes()
        while True:
            await script.theirs.send(probe.TOKEN + secrets.token_bytes(probe.TOKEN_BYTES))

    error = await both(script, lies())
    assert error.reason.code == "peer_speaks_oddly"


async def test_wrong_echoes_are_no_round_trip() -> None:
    script = Scripted()

    async def lies() -> None:
        while True:
            await script.theirs.send(ECHO + bytes(probe.ECHO_BYTES - 1))

    assert (await both(script, lies())).reason.code == "peer_speaks_oddly"


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        (DONE, "probe_silent"),  # nothing came: no figure
        (DONE + b"ethernet" * 1000, "probe_silent"),
        (GIVE, "peer_speaks_oddly"),
        (probe.CHUNK, "peer_speaks_oddly"),
        (probe.CHUNK + bytes(probe.TOKEN_BYTES), "peer_speaks_oddly"),
        (b"", "peer_speaks_oddly"),
        (BUSY, "probe_busy"),
    ],
)
async def test_lies_on_the_way_back(lie: bytes, code: str) -> None:
    script = Scripted()

    async def lies() -> None:
        await script.echoes()
        message = script.first
        while message != GIVE:
            answer, _ = probe.answer_to(message)
            await script.theirs.send(answer)
            message = await script.theirs.receive()
        await script.theirs.send(lie)
        await script.theirs.receive()

    assert (await both(script, lies())).reason.code == code


async def test_a_peer_that_never_stops_giving_is_left() -> None:
    script = Scripted()

    async def lies() -> None:
        await script.echoes()
        message = script.first
        while message != GIVE:
            answer, _ = probe.answer_to(message)
            await script.theirs.send(answer)
            message = await script.theirs.receive()
        chunk = probe.CHUNK + bytes(probe.TOKEN_BYTES + probe.MAX_CHUNK_BYTES)
        with contextlib.suppress(Unreachable):
            while True:
                await script.theirs.send(chunk)
                await script.theirs.receive()

    assert (await both(script, lies())).reason.code == "peer_speaks_oddly"


async def test_an_asking_member_that_breaks_the_rules_ends_only_its_probe(nodes: Nodes) -> None:
    """Random messages, and floods of allowed ones: serving ends, and serves the next one."""
    den, attic = await nodes.paired("den", "attic")
    seed = 20261121
    chance = random.Random(seed)
    link = den.network.link(attic.network.id)
    kinds = [ECHO, probe.CHUNK, probe.TOKEN, GIVE, DONE, BUSY, b"\xff", b""]
    for round_number in range(20):
        channel, _ = await link.paths.now.open_probe()
        try:
            async with asyncio.timeout(30):
                for _ in range(100):
                    size = chance.choice([0, 1, 8, 47, 60, 5000])
                    await channel.send(chance.choice(kinds) + chance.randbytes(size))
                    await asyncio.sleep(0)
        except AppError:
            pass
        except TimeoutError:
            pytest.fail(f"seed {seed}, round {round_number}: the probe did not end")
        finally:
            await channel.close()
    await until(lambda: not attic.network.probes._active)
    attic.network.probes._given.clear()
    await measured(den, attic)
