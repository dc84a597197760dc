"""
The certificate of the https listener, for SDKs that speak nothing else: made at first use, for this machine's own
address alone, and renewed before it ends.

It signs itself and may sign nothing else, so whoever came by its key could pretend to be 127.0.0.1 to the programs that
trust it, and no more than that. Key and certificate are one file, so they always belong together.
"""

import ipaddress
import logging
import re
import ssl
from datetime import datetime, timedelta
from pathlib import Path

from vidrelay.client.beacon import read_private, write_private
from vidrelay.client.trust import CERTIFICATE_NAME
from vidrelay.core.clock import Clock
from vidrelay.core.errors import RelayUnavailable

logger = logging.getLogger(__name__)

LIFE = timedelta(days=397)
"""As long as some systems let a certificate be good at most."""
SPARE_AT_START = timedelta(days=90)
SPARE = timedelta(days=2)
"""While the relay runs, the programs that trust the old one are left alone as long as that can be."""
LOOK_SECONDS = 12 * 3600.0

_SKEW = timedelta(days=1)
_ENDS = re.compile(rb"ends (\S{1,40})\n")


class Certificate:
    """
    The certificate in use; `context` is what a listener serves with.
    """

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        """
        Take the one that is there, or make one; needs the state directory's lock.

        Raises:
            RelayUnavailable: It cannot be written.
        """
        self._path = state_dir / CERTIFICATE_NAME
        self._clock = clock
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        if not self._is_good(SPARE_AT_START) or not self._load():
            self._renew()

    async def keep_good(self) -> None:
        """
        Look twice a day whether it is about to end; never returns.
        """
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if not self._is_good(SPARE):
                try:
                    self._renew()
                except RelayUnavailable as problem:
                    logger.warning("tls.failed why=%s", problem.message)

    def _is_good(self, spare: timedelta) -> bool:
        found = _ENDS.match(read_private(self._path) or b"")
        try:
            return found is not None and datetime.fromisoformat(found[1].decode()) - self._clock.now() > spare
        except (TypeError, ValueError):
            return False

    def _load(self) -> bool:
        try:
            self.context.load_cert_chain(self._path)
        except (OSError, ssl.SSLError):
            return False
        return True

    def _renew(self) -> None:
        ends = self._clock.now() + LIFE
        try:
            write_private(self._path, f"ends {ends.isoformat()}\n{_make(ends)}")
            self.context.load_cert_chain(self._path)
        except OSError as error:
            raise RelayUnavailable(f"{CERTIFICATE_NAME} cannot be written: {error.strerror}.") from error
        logger.info("tls.renewed ends=%s", ends.isoformat())


def _make(ends: datetime) -> str:
    """
    A new key and the certificate for it, as PEM.
    """
    # Long to load, and wanted once a year, by relays that have an account of such an SDK.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509 import oid  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "vidrelay on this machine")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
    usage = dict.fromkeys(
        (
            *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    public = key.public_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - LIFE - _SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, **usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return secret.decode() + certificate.public_bytes(pem).decode()
