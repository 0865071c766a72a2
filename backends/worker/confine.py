"""The confinement of a worker, which denies it access to other files, the network and other programs (SAFETY.md 7).

Model files come from strangers, and native parsers have vulnerabilities. Malicious code that takes over a worker must
find nothing of value. Confinement works only on Linux, through Landlock (files, TCP, signals) and seccomp (sockets). On
other systems, a worker has all the rights of its user.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.worker import process_resources

READS = "POOLHOUSE_READS"  # environment variable: the readable files and folders as JSON
# Environment variable: the folder in which the worker's graphics driver keeps compiled code, if it may use a device
CODE_CACHE = "POOLHOUSE_CODE_CACHE"
FULL, PARTIAL, NONE = "full", "partial", "none"

# linux/landlock.h; these call numbers are the same on all architectures
_CREATE, _ADD, _RESTRICT, _ASK_VERSION, _BENEATH = 444, 445, 446, 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR, _IOCTL = 1 << 1, 1 << 2, 1 << 3, 1 << 15
_REMOVE_FILE, _MAKE_DIR, _MAKE_FILE, _TRUNCATE = 1 << 5, 1 << 7, 1 << 8, 1 << 14
_CHANGE = _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _TRUNCATE
_OF_FILES = 1 << 0 | _WRITE_FILE | _READ_FILE | 1 << 14 | _IOCTL  # rights that a rule for a file may grant
_RIGHTS = ((5, 16), (3, 15), (2, 14), (1, 13))  # minimum version and number of rights
_ALL_TCP, _ALL_SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)

# linux/prctl.h, linux/seccomp.h, linux/audit.h
_NO_NEW_PRIVS, _SET_FILTER = 38, 1
_SPEC_ALLOW = 1 << 2  # otherwise kernels before 5.16 enable slow mitigations
_ALLOW, _DENY, _NOT_KNOWN = 0x7FFF0000, 0x00050000 | 13, 0x00050000 | 38  # EACCES, ENOSYS
# The audit code and the numbers of the calls `socket` and `seccomp`
_MACHINES = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}
_IO_URING, _X32 = 425, 0x40000000  # io_uring can also create sockets
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST = (0, 4, 16)  # offsets in seccomp_data; the last is the lower half of the first argument
# Calls that start processes, by architecture. `clone` also creates threads. glibc uses it when `clone3`, whose
# arguments no filter can read, is unavailable.
_CLONE = {"x86_64": 56, "aarch64": 220}
_FORKS = {"x86_64": (57, 58), "aarch64": ()}  # fork, vfork
_CLONE3, _THREAD = 435, 0x00010000
# Calls that affect other processes of the user, by architecture. The first group is allowed for this process itself:
# tgkill, prlimit64. The second is not: kill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, ptrace, process_vm_readv and
# _writev.
_OF_ITSELF = {"x86_64": (234, 302), "aarch64": (131, 261)}
_OF_OTHERS = {"x86_64": (62, 200, 129, 297, 101, 310, 311), "aarch64": (129, 130, 138, 240, 117, 270, 271)}
_BY_DESCRIPTOR = (424, 434, 438)  # pidfd_send_signal, pidfd_open, pidfd_getfd

SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/opt", "/app", "/snap", "/nix/store", "/gnu/store", "/sys",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/kernel", "/proc/sys/vm",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/run/opengl-driver",
)  # fmt: skip
# What the drivers of graphics cards need: where they are listed, and their device files. Not tested on a real card yet.
DRIVERS = ("/etc/vulkan", "/etc/OpenCL", "/etc/nvidia", "/proc/driver/nvidia", "/proc/devices", "/proc/modules")
CARDS = ("/dev/dri", "/dev/kfd", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
MOST_CARDS = 16  # /dev/nvidia0 and so on
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/shm")  # noqa: S108  no file of ours


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Line(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("n_lines", ctypes.c_ushort), ("lines", ctypes.POINTER(_Line)))


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The restrictions on a process. A true field means that this kind of access is restricted."""

    files: bool = False  # only allowed files are readable
    network: bool = False

    @property
    def level(self) -> str:
        if self.files and self.network:
            return FULL
        return PARTIAL if self.files or self.network else NONE


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """The kernel mechanisms that can confine a process."""

    landlock: int  # version; 0: unavailable
    seccomp: bool

    @property
    def walls(self) -> Restrictions:
        """Return the restrictions that these mechanisms can impose."""
        return Restrictions(bool(self.landlock), self.seccomp)


def supported_mechanisms() -> Mechanisms:
    """Return the mechanisms that this system supports, without changing anything."""
    if sys.platform != "linux":
        return Mechanisms(0, seccomp=False)
    version = _call(_CREATE, None, 0, _ASK_VERSION)
    has_filters = os.path.exists("/proc/sys/kernel/seccomp/actions_avail")
    return Mechanisms(max(0, version), has_filters and platform.machine() in _MACHINES)


def confine_as_told() -> None:
    """Confine this process as specified by the environment variable READS. If it is unset, do nothing."""
    if READS in os.environ:
        reads = [str(path) for path in json.loads(os.environ[READS])]
        walls = confine(reads, os.environ.get(CODE_CACHE, ""))
        if walls != supported_mechanisms().walls:
            sys.stderr.write(f"this worker is not confined as this system could: {walls}\n")


def confine(reads: Sequence[str], code_cache: str = "") -> Restrictions:
    """Confine this process and its children permanently. Return the restrictions that took effect.

    The process must not have started a second thread yet.

    reads: readable files and folders in addition to those of the system and of Python, which may still need to load
        code.
    code_cache: a folder to which the drivers of graphics cards may write. Without one, no graphics card can be used.
    """
    if sys.platform != "linux":
        return Restrictions()
    process_resources.resident_bytes()  # opens statm for later use, because /proc/self may become unreadable
    had = supported_mechanisms()
    if _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        return Restrictions()
    readable = [*SYSTEM, *_own_code(), *reads]
    files = bool(had.landlock) and _confine_files(had.landlock, readable, code_cache)
    return Restrictions(files, had.seccomp and _confine_sockets())


def allows_devices() -> bool:
    """Return whether this process may use a graphics card: if it is confined, it needs a code cache.

    Files do not decide this. A software device has no device file, and without a cache it would compile for minutes.
    """
    return READS not in os.environ or bool(os.environ.get(CODE_CACHE))


def start_nothing() -> bool:
    """Prevent this process from starting, signaling or inspecting other processes. It may still start threads.

    Linux only. Return whether this took effect.
    """
    if sys.platform != "linux" or not supported_mechanisms().seccomp or _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    machine = platform.machine()
    own = os.getpid()
    lines = [(_LOAD, 0, 0, _NUMBER), *_refused(_CLONE3, _NOT_KNOWN)]
    for number in (*_FORKS[machine], *_OF_OTHERS[machine], *_BY_DESCRIPTOR):
        lines += _refused(number, _DENY)
    lines += [
        (_EQUAL, 0, 4, _CLONE[machine]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_OF, 1, 0, _THREAD),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for number in _OF_ITSELF[machine]:
        lines += [
            (_EQUAL, 0, 5, number),
            (_LOAD, 0, 0, _FIRST),
            (_EQUAL, 2, 0, own),
            (_EQUAL, 1, 0, 0),
            (_RETURN, 0, 0, _DENY),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return _filter([*lines, (_RETURN, 0, 0, _ALLOW)])


def _refused(number: int, how: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, how)]


def _own_code() -> list[str]:
    """Return the folders from which Python modules and native libraries are loaded.

    Folders that contain the user's home folder are excluded. Our own package is always included.
    """
    home = Path.home()
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    beside = os.path.join(os.path.dirname(sys.executable), "..", "lib")  # an installed copy has shared libraries there
    places = [*sys.path, *libraries, beside, sys.prefix, sys.base_prefix, sys.exec_prefix]
    folders = [Path(place).resolve() for place in places if place and os.path.isabs(place)]
    ours = Path(__file__).resolve().parent
    return [str(ours), *(str(folder) for folder in folders if not home.is_relative_to(folder))]


def _confine_files(version: int, reads: Iterable[str], code_cache: str) -> bool:
    n_rights = next(count for since, count in _RIGHTS if version >= since)
    every = (1 << n_rights) - 1
    rules = _Ruleset(every, _ALL_TCP if version >= 4 else 0, _ALL_SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(_CREATE, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return False
    try:
        for path in reads:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        nodes = [*DEVICES]
        if code_cache:
            nodes += [*CARDS, *(f"/dev/nvidia{number}" for number in range(MOST_CARDS))]
            _allow(ruleset, code_cache, _CHANGE & every)
            for path in DRIVERS:
                _allow(ruleset, path, _READ_FILE | _READ_DIR)
        for path in nodes:
            _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL) & every)
        return _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Add a rule that allows access to a path.

    A path that does not exist needs no rule. Any other failure is reported, because it makes the path unreadable.
    """
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            _tell(path, error.errno)
        return
    try:
        rights &= rights if os.path.isdir(path) else _OF_FILES
        beneath = _Beneath(rights, folder)
        if _call(_ADD, ruleset, _BENEATH, ctypes.byref(beneath), 0):
            _tell(path, ctypes.get_errno())
    finally:
        os.close(folder)


def _tell(path: str, why: int | None) -> None:
    """Report a failed rule on stderr. The node keeps the last lines of stderr."""
    sys.stderr.write(f"this worker cannot be allowed to read {path}: {os.strerror(why or 0)}\n")


def _confine_sockets() -> bool:
    """Forbid all sockets. Even a local socket may lead to the desktop's message bus, which can start programs."""
    arch, socket, _ = _MACHINES[platform.machine()]
    lines = (
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 0, 4, arch),  # deny other system call interfaces
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 2, 0, _IO_URING),
        (_AT_LEAST, 1, 0, _X32),
        (_EQUAL, 0, 1, socket),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    )
    return _filter(lines)


def _filter(lines: Sequence[tuple[int, int, int, int]]) -> bool:
    made = (_Line * len(lines))(*(_Line(*line) for line in lines))
    program = _Program(len(lines), made)
    seccomp = _MACHINES[platform.machine()][2]
    return _call(seccomp, _SET_FILTER, _SPEC_ALLOW, ctypes.byref(program)) == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    """Make a system call by number. Return a negative value if it failed."""
    call = _libc().syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), *arguments))
