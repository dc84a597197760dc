"""
What a program must trust to reach the relay's https listener: the ordinary roots, and the relay's own certificate.

They stand together in a file of the state directory that only such a program is told of, in `SSL_CERT_FILE`: nothing on
the machine trusts the certificate otherwise.
"""

import hashlib
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from vidrelay.client.beacon import private_directory, read_private, write_private
from vidrelay.core.errors import ConfigError, RelayUnavailable

CERTIFICATE_NAME = "tls.pem"
FOLDER = "trust"
VARIABLE = "SSL_CERT_FILE"

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def own_certificate(state_dir: Path) -> str | None:
    """
    The certificate of the relay's https listener, as PEM and without its key; None where there is none.
    """
    data = read_private(state_dir / CERTIFICATE_NAME)
    found = _BLOCK.search(data.decode(errors="replace")) if data is not None else None
    return found[0] if found else None


def trusting(state_dir: Path, environ: Mapping[str, str]) -> Path:
    """
    The file for `SSL_CERT_FILE`: what programs of that environment trust now, and the relay's certificate.

    Raises:
        ConfigError: The variable names a file that cannot be read.
        RelayUnavailable: The relay has no certificate, or the file cannot be written.
    """
    own = own_certificate(state_dir)
    if own is None:
        raise RelayUnavailable("The relay has no certificate here.", hint="Start it again: vidrelay serve --replace")
    named = environ.get(VARIABLE)
    folder = state_dir / FOLDER
    if not named:
        place, roots = folder / "roots.pem", _usual_roots()
    else:
        # A child of a child: its roots are in there already.
        nested = Path(named).parent == folder
        place = Path(named) if nested else folder / f"roots-{hashlib.sha256(named.encode()).hexdigest()[:16]}.pem"
        roots = _roots_in(named)
    text = "\n".join(dict.fromkeys((*roots, own))) + "\n"
    try:
        private_directory(folder)
        if read_private(place, max_bytes=len(text)) != text.encode():
            write_private(place, text)
    except OSError as error:
        raise RelayUnavailable(f"{place} cannot be written: {error.strerror}.") from error
    return place


def _roots_in(named: str) -> list[str]:
    try:
        return _BLOCK.findall(Path(named).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ConfigError(
            f"{VARIABLE} names a file that cannot be read: {error.strerror}.",
            hint=f"Set it right, or unset {VARIABLE}.",
        ) from error


def _usual_roots() -> list[str]:
    """
    What the system trusts, for the variable hides that from programs that go by it, and certifi's, for the others.
    """
    import certifi  # noqa: PLC0415 only where it is wanted

    system = ssl.create_default_context().get_ca_certs(binary_form=True)
    return [*(ssl.DER_cert_to_PEM_cert(one).strip() for one in system), *_roots_in(certifi.where())]
