"""Lending of this computer: its state, its owner's rules, and the readings that the rules look at."""

from __future__ import annotations

import msgspec

from app.core.errors import Reason
from app.core.lending.policy import Battery


class Lending(msgspec.Struct, frozen=True):
    """The memory that this computer lends now."""

    state: str = "off"
    reason: str | None = None
    reason_facts: Reason | None = None
    code: str | None = None  # of the reason
    used_by: list[str] = []  # names of machines
    lent_bytes: int = 0  # the total that others may use
    used_bytes: int = 0  # in use by others
    total_bytes: int = 0
    free_bytes: int = 0
    reserve_bytes: int = 0  # kept free for the owner's programs
    own_bytes: int = 0  # held by this computer's own models
    since: int = 0
    resumes_in_s: int | None = None
    gives_back_in_s: int | None = None


class LendingRules(msgspec.Struct, frozen=True):
    """The owner's rules; app/core/lending/policy.py explains each."""

    on: bool = True
    memory_bytes: int | None = None
    devices: list[str] = []
    idle_s: float = 0.0
    hours: str = "always"
    battery_percent: int = 0
    programs: list[str] = []
    gpu: bool = False
    drain_s: float = 0.0
    threads: int = 0
    hot: bool = False
    hot_celsius: int = 95
    screen: bool = False
    network: bool = False
    link_mbit: int = 0
    limit_bytes: int = 0


class LendingReadings(msgspec.Struct, frozen=True):
    """The latest readings that the rules look at; None if the system does not provide one."""

    idle_s: float | None = None
    battery: Battery | None = None
    programs: list[str] = []
    gpu_percent: float | None = None
    hottest_c: float | None = None
    full_screen: bool | None = None
    network: str | None = None


class LendingState(msgspec.Struct, frozen=True):
    """Answer of the `/lending` routes: the state, the rules, their limits, and the readings."""

    lending: Lending = Lending()
    rules: LendingRules = LendingRules()
    most_bytes: int = 0
    most_threads: int = 0
    own_most_bytes: int = 0  # the most that this computer's own models may use
    readings: LendingReadings = LendingReadings()
