"""`python -m installers.release` makes the publisher's keys, and publishes builds as updates."""

from __future__ import annotations

import argparse
import getpass
import re
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Root

from app import __version__
from app.core.errors import BadInput
from app.core.reasons import size
from app.machine import data_format
from app.machine.engine_packs.store import this_system
from app.machine.versions.layer_archive import write_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.machine.versions.version_store import ABOUT
from app.network.messages import OLDEST_PROTOCOL, PROTOCOL
from app.node.updates.release import HUNDRED, Release, ReleasedLayer
from app.node.updates.sources import WebSource
from app.node.updates.updater import ADDRESS, ROOT
from installers.payload import payload
from installers.payload.payload import LICENSES, SBOM, Payload
from installers.payload.places import PROJECT, WORK
from installers.release.keys import new_keys, new_root, read_keys, require_possible, require_signers, today
from installers.release.repository import Repository
from scripts.setup_errors import Trouble

MAX_CHANGES = 20_000


def main() -> int:
    """Do what was asked, or explain in one sentence why that failed. Return the exit code."""
    chosen = _parser().parse_args()
    try:
        chosen.passphrase = getpass.getpass("Passphrase of the keys: ").encode() if chosen.passphrase else None
        chosen.do(chosen)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a missing right, a folder that is a file
        place = f"{error.filename}: " if error.filename else ""
        print(f"\n{place}{error.strerror or error}.", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, EOFError):
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m installers.release", description=__doc__)
    parser.add_argument("--passphrase", action="store_true", help="ask for the passphrase of the keys")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    keys = commands.add_parser("keys", help="make new keys, and the root that names them")
    keys.add_argument("folder", type=Path)
    keys.add_argument("--roots", type=int, default=3, help="the number of root keys (default: 3)")
    keys.add_argument("--threshold", type=int, default=2, help="how many of them must sign (default: 2)")
    keys.set_defaults(do=_make_keys)
    publish = _with_repository(commands.add_parser("publish", help="build all layers and publish them"))
    publish.add_argument("--version", default=__version__)
    publish.add_argument("--rollout", type=int, default=HUNDRED, metavar="PERCENT")
    publish.add_argument(
        "--updates", type=Path, required=True, metavar="DIR", help="the folder that the build got by --updates"
    )
    publish.set_defaults(do=_publish)
    rollout = _with_repository(commands.add_parser("rollout", help="offer a release to more computers"))
    rollout.add_argument("version")
    rollout.add_argument("percent", type=int)
    rollout.set_defaults(do=_roll_out)
    withdraw = _with_repository(commands.add_parser("withdraw", help="offer a release to nobody any more"))
    withdraw.add_argument("version")
    withdraw.set_defaults(do=_withdraw)
    _with_repository(commands.add_parser("renew", help="renew the dates, once a month")).set_defaults(do=_renew)
    rotate = _with_repository(commands.add_parser("rotate", help="replace the keys, signed by the old ones"))
    rotate.add_argument("new", type=Path, help="a folder for the new keys")
    rotate.add_argument("--roots", type=int, default=3)
    rotate.add_argument("--threshold", type=int, default=2)
    rotate.set_defaults(do=_rotate)
    return parser


def _with_repository(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--keys", type=Path, required=True, metavar="DIR")
    parser.add_argument("--repository", type=Path, required=True, metavar="DIR")
    parser.add_argument("--system", default=this_system())
    return parser


def _repository(chosen: argparse.Namespace) -> Repository:
    return Repository(chosen.repository, read_keys(chosen.keys, chosen.passphrase))


def _make_keys(chosen: argparse.Namespace) -> None:
    require_possible(chosen.threshold, chosen.roots)
    keys = new_keys(chosen.folder, chosen.roots, chosen.passphrase)
    (chosen.folder / ROOT).write_bytes(new_root(keys, chosen.threshold, today()).to_bytes())
    print(f"Keys and {ROOT} were written into {chosen.folder}. Move the root keys to separate offline media.")


def _publish(chosen: argparse.Namespace) -> None:
    repository = _repository(chosen)
    if not repository.exists:
        repository.create(_root_of(chosen.keys))
    check_updates(chosen.updates, chosen.repository)
    built = payload.build(chosen.version, updates=chosen.updates)
    if note := payload.check_clean():
        print(note)
    release, archives = packed(built, chosen.rollout)
    repository.publish(chosen.system, release, archives)
    for layer in release.layers:
        print(f"    {layer.name:10} {size(archives[layer.target].stat().st_size):>10}  {layer.hash[:16]}")
    print(f"{built.version} is published for {chosen.rollout} % of the computers in {chosen.repository}.")


def _root_of(keys: Path) -> Metadata[Root]:
    """Return the root that names the keys in a folder. Raises Trouble."""
    try:
        return Metadata[Root].from_bytes((keys / ROOT).read_bytes())
    except (OSError, RepositoryError) as error:
        raise Trouble(
            f"A new repository needs the file {ROOT} beside the keys in {keys}, as `keys` and `rotate` write it."
        ) from error


def check_updates(updates: Path, repository: Path) -> None:
    """Raise Trouble if copies with these keys and this address could not get later updates from the repository."""
    try:
        data = (updates / ROOT).read_bytes()
        version = Metadata[Root].from_bytes(data).signed.version
        address = (updates / ADDRESS).read_text("utf-8").strip()
    except (OSError, UnicodeError, RepositoryError) as error:
        raise Trouble(f"{updates} needs a {ROOT} and an {ADDRESS}: {error}") from error
    file = repository / "metadata" / f"{version}.root.json"
    if not file.is_file() or file.read_bytes() != data:
        raise Trouble(f"{updates / ROOT} has other keys than {repository}, so no copy could update any more.")
    try:
        WebSource(address)
    except BadInput as error:
        raise Trouble(f"{updates / ADDRESS} is not an https address.") from error


def packed(built: Payload, rollout: int) -> tuple[Release, dict[str, Path]]:
    """Pack the layers of a build. Return the release, and the archives by target."""
    about = WORK / "about"
    shutil.rmtree(about, ignore_errors=True)
    about.mkdir(parents=True)
    (about / SBOM).write_text(built.sbom, "utf-8")
    (about / LICENSES).write_text(built.licenses, "utf-8")
    layers, archives = [], {}
    folders = {ABOUT: about} | {layer.name: layer.folder for layer in built.layers}
    for name, folder in folders.items():
        layer = ReleasedLayer(name, tree_hash(folder), tree_bytes(folder))
        archive = WORK / "archives" / layer.target
        if not archive.exists():  # the same hash gives the same archive
            archive.parent.mkdir(parents=True, exist_ok=True)
            part = archive.with_suffix(".part")
            write_archive(folder, part, built.time)
            part.replace(archive)
        layers.append(layer)
        archives[layer.target] = archive
    release = Release(
        version=built.version,
        commit=built.commit,
        date=datetime.fromtimestamp(built.time, UTC).date().isoformat(),
        protocol=PROTOCOL,
        oldest_protocol=OLDEST_PROTOCOL,
        data_format=data_format.FORMAT,
        rollout_percent=rollout,
        changes=_changes(),
        layers=layers,
    )
    return release, archives


def _changes() -> str:
    """Return the newest part of the changelog."""
    text = (PROJECT / "CHANGELOG.md").read_text("utf-8")
    parts = re.split(r"(?m)^(?=## )", text)
    return (parts[1] if len(parts) > 1 else text)[:MAX_CHANGES]


def _roll_out(chosen: argparse.Namespace) -> None:
    _repository(chosen).roll_out(chosen.system, chosen.version, chosen.percent)
    print(f"{chosen.version} is offered to {chosen.percent} % of the computers.")


def _withdraw(chosen: argparse.Namespace) -> None:
    _repository(chosen).withdraw(chosen.system, chosen.version)
    print(f"{chosen.version} is no longer offered.")


def _renew(chosen: argparse.Namespace) -> None:
    _repository(chosen).renew()
    print(f"The dates were renewed on {time.strftime('%Y-%m-%d')}.")


def _rotate(chosen: argparse.Namespace) -> None:
    old = read_keys(chosen.keys, chosen.passphrase)
    repository = Repository(chosen.repository, old)
    before = repository.root()
    require_possible(chosen.threshold, chosen.roots)
    require_signers(before, old.roots)
    keys = new_keys(chosen.new, chosen.roots, chosen.passphrase)
    root = new_root(keys, chosen.threshold, today(), before, old.roots)
    (chosen.new / ROOT).write_bytes(root.to_bytes())
    Repository(chosen.repository, keys).renew(root)
    print(f"The repository is signed by the keys in {chosen.new} from now on.")


if __name__ == "__main__":
    sys.exit(main())
