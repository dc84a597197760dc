"""
Tencent Cloud's signature TC3-HMAC-SHA256: over content type, host and the body's hash.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from urllib.parse import urlsplit

from vidrelay.providers.credentials import KeyPair

ALGORITHM, SERVICE = "TC3-HMAC-SHA256", "vclm"
PORTS = {"http": 80, "https": 443}


def signed_headers(pair: KeyPair, *, url: str, content_type: str, body_sha256: str, now: datetime) -> dict[str, str]:
    """
    The headers that sign a POST made `now` (UTC); `body_sha256` is in hex.
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    own_port = parts.port not in (None, PORTS.get(parts.scheme))
    headers = {"content-type": content_type, "host": f"{host}:{parts.port}" if own_port else host}
    timestamp, scope = str(int(now.timestamp())), f"{now:%Y-%m-%d}/{SERVICE}/tc3_request"
    made = signature(
        pair.secret,
        path=parts.path or "/",
        headers=headers,
        body_sha256=body_sha256,
        timestamp=timestamp,
        scope=scope,
    )
    credential = f"{pair.access}/{scope}"
    return {
        "X-TC-Timestamp": timestamp,
        "Authorization": f"{ALGORITHM} Credential={credential}, SignedHeaders={';'.join(headers)}, Signature={made}",
    }


def signature(
    secret: str, *, path: str, headers: Mapping[str, str], body_sha256: str, timestamp: str, scope: str
) -> str:
    """
    The signature in hex of a POST over these headers, whose names are in lower case.
    """
    told = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join(("POST", path, "", told, ";".join(sorted(headers)), body_sha256))
    to_sign = "\n".join((ALGORITHM, timestamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return reduce(_hmac, (*scope.split("/"), to_sign), f"TC3{secret}".encode()).hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), hashlib.sha256)
