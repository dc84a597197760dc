"""
Tencent Cloud's signature TC3-HMAC-SHA256: over content type, host and the body's hash.
"""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.signing import chained, sha256, signed_host

ALGORITHM, SERVICE = "TC3-HMAC-SHA256", "vclm"


def signed_headers(pair: KeyPair, *, url: str, content_type: str, body_sha256: str, now: datetime) -> dict[str, str]:
    """
    The headers that sign a POST made `now` (UTC); `body_sha256` is in hex.
    """
    headers = {"content-type": content_type, "host": signed_host(url)}
    timestamp, scope = str(int(now.timestamp())), f"{now:%Y-%m-%d}/{SERVICE}/tc3_request"
    made = signature(
        pair.secret,
        path=urlsplit(url).path or "/",
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
    to_sign = "\n".join((ALGORITHM, timestamp, scope, sha256(canonical)))
    return chained(f"TC3{secret}", (*scope.split("/"), to_sign))
