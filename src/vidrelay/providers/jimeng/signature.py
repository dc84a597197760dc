"""
Volcengine's signature: HMAC-SHA256 over the call, its signed headers and its body's hash.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from vidrelay.providers.credentials import KeyPair

ALGORITHM, REGION, SERVICE = "HMAC-SHA256", "cn-north-1", "cv"
PORTS = {"http": 80, "https": 443}


def signed_headers(
    pair: KeyPair, *, method: str, url: str, content_type: str, body_sha256: str, now: datetime
) -> dict[str, str]:
    """
    The headers that sign a call made `now` (UTC); `body_sha256` is in hex.
    """
    parts = urlsplit(url)
    date = now.strftime("%Y%m%dT%H%M%SZ")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    own_port = parts.port not in (None, PORTS.get(parts.scheme))
    headers = {
        "content-type": content_type,
        "host": f"{host}:{parts.port}" if own_port else host,
        "x-content-sha256": body_sha256,
        "x-date": date,
    }
    made = signature(
        pair.secret,
        method=method,
        path=unquote(parts.path) or "/",
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=headers,
        scope=scope_of(date),
    )
    credential = f"{pair.access}/{scope_of(date)}"
    return {
        "X-Date": date,
        "X-Content-Sha256": body_sha256,
        "Authorization": f"{ALGORITHM} Credential={credential}, SignedHeaders={';'.join(headers)}, Signature={made}",
    }


def scope_of(date: str) -> str:
    """
    What a signature of that instant (`20261130T120000Z`) is good for.
    """
    return f"{date[:8]}/{REGION}/{SERVICE}/request"


def signature(
    secret: str, *, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], scope: str
) -> str:
    """
    The signature in hex over these headers, whose names are in lower case; two are the date and the body's hash. Path
    and query are given as they are meant, not as they are written in an address.
    """
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    canonical = "\n".join(
        (
            method,
            quote(path),
            asked,
            "".join(f"{name}:{headers[name]}\n" for name in sorted(headers)),
            ";".join(sorted(headers)),
            headers["x-content-sha256"],
        )
    )
    told = "\n".join((ALGORITHM, headers["x-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return reduce(_hmac, (*scope.split("/"), told), secret.encode()).hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), hashlib.sha256)
