"""The worker processes on this machine: how they are started, given orders and limited, and why they died."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_int64, c_size_t, c_uint32, c_uint64
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast
from weakref import WeakSet

import msgspec
import psutil

import backends
from app.core.errors import Fact, Reason, StageLost
from app.core.reasons import os_cause
from app.core.recovery import fault_table
from app.inference.pipeline.speed_measurement import STILL_S
from app.inference.worker.worker_errors import death_error, exit_reason, explaining_lines, refusal_error
from app.machine.hardware.cores import Threads, threads_left_by_owner
from app.machine.hardware.devices import OtherProgramsLoad
from backends import worker_orders
from backends.contract import CPU_VARIANT, EXACT
from backends.frames import HEADER, NO_PIPELINE, BadFrame, Frame, FrameKind, decode_header, encode_frame
from backends.worker.confine import CODE_CACHE, READS
from backends.worker.process_resources import ALLOCATOR, GRAMMARS_VARIABLE

# On Windows, a job object ends a worker with its node and limits its memory. This has not been tested on Windows yet.

EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
KILL_ON_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
PROCESS_MEMORY = 0x100  # JOB_OBJECT_LIMIT_PROCESS_MEMORY: committed memory, without mapped files
SET_QUOTA_AND_TERMINATE = 0x0101  # access rights to the process that AssignProcessToJobObject needs


class BasicLimits(ctypes.Structure):
    """The Windows structure JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", c_int64),
        ("job_time", c_int64),
        ("flags", c_uint32),
        ("least_set", c_size_t),
        ("most_set", c_size_t),
        ("most_processes", c_uint32),
        ("affinity", c_size_t),
        ("priority", c_uint32),
        ("scheduling", c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """The Windows structure JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", BasicLimits),
        ("io", c_uint64 * 6),
        ("process_memory", c_size_t),
        ("job_memory", c_size_t),
        ("peak_process", c_size_t),
        ("peak_job", c_size_t),
    )


def limits(most_bytes: int = 0) -> ExtendedLimits:
    """Return the limits for a job.

    most_bytes: the maximum private memory of a process, or 0 for no limit.
    """
    made = ExtendedLimits()
    made.basic.flags = KILL_ON_CLOSE | (PROCESS_MEMORY if most_bytes else 0)
    made.process_memory = most_bytes
    return made


if sys.platform == "win32":
    from ctypes import wintypes

    import psutil

    class Job:
        """A Windows job object with one process.

        The process ends when the last handle is closed, even if our process dies.
        """

        def __init__(self, pid: int) -> None:
            """Create a job object for a process. Raises OSError if the system refuses."""
            self._pid = pid
            kernel = self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            for name in ("CreateJobObjectW", "OpenProcess"):
                getattr(kernel, name).restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(kernel.CreateJobObjectW(None, None))
            process = wintypes.HANDLE(kernel.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid))
            held = self._ask(limits()) and kernel.AssignProcessToJobObject(self._handle, process)
            error = ctypes.get_last_error()
            kernel.CloseHandle(process)
            if not held:
                self.close()
                raise ctypes.WinError(error)

        def limit_growth(self, n_bytes: int) -> None:
            """Limit the growth of the process's private memory. Larger allocations fail. Raises OSError."""
            try:
                most_bytes = psutil.Process(self._pid).memory_info().private + n_bytes
            except psutil.NoSuchProcess:
                return  # the process is gone, which the next caller will notice
            if not self._ask(limits(most_bytes)):
                raise ctypes.WinError(ctypes.get_last_error())

        def close(self) -> None:
            self._kernel.CloseHandle(self._handle)

        def _ask(self, limits: ExtendedLimits) -> bool:
            size = ctypes.sizeof(limits)
            set_them = self._kernel.SetInformationJobObject
            return bool(set_them(self._handle, EXTENDED_LIMITS, ctypes.byref(limits), size))

else:

    class Job:
        """A stand-in for the job object on other systems.

        There, a worker monitors its parent and its own memory (backends/worker/process_resources.py).
        """

        def __init__(self, pid: int) -> None:
            """Do nothing: this system has no job objects."""

        def limit_growth(self, n_bytes: int) -> None:
            """Do nothing: the worker limits its own memory."""

        def close(self) -> None:
            """Do nothing: there is no handle to close."""


# The environment of a worker process: its threads, its code, and the files that it may read.

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

# How long a thread spins at the end of each operation, waiting for the other threads, before it sleeps. By default,
# OpenMP spins for milliseconds. If anything else is computing, idle threads then occupy the cores that the threads they
# wait for need: three nodes on two cores answered five times as slowly (README). This many turns last about ten
# microseconds, which is as fast as endless spinning on an idle machine (bench/parts/threads.py).
SPINNING = {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "1"}  # in turns for GCC's OpenMP; in ms for LLVM's

# Where graphics drivers keep the code that they have compiled for a card: Mesa, NVIDIA's Vulkan and CUDA, AMD.
CODE_CACHES = ("MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "CUDA_CACHE_PATH", "AMD_SHADER_DISK_CACHE_PATH")

Reads = Sequence[str | Path]


def environment(
    threads: int,
    reads: Reads | None = None,
    *,
    forms: bool = False,
    exact: bool = False,
    code_cache: Path | None = None,
) -> dict[str, str]:
    """Return this process's environment with explicit thread counts and with `backends` first on the path.

    reads, forms, exact, code_cache: see Worker.start.
    """
    root = str(Path(backends.__file__ or ".").resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {} if reads is None else {READS: json.dumps([os.fspath(path) for path in reads])}
    variables |= {GRAMMARS_VARIABLE: "1"} if forms else {}
    variables |= {CPU_VARIANT: EXACT} if exact else {}
    if code_cache is not None:
        variables |= dict.fromkeys((CODE_CACHE, *CODE_CACHES), str(code_cache))
    return {
        **ALLOCATOR,  # set from the start, since the worker would otherwise restart itself to apply it
        **SPINNING,
        **os.environ,
        **dict.fromkeys(THREADS, str(threads)),
        **variables,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        # otherwise a debugger starts when the engine aborts, and its output hides the engine's message
        "GGML_NO_BACKTRACE": "1",
    }


class FrameSplitter:
    """A splitter of a worker's output into frames. Frames are not decoded, because most are passed on as they are."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = HEADER.size  # bytes needed to read the next header or to complete the next frame

    def feed(self, data: bytes) -> list[bytes]:
        """Return all frames that are now complete. Raises BadFrame at the first invalid header."""
        whole: list[bytes] = []
        rest = self._rest
        if not rest and _whole(data):
            return [data]  # the usual case: one read is one frame, which is not copied
        rest += data
        while len(rest) >= self._needed:
            end = HEADER.size + decode_header(rest).n_rest
            if len(rest) < end:
                self._needed = end
                return whole
            with memoryview(rest) as view:
                whole.append(bytes(view[:end]))
            del rest[:end]
            self._needed = HEADER.size
        return whole


def _whole(data: bytes) -> bool:
    return len(data) >= HEADER.size and HEADER.size + decode_header(data).n_rest == len(data)


log = logging.getLogger(__name__)
HERE = Reason("this_computer")  # name, in error messages, of a worker that serves only this node
A = TypeVar("A", bound=worker_orders.Order)

ONE_THREAD = Threads(1)
RUNNING: WeakSet[Worker] = WeakSet()  # the workers of this process
PIPE_BYTES = 1 << 20  # the maximum that Linux allows without privileges; the default of 64 KiB splits large frames
LAST_LINES = 40
GRACE_S = 2.0  # wait between the end of a pipe and a kill, because an exit of its own reveals more about the cause
ORDER_S = 10.0  # time limit for an order that loads nothing
DRAIN_S = 0.2  # time to read a worker's last lines after it exits
LOW_PRIORITY = 10
STILL = frozenset((psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP))
SHARE_S = 2.0  # interval at which a busy worker is told how many threads it may use
STILL_LOOK_S = 0.5  # if a step takes longer, the state of the process is checked


def threads_in_use() -> int:
    """Return the largest number of threads that any worker on this machine used recently, or 0 if none reported it."""
    return max((worker.threads_used for worker in RUNNING if worker.died is None), default=0)


class FrameReceiver(Protocol):
    """A receiver of the frames of one run. It is called on the event loop and must not block."""

    def received(self, data: bytes) -> object:
        """Process a frame of this run, whose header has been checked."""
        ...

    def fail(self, error: StageLost) -> None:
        """Handle the loss of the worker."""
        ...


class StderrTail:
    """The last lines that a process wrote to stderr."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._unfinished = ""

    def feed(self, data: bytes) -> None:
        """Add output from the process."""
        *lines, self._unfinished = (self._unfinished + data.decode("utf-8", "replace")).split("\n")
        self._lines.extend(line[:1000] for line in lines if line.strip())
        self._unfinished = self._unfinished[-1000:]

    def lines(self) -> list[str]:
        """Return the lines. The last one may be incomplete."""
        return [*self._lines, *filter(None, [self._unfinished])]


class ThreadShare:
    """The number of threads that a worker should use. It is lower while other programs are computing."""

    def __init__(self, threads: Threads, pid: int, *, yields: bool) -> None:
        self._threads, self._yields = threads, yields
        self._shared_at = 0.0
        self.used = 0  # number of threads that the worker last reported, or 0
        self._others: OtherProgramsLoad | None = None
        with contextlib.suppress(psutil.Error):
            self._others = OtherProgramsLoad(pid)

    def due(self, now: float) -> int | None:
        """Return the number of threads to send to the worker now, or None if a number was sent recently."""
        if now - self._shared_at <= SHARE_S:
            return None
        self._shared_at, most = now, self._threads.most
        if self._yields and self._others is not None:
            with contextlib.suppress(psutil.Error):
                most = threads_left_by_owner(most, self._others.busy_cores())
        return most


class PendingOrders:
    """The unanswered orders of a worker, by request number."""

    def __init__(self) -> None:
        self._answers: dict[int, Callable[[worker_orders.WorkerAnswer | StageLost], None]] = {}
        self._last = 0
        self._asked_at: list[float] = []

    def add(self, then: Callable[[worker_orders.WorkerAnswer | StageLost], None]) -> int:
        """Return the number of a new order. `then` is called with each of its answers, or with an error."""
        self._last += 1
        self._answers[self._last] = then
        return self._last

    def remove(self, request: int) -> None:
        """Ignore any further answers to an order."""
        self._answers.pop(request, None)

    def answered(self, answer: worker_orders.WorkerAnswer) -> None:
        """Pass an answer to the caller, unless nobody is waiting for it anymore."""
        if then := self._answers.get(answer.request):
            then(answer)

    def fail(self, why: StageLost) -> None:
        """Fail all pending orders, because the worker is gone."""
        answers, self._answers = list(self._answers.values()), {}
        for then in answers:
            then(why)

    @contextlib.contextmanager
    def awaited(self) -> Iterator[float]:
        """Count the enclosed block as a wait for an order. Yields the time at which the wait began."""
        asked_at = time.monotonic()
        self._asked_at.append(asked_at)
        try:
            yield asked_at
        finally:
            self._asked_at.remove(asked_at)

    def oldest(self) -> float | None:
        """Return when the longest current wait began, or None."""
        return min(self._asked_at, default=None)


class Worker(asyncio.SubprocessProtocol):
    """A child process `python -m backends` and its pipes. It ends when the process that started it ends."""

    def __init__(self, name: Fact) -> None:
        self.name = name  # name in error messages: that of a machine, or a phrase
        self.pid = 0
        self.died: StageLost | None = None  # why it died, once it has
        self.under_way = 0  # steps and other frames that were sent and not answered
        self.last_done_at = time.monotonic()  # when the last step was answered
        self.busy_since: float | None = None  # when the current step began
        self.slowest_s = 0.0  # the longest step so far, or 0 before the first answer
        self.most_rows = 0  # the most rows of a step so far, if its sender states them
        self._rows: deque[int] = deque()  # rows of what is under way, one for each answer
        self._still_since: float | None = None
        self._share: ThreadShare | None = None  # None if its number of threads never changes
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._job: Job | None = None
        self._process: psutil.Process | None = None  # kept because it is polled
        self._cutter = FrameSplitter()
        self._receivers: dict[bytes, FrameReceiver] = {}
        self._pending = PendingOrders()
        self._stderr = StderrTail()
        self._why: Reason | None = None  # the reason for ending it ourselves
        self._exited = asyncio.Event()  # set when the process is gone
        self._ended = asyncio.Event()  # set once `died` is

    @classmethod
    async def start(
        cls,
        name: Fact,
        *,
        threads: Threads = ONE_THREAD,
        low_priority: bool = False,
        reads: Reads | None = None,
        forms: bool = False,
        exact: bool = False,
        code_cache: Path | None = None,
    ) -> Worker:
        """Start a worker process. `name` identifies it in error messages. Raises StageLost if it cannot be
        started.

        reads: the only files and folders of the user that it may read; None means all (backends/worker/confine.py).
        forms: whether to allow answers in a prescribed form, for which the worker starts a separate grammar process.
        exact: whether to use only the processor instructions that all common computers have, so that results are equal
            everywhere.
        code_cache: the folder for the compiled code of graphics drivers. Without it, a confined worker may not use a
            graphics card.
        """
        worker = cls(name)
        # on Windows, keeps our Ctrl-C from reaching the worker
        flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: worker,
                sys.executable,
                "-P",
                "-m",
                "backends",
                env=environment(threads.most, reads, forms=forms, exact=exact, code_cache=code_cache),
                creationflags=flags,
            )
        except OSError as error:
            raise StageLost("worker_not_started", worker=name, cause=os_cause(error)) from None
        if low_priority:
            worker._lower_priority()
        if threads.begin and threads.most > 1:
            worker._share = ThreadShare(threads, worker.pid, yields=low_priority)
        return worker

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Requests

    @property
    def threads_used(self) -> int:
        """Return the number of threads that the worker used recently, or 0 if it has not reported any."""
        return self._share.used if self._share is not None else 0

    @property
    def step_rows(self) -> int:
        """Return the rows of the current step, or 0 if its sender did not state them."""
        return self._rows[0] if self._rows else 0

    def send(self, data: bytes, n_rows: int = 0) -> None:
        """Write a frame with a step of `n_rows`. The stages' credit limits the number of frames in flight."""
        if self.died or self._stdin is None:
            raise self.died or StageLost("worker_died", worker=self.name, how=Reason("end_closed"), words="")
        n_answers = _WORK.get(data[3], 0)
        if n_answers:
            self.under_way += n_answers
            self._rows.extend([n_rows] * n_answers)
            now = time.monotonic()
            if self.busy_since is None:
                self.busy_since = now
            if self._share is not None and (most := self._share.due(now)) is not None:
                self._tell_threads(self._share, most)
        self._stdin.write(data)

    async def ask(self, order: worker_orders.WorkerOrder, answer: type[A], within_s: float = ORDER_S) -> A:
        """Send an order and return its answer. The order's `request` number is assigned here.

        Raises StageLost if the worker dies or is killed for not answering in time, and BadInput or DoesNotFit if it
        refuses the order.
        """
        return (await self.ask_parts(order, (answer,), within_s))[0]

    async def ask_parts(
        self, order: worker_orders.WorkerOrder, answers: tuple[type[A], ...], within_s: float = ORDER_S
    ) -> list[A]:
        """Send an order and return its answers.

        They are one answer of each type, then more of the last type until one is marked `last`.
        """
        queue: asyncio.Queue[worker_orders.WorkerAnswer | StageLost] = asyncio.Queue()
        request = self._pending.add(queue.put_nowait)
        got: list[A] = []
        with self._pending.awaited() as asked_at:
            try:
                async with asyncio.timeout(within_s):
                    self.send(encode_frame(_text(msgspec.structs.replace(order, request=request))))
                    while len(got) < len(answers) or not getattr(got[-1], "last", True):
                        kind = answers[min(len(got), len(answers) - 1)]
                        got.append(self.expected(await self._next_answer(queue), kind))
            except TimeoutError:
                seconds = round(time.monotonic() - asked_at, 1)
                self.kill(Reason("worker_hung", {"worker": self.name, "seconds": seconds}))
                raise await self.wait_dead() from None
            finally:
                self._pending.remove(request)
        return got

    async def _next_answer(
        self, queue: asyncio.Queue[worker_orders.WorkerAnswer | StageLost]
    ) -> worker_orders.WorkerAnswer | StageLost:
        """Return the next answer to an order. Raises TimeoutError if the system keeps the process stopped."""
        while True:
            try:
                async with asyncio.timeout(STILL_LOOK_S):
                    return await queue.get()
            except TimeoutError:
                if self.stopped_s(time.monotonic()) > STILL_S:
                    raise

    def send_order(
        self, order: worker_orders.WorkerOrder, then: Callable[[worker_orders.WorkerAnswer | StageLost], None]
    ) -> None:
        """Send an order without waiting. `then` is called with each of its answers, or with an error."""

        def heard(answer: worker_orders.WorkerAnswer | StageLost) -> None:
            if getattr(answer, "last", True):
                self._pending.remove(request)
            then(answer)

        request = self._pending.add(heard)
        self.send(encode_frame(_text(msgspec.structs.replace(order, request=request))))

    def _tell_threads(self, share: ThreadShare, most: int) -> None:
        def heard(answer: worker_orders.WorkerAnswer | StageLost) -> None:
            if isinstance(answer, worker_orders.ThreadsLimited):
                share.used = answer.used

        self.send_order(worker_orders.LimitThreads(request=0, most=most), heard)

    def route(self, pipeline: bytes, receiver: FrameReceiver) -> None:
        """Pass the frames of a run to `receiver` from now on."""
        self._receivers[pipeline] = receiver

    def unroute(self, pipeline: bytes, receiver: FrameReceiver) -> None:
        """Stop passing frames of a run to `receiver`. This has no effect if another receiver has replaced it."""
        if self._receivers.get(pipeline) is receiver:
            del self._receivers[pipeline]

    # State

    def resident_bytes(self) -> int:
        """Return the resident memory of the process, or 0 if it has ended."""
        if self._process is None or self._exited.is_set():
            return 0
        try:
            return self._process.memory_info().rss
        except psutil.Error:
            return 0

    def stopped_s(self, now: float) -> float:
        """Return for how many seconds the system has kept the process stopped, or 0 if it is running or idle."""
        begun = (self._pending.oldest() or now) if self.busy_since is None else self.busy_since
        if now - begun < STILL_LOOK_S or self._process is None:
            self._still_since = None
            return 0.0
        try:
            is_still = self._process.status() in STILL
        except psutil.Error:
            return 0.0
        if not is_still:
            self._still_since = None
            return 0.0
        self._still_since = self._still_since or now
        return now - self._still_since + STILL_LOOK_S

    def limit_growth(self, n_bytes: int) -> None:
        """Limit the growth of the process's memory if the system can enforce it. On Linux, the worker limits itself."""
        try:
            if self._job is not None:
                self._job.limit_growth(n_bytes)
        except OSError as error:  # its node still watches its memory
            log.warning("the system cannot limit the memory of worker %s: %s", self.name, error)

    def unwritten_bytes(self) -> int:
        """Return how many bytes are waiting for the worker to read them."""
        return self._stdin.get_write_buffer_size() if self._stdin is not None else 0

    def stderr_tail(self) -> str:
        """Return the last lines that the process wrote to stderr."""
        return "\n".join(self._stderr.lines()).strip()

    # Ending it

    def kill(self, why: Reason) -> None:
        """Kill the process. Everything that is waiting for it fails with this reason."""
        if self._why is None:
            self._why = why
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()

    async def wait_dead(self) -> StageLost:
        """Wait until the process has ended, and return the reason."""
        await self._ended.wait()
        assert self.died is not None
        return self.died

    async def close(self, grace_s: float = GRACE_S) -> None:
        """End the process by closing its input, or by killing it after `grace_s`. Return once it has ended."""
        if self._why is None:
            self._why = Reason("worker_closed", {"worker": self.name})
        if self._stdin is not None:
            self._stdin.close()
        try:
            async with asyncio.timeout(grace_s):
                await self._exited.wait()
        except TimeoutError:
            self.kill(self._why)
        finally:
            if not self._exited.is_set():  # also the case if this call is canceled
                self.kill(self._why)
        await self._ended.wait()

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        RUNNING.add(self)
        with contextlib.suppress(psutil.Error):
            self._process = psutil.Process(self.pid)
        with contextlib.suppress(OSError):
            self._job = Job(self.pid)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        _enlarge(self._transport.get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr.feed(data)
            return
        try:
            for frame in self._cutter.feed(data):
                self._received(frame)
        except (BadFrame, msgspec.DecodeError, UnicodeDecodeError) as error:
            self.kill(Reason("worker_garbled", {"worker": self.name, "cause": str(error)}))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd != 2 and not self._exited.is_set():
            # Without its pipes it is useless, so it is killed unless it exits by then.
            asyncio.get_running_loop().call_later(GRACE_S, self._end_if_alive)

    def process_exited(self) -> None:
        self._exited.set()
        asyncio.get_running_loop().call_later(DRAIN_S, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._exited.set()
        self._finish()

    def _end_if_alive(self) -> None:
        if not self._exited.is_set() and self._transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()

    def _finish(self) -> None:
        if self.died is not None:
            return
        if self._transport is not None:
            self._transport.close()
        if self._job is not None:
            self._job.close()
        code = self._transport.get_returncode() if self._transport else None
        death = death_error(self.name, code, self._stderr.lines())
        self.died = death if self._why is None else fault_table.loss_error(self._why)
        log.info("worker %s (%d) has ended (%s): %s", self.name, self.pid, exit_reason(code), self.died)
        if self._why is None:
            log.info("its last output: %s", explaining_lines(self._stderr.lines()))
        receivers, self._receivers = list(self._receivers.values()), {}
        for receiver in receivers:
            receiver.fail(self.died)
        self._pending.fail(self.died)
        self._ended.set()

    def _received(self, data: bytes) -> None:
        kind = data[3]
        if kind == FrameKind.TEXT:
            self._pending.answered(worker_orders.decode_answer(memoryview(data)[HEADER.size :]))
            return
        receiver = self._receivers.get(data[4:20])
        if receiver is not None:
            # The receiver measures from the end of the previous step, so last_done_at is updated afterwards.
            receiver.received(data)
        if kind in _ANSWERS:
            self.last_done_at = time.monotonic()
            self.slowest_s = max(self.slowest_s, self.last_done_at - (self.busy_since or self.last_done_at))
            self.under_way -= 1
            n_rows = self._rows.popleft() if self._rows else 0
            if kind in (FrameKind.OUTPUT, FrameKind.SAMPLED):  # others tell that it was not computed
                self.most_rows = max(self.most_rows, n_rows)
            self.busy_since = self.last_done_at if self.under_way > 0 else None

    def expected(self, answer: worker_orders.WorkerAnswer | StageLost, kind: type[A]) -> A:
        """Return the answer if it has the right type. Otherwise, raise the same errors as `ask`."""
        if isinstance(answer, StageLost):
            raise answer
        if isinstance(answer, worker_orders.Failed):
            raise refusal_error(answer, self.name)
        if not isinstance(answer, kind):
            self.kill(Reason("worker_garbled", {"worker": self.name, "cause": Reason("answer_mismatched")}))
            raise StageLost("worker_garbled", worker=self.name, cause=Reason("answer_mismatched"))
        return answer

    def _lower_priority(self) -> None:
        with contextlib.suppress(psutil.Error):
            low = getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", LOW_PRIORITY)
            if self._process is not None:
                self._process.nice(low)


_WORK = {  # the number of answers to each kind of frame
    int(FrameKind.STEP): 1,
    int(FrameKind.FOLLOW): 2,
    int(FrameKind.FORGET): 1,
    int(FrameKind.BEGIN): 1,
}
_ANSWERS = frozenset(
    (FrameKind.OUTPUT, FrameKind.SAMPLED, FrameKind.DONE, FrameKind.STALE, FrameKind.NEED_FROM, FrameKind.LOST)
)


def _text(order: worker_orders.WorkerOrder) -> Frame:
    return Frame(FrameKind.TEXT, NO_PIPELINE, payload=worker_orders.encode(order))


def _enlarge(transport: asyncio.BaseTransport | None) -> None:
    """Enlarge the buffer of a pipe for large frames, if the system allows it."""
    if sys.platform != "linux" or transport is None:
        return
    import fcntl

    # ValueError: the start was abandoned, so the pipes are already closed
    with contextlib.suppress(OSError, AttributeError, ValueError):
        fcntl.fcntl(transport.get_extra_info("pipe").fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
