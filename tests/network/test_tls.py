"""Each pitfall of SAFETY.md 2 as a test: what TLS really does, and that our contexts do better."""

from __future__ import annotations

import datetime as dt
import re
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.network import tls
from app.network.tls import fingerprint, pairing_client_context, pairing_server_context, peer_context
from tests.network.certificates import PASSPHRASE, SERVER_ONLY, Recipe, handshake, loaded

ACCEPT, DIAL = ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH
UTC = dt.UTC


class Pair:
    """A member that accepts, and one that dials; `stranger` is nobody's."""

    def __init__(self, directory: Path) -> None:
        self.files = {name: directory / f"{name}.pem" for name in ("den", "attic", "stranger")}
        self.recipes = {name: Recipe() for name in self.files}
        self.der = {name: recipe.save(self.files[name]) for name, recipe in self.recipes.items()}

    def accept(self, *pins: bytes) -> ssl.SSLContext:
        return peer_context(ACCEPT, self.files["den"], PASSPHRASE, pins)

    def dial(self, name: str = "attic", pin: str = "den") -> ssl.SSLContext:
        return peer_context(DIAL, self.files[name], PASSPHRASE, [self.der[pin]])


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def without_certificate(pin: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=pin)
    return context


def test_pinned_machines_meet_and_see_each_other(pair: Pair) -> None:
    outcome = handshake(pair.accept(pair.der["attic"]), pair.dial())
    assert outcome.up
    assert outcome.server_saw == pair.der["attic"]
    assert outcome.client_saw == pair.der["den"]
    assert fingerprint(pair.der["den"]) != fingerprint(pair.der["attic"])


def test_no_certificate_unknown_one_or_no_pins_are_refused(pair: Pair) -> None:
    assert not handshake(pair.accept(pair.der["attic"]), without_certificate(pair.der["den"])).up
    assert not handshake(pair.accept(pair.der["attic"]), pair.dial("stranger")).up
    assert not handshake(pair.accept(), pair.dial()).up


def test_the_dialing_side_refuses_a_stranger_too(pair: Pair) -> None:
    server = peer_context(ACCEPT, pair.files["stranger"], PASSPHRASE, [pair.der["attic"]])
    assert not handshake(server, pair.dial(pin="den")).up
    nobody = peer_context(DIAL, pair.files["attic"], PASSPHRASE, [])
    assert not handshake(pair.accept(pair.der["attic"]), nobody).up


def test_a_certificate_with_the_name_of_a_member_is_refused(pair: Pair, tmp_path: Path) -> None:
    from app.network.identity import _label

    name = _label(pair.recipes["attic"].key.public_key())
    Recipe(name=name).save(tmp_path / "double.pem")
    double = peer_context(DIAL, tmp_path / "double.pem", PASSPHRASE, [pair.der["den"]])
    assert not handshake(pair.accept(pair.der["attic"]), double).up


def test_optional_lets_in_clients_without_certificate_so_we_never_use_it(pair: Pair) -> None:
    optional = pair.accept(pair.der["attic"])
    optional.verify_mode = ssl.CERT_OPTIONAL
    assert handshake(optional, without_certificate(pair.der["den"])).up
    assert pair.accept(pair.der["attic"]).verify_mode is ssl.CERT_REQUIRED
    assert pair.dial().verify_mode is ssl.CERT_REQUIRED


def test_pairing_asks_for_no_certificate_and_reads_the_servers(pair: Pair) -> None:
    server = pairing_server_context(pair.files["den"], PASSPHRASE)
    outcome = handshake(server, pairing_client_context())
    assert outcome.up
    assert outcome.server_saw is None
    assert outcome.client_saw == pair.der["den"]


def test_a_member_that_could_issue_certificates_is_caught_by_each_check(tmp_path: Path) -> None:
    authority = Recipe(ca=True, signs_certificates=True)
    pin = authority.save(tmp_path / "authority.pem")
    child = Recipe(issuer_key=authority.key)
    from app.network.identity import BadCertificate, _label, check_profile

    child.issuer = _label(authority.key.public_key())
    child_der = child.save(tmp_path / "child.pem")
    den = Recipe()
    den_der = den.save(tmp_path / "den.pem")
    dial = peer_context(DIAL, tmp_path / "child.pem", PASSPHRASE, [den_der])
    loose = loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "den.pem")
    loose.verify_mode = ssl.CERT_REQUIRED
    loose.load_verify_locations(cadata=pin)
    outcome = handshake(loose, dial)
    assert outcome.up  # the pitfall: an issued certificate passes
    assert outcome.server_saw == child_der
    assert fingerprint(child_der) != fingerprint(pin)  # the fingerprint catches it
    ours = peer_context(ACCEPT, tmp_path / "den.pem", PASSPHRASE, [pin])
    assert ours.verify_flags & ssl.VERIFY_X509_STRICT
    assert handshake(ours, dial).up  # a real authority passes that too: profile and fingerprint are what counts
    with pytest.raises(BadCertificate):  # the profile never pins such a one
        check_profile(pin)


def test_a_certificate_issued_by_a_member_of_the_profile_is_refused(pair: Pair, tmp_path: Path) -> None:
    from app.network.identity import _label

    member = pair.recipes["attic"]
    child = Recipe(issuer_key=member.key, issuer=_label(member.key.public_key()))
    child.save(tmp_path / "child.pem")
    dial = peer_context(DIAL, tmp_path / "child.pem", PASSPHRASE, [pair.der["den"]])
    assert not handshake(pair.accept(pair.der["attic"]), dial).up


def test_uses_are_enforced(pair: Pair, tmp_path: Path) -> None:
    der = Recipe(uses=SERVER_ONLY).save(tmp_path / "odd.pem")
    dial = peer_context(DIAL, tmp_path / "odd.pem", PASSPHRASE, [pair.der["den"]])
    assert not handshake(pair.accept(der), dial).up


@pytest.mark.parametrize(
    "recipe",
    [Recipe(not_before=dt.datetime(2090, 1, 1, tzinfo=UTC)), Recipe(not_after=dt.datetime(2021, 1, 1, tzinfo=UTC))],
    ids=["not yet valid", "expired"],
)
def test_no_clock_decides_who_is_let_in_and_the_profile_has_no_other_dates(
    pair: Pair, tmp_path: Path, recipe: Recipe
) -> None:
    """No certificate of the profile is valid yet to a clock before 2020."""
    from app.network.identity import BadCertificate, check_profile

    der = recipe.save(tmp_path / "odd.pem")
    dial = peer_context(DIAL, tmp_path / "odd.pem", PASSPHRASE, [pair.der["den"]])
    assert handshake(pair.accept(der), dial).up  # whoever is pinned
    with pytest.raises(BadCertificate):  # and this one never is
        check_profile(der)


def test_no_public_authority_is_trusted(pair: Pair) -> None:
    for context in (pair.accept(pair.der["attic"]), pair.dial(), pairing_client_context()):
        assert len(context.get_ca_certs()) == 0  # pins are no authorities
        assert context.cert_store_stats()["x509"] <= 1


def test_a_refusal_shows_on_the_clients_side_only_at_its_first_read(pair: Pair) -> None:
    """Why "connected" means HELLO_ACK received."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = pair.accept(pair.der["attic"]).wrap_bio(to_server, to_client, server_side=True)
    here = pair.dial("stranger").wrap_bio(to_client, to_server, server_hostname="x")
    for step in (here, there):
        with pytest.raises(ssl.SSLWantReadError):
            step.do_handshake()
    here.do_handshake()  # succeeds
    with pytest.raises(ssl.SSLError):
        there.do_handshake()
    with pytest.raises(ssl.SSLError):
        here.read(1)


def test_a_pin_added_to_a_live_context_counts_at_once(pair: Pair) -> None:
    context = pair.accept(pair.der["stranger"])
    assert not handshake(context, pair.dial()).up
    context.load_verify_locations(cadata=pair.der["attic"])
    assert handshake(context, pair.dial()).up


def test_no_session_can_be_resumed_on_the_context_of_before(pair: Pair) -> None:
    assert pair.accept(pair.der["attic"]).num_tickets == 0
    assert pairing_server_context(pair.files["den"], PASSPHRASE).num_tickets == 0
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = pair.accept(pair.der["attic"]).wrap_bio(to_server, to_client, server_side=True)
    here = pair.dial().wrap_bio(to_client, to_server, server_hostname="x")
    for _ in range(3):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    there.write(b"x")
    assert here.read(1) == b"x"
    assert here.session is None or not here.session.has_ticket


def test_nothing_below_tls_1_3(pair: Pair) -> None:
    old = pair.dial()
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert not handshake(pair.accept(pair.der["attic"]), old).up


def test_the_key_is_read_only_with_its_passphrase(pair: Pair) -> None:
    with pytest.raises(ssl.SSLError):
        peer_context(ACCEPT, pair.files["den"], "wrong", [])
    assert b"ENCRYPTED PRIVATE KEY" in pair.files["den"].read_bytes()
    assert isinstance(pair.recipes["den"].key, Ed25519PrivateKey)


def test_no_other_file_builds_a_connection_that_checks_nobody() -> None:
    """aiohttp's `ssl=False`, like a fingerprint of a single request, silently drops our own certificate."""
    ours = Path(tls.__file__).resolve()
    for file in ours.parents[1].rglob("*.py"):
        text = file.read_text("utf-8")
        assert not re.search(r"\bssl=False|\bverify=False|CERT_OPTIONAL", text), file
        assert file == ours or "CERT_NONE" not in text, file


def test_a_pin_that_cannot_be_read_keeps_nobody_else_out(pair: Pair) -> None:
    accept = pair.accept(b"garbage", pair.der["attic"], b"")
    assert handshake(accept, pair.dial()).up
