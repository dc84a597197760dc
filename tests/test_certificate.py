"""
The certificate of the https listener and what trusts it: made once, kept private, renewed in time.
"""

import asyncio
import os
import re
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from vidrelay.client.trust import CERTIFICATE_NAME, own_certificate, trusting
from vidrelay.core.errors import ConfigError, RelayUnavailable
from vidrelay.daemon.tls import LIFE, LOOK_SECONDS, SPARE, SPARE_AT_START, Certificate
from vidrelay.testing.clock import FakeClock


def pem(folder: Path) -> str:
    return own_certificate(folder) or ""


def read(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem(folder).encode())


def test_it_is_for_this_machine_alone_and_may_sign_nothing(tmp_path: Path) -> None:
    """
    Two names of this machine, no authority, ends within the life it is given.
    """
    clock = FakeClock()
    Certificate(tmp_path, clock)
    made = read(tmp_path)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.critical) == (False, True)
    assert not made.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert made.not_valid_after_utc == clock.now() + LIFE


def test_nothing_below_tls_1_2_is_spoken(tmp_path: Path) -> None:
    """
    The context refuses older protocols.
    """
    assert Certificate(tmp_path, FakeClock()).context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_only_the_user_can_read_it_under_any_umask(tmp_path: Path) -> None:
    """
    Key and certificate are one file of mode 0600.
    """
    before = os.umask(0)
    try:
        Certificate(tmp_path, FakeClock())
        trusting(tmp_path, {})
    finally:
        os.umask(before)
    assert (tmp_path / CERTIFICATE_NAME).stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "trust").iterdir()} == {0o600}
    assert (tmp_path / "trust").stat().st_mode & 0o777 == 0o700


def test_a_later_start_uses_it_again_until_it_is_about_to_end(tmp_path: Path) -> None:
    """
    The same one as long as it is good for more than the spare time; then another.
    """
    clock = FakeClock()
    Certificate(tmp_path, clock)
    first = pem(tmp_path)
    clock.jump((LIFE - SPARE_AT_START).total_seconds() - 1)
    Certificate(tmp_path, clock)
    assert pem(tmp_path) == first
    clock.jump(2)
    Certificate(tmp_path, clock)
    assert pem(tmp_path) != first
    assert read(tmp_path).not_valid_after_utc == clock.now() + LIFE


async def test_a_relay_that_runs_for_long_renews_it_before_it_ends(tmp_path: Path) -> None:
    """
    Looked at twice a day, left alone for as long as can be, and served by the same context afterwards.
    """
    clock = FakeClock()
    certificate = Certificate(tmp_path, clock)
    first, ends = pem(tmp_path), read(tmp_path).not_valid_after_utc
    work = asyncio.get_running_loop().create_task(certificate.keep_good())
    await clock.settle()
    try:
        while pem(tmp_path) == first:
            assert clock.now() < ends
            await clock.advance(LOOK_SECONDS)
    finally:
        work.cancel()
        await asyncio.wait([work])
    assert ends - clock.now() > SPARE - timedelta(days=1)
    assert served_by(certificate.context) == pem(tmp_path)


def served_by(context: ssl.SSLContext) -> str:
    """
    The certificate that a client is shown, without any network.
    """
    asking = ssl.create_default_context()
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown).strip()


@pytest.mark.parametrize(
    "left", ["", "ends never\n", "ends 2999-01-01T00:00:00+00:00\nnothing", "ends 2999-01-01T00:00:00\n", "\x00" * 99]
)
def test_a_file_that_is_no_certificate_is_replaced(tmp_path: Path, left: str) -> None:
    """
    Whatever lies there instead.
    """
    (tmp_path / CERTIFICATE_NAME).write_text(left)
    (tmp_path / CERTIFICATE_NAME).chmod(0o600)
    Certificate(tmp_path, FakeClock())
    assert read(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX")
def test_one_that_somebody_may_have_planted_is_not_used(tmp_path: Path) -> None:
    """
    Neither what a link leads to nor what others can read: its key may be known.
    """
    outside, state = tmp_path / "outside", tmp_path / "state"
    outside.mkdir()
    state.mkdir(mode=0o700)
    Certificate(outside, FakeClock())
    planted = pem(outside)
    (state / CERTIFICATE_NAME).symlink_to(outside / CERTIFICATE_NAME)
    Certificate(state, FakeClock())
    assert pem(state) not in ("", planted)
    assert pem(outside) == planted
    (outside / CERTIFICATE_NAME).chmod(0o644)
    Certificate(outside, FakeClock())
    assert pem(outside) not in ("", planted)


def test_a_certificate_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """
    As a relay that cannot run.
    """
    with pytest.raises(RelayUnavailable, match=re.escape(CERTIFICATE_NAME)):
        Certificate(tmp_path / "nowhere", FakeClock())


def roots(path: Path) -> set[bytes]:
    """
    The subjects that a context of that file trusts, besides our own, which is no authority.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    return set(context.get_ca_certs(binary_form=True))


def test_what_programs_trust_anyway_is_trusted_as_well(tmp_path: Path) -> None:
    """
    The system's roots and certifi's, and the relay's own certificate.
    """
    import certifi

    Certificate(tmp_path, FakeClock())
    bundle = trusting(tmp_path, {})
    assert pem(tmp_path) in bundle.read_text()
    system = ssl.create_default_context()
    assert roots(bundle) >= roots(Path(certifi.where()))
    if not os.environ.get("SSL_CERT_FILE"):
        assert roots(bundle) >= set(system.get_ca_certs(binary_form=True))


def test_a_file_of_the_users_own_is_heeded_and_not_touched(tmp_path: Path) -> None:
    """
    Who trusts one house only goes on trusting that one only, and the relay.
    """
    mine = tmp_path / "mine"
    mine.mkdir()
    Certificate(mine, FakeClock())
    theirs = tmp_path / "theirs.pem"
    theirs.write_text(f"# the office's\n{pem(mine)}\n")
    Certificate(tmp_path, FakeClock())
    bundle = trusting(tmp_path, {"SSL_CERT_FILE": str(theirs)})
    assert bundle != trusting(tmp_path, {})
    assert bundle.read_text().split("-----BEGIN")[1:] == [
        f"{one.removeprefix('-----BEGIN')}\n" for one in (pem(mine), pem(tmp_path))
    ]
    assert theirs.read_text() == f"# the office's\n{pem(mine)}\n"


def test_a_child_of_a_child_has_the_same_file(tmp_path: Path) -> None:
    """
    The variable that names our own file leads to no other one.
    """
    Certificate(tmp_path, FakeClock())
    bundle = trusting(tmp_path, {})
    before = bundle.read_text()
    assert trusting(tmp_path, {"SSL_CERT_FILE": str(bundle)}) == bundle
    assert bundle.read_text() == before


def test_a_renewed_certificate_comes_into_the_same_file(tmp_path: Path) -> None:
    """
    So that what names the file stays right.
    """
    clock = FakeClock()
    Certificate(tmp_path, clock)
    bundle = trusting(tmp_path, {})
    clock.jump(LIFE.total_seconds())
    Certificate(tmp_path, clock)
    assert trusting(tmp_path, {}) == bundle
    assert pem(tmp_path) in bundle.read_text()


def test_a_variable_that_names_no_file_is_told(tmp_path: Path) -> None:
    """
    Rather than passed over, for the program would fail, or trust what it was not to.
    """
    Certificate(tmp_path, FakeClock())
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        trusting(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "nothing")})


def test_without_a_certificate_nothing_is_trusted(tmp_path: Path) -> None:
    """
    A relay that speaks no https has none.
    """
    with pytest.raises(RelayUnavailable):
        trusting(tmp_path, {})
    assert not (tmp_path / "trust").exists()
