"""The publisher's keys: root keys that are kept offline, one for releases, and one that renews dates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, Root, Snapshot, Targets, Timestamp

from scripts.setup_errors import Trouble

ROOT_DAYS, TARGETS_DAYS, DATE_DAYS = 365, 180, 30
TARGETS_KEY, DATES_KEY = "targets.pem", "dates.pem"
PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Keys:
    """The signers of a repository. Those of roots are needed only for a new root."""

    roots: Sequence[CryptoSigner]
    targets: CryptoSigner
    dates: CryptoSigner  # of snapshots and timestamps


def new_keys(folder: Path, n_roots: int, passphrase: bytes | None = None) -> Keys:
    """Write new keys into an empty folder. Raises Trouble."""
    names = [f"root-{number}.pem" for number in range(1, n_roots + 1)]
    if folder.exists() and any(folder.iterdir()):
        raise Trouble(f"{folder} is not empty. Choose a new folder, so that no key is lost.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in [*names, TARGETS_KEY, DATES_KEY]:
        lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
    return read_keys(folder, passphrase)


def read_keys(folder: Path, passphrase: bytes | None = None) -> Keys:
    """Read the keys that are in a folder. Those of roots may be elsewhere. Raises Trouble."""
    roots = [_signer(path, passphrase) for path in sorted(folder.glob("root-*.pem"))]
    return Keys(roots, _signer(folder / TARGETS_KEY, passphrase), _signer(folder / DATES_KEY, passphrase))


def _signer(path: Path, passphrase: bytes | None) -> CryptoSigner:
    try:
        key = load_pem_private_key(path.read_bytes(), passphrase)
    except (OSError, ValueError, TypeError) as error:
        raise Trouble(f"The key {path} cannot be read: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Trouble(f"The key {path} is not an Ed25519 key.")
    return CryptoSigner(key)


def require_possible(threshold: int, n_roots: int) -> None:
    """Raise Trouble if so many of the root keys cannot sign."""
    if not 1 <= threshold <= n_roots:
        raise Trouble(f"{threshold} of {n_roots} root keys must sign, which is not possible.")


def require_signers(root: Metadata[Root], signers: Sequence[CryptoSigner]) -> None:
    """Raise Trouble if these signers are too few to vouch for the root that follows this one."""
    role = root.signed.roles[Root.type]
    n_known = len({signer.public_key.keyid for signer in signers} & set(role.keyids))
    if n_known < role.threshold:
        raise Trouble(
            f"{role.threshold} of the old root keys must sign, but the folder of the keys has only {n_known} of them."
        )


def new_root(
    keys: Keys, threshold: int, now: datetime, before: Metadata[Root] | None = None, old: Sequence[CryptoSigner] = ()
) -> Metadata[Root]:
    """Return a signed root that names these keys.

    before, old: the root that it follows and its signers, which must sign too.
    """
    require_possible(threshold, len(keys.roots))
    if before is not None:
        require_signers(before, old)
    version = before.signed.version + 1 if before else 1
    root = Root(version=version, expires=now + timedelta(days=ROOT_DAYS), consistent_snapshot=True)
    for signer in keys.roots:
        root.add_key(signer.public_key, Root.type)
    root.add_key(keys.targets.public_key, Targets.type)
    root.add_key(keys.dates.public_key, Snapshot.type)
    root.add_key(keys.dates.public_key, Timestamp.type)
    root.roles[Root.type].threshold = threshold
    signed = Metadata(root)
    seen: set[str] = set()
    for signer in [*keys.roots, *old]:
        if signer.public_key.keyid not in seen:
            signed.sign(signer, append=True)
            seen.add(signer.public_key.keyid)
    if before is not None:
        before.verify_delegate(Root.type, signed)
    return signed


def today() -> datetime:
    """Return the present time, in whole seconds as the metadata has it."""
    return datetime.now(UTC).replace(microsecond=0)
