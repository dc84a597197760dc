"""
Volcengine's signature: HMAC-SHA256 over the call, its signed headers and its body's hash.
"""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.signing import chained, sha256, signed_host

ALGORITHM, REGION, SERVICE = "HMAC-SHA256", "cn-north-1", "cv"


def signed_headers(
    pair: KeyPair, *, method: str, url: str, content_type: str, body_sha256: str, now: datetime
) -> dict[str, str]:
    """
    The headers that sign a call made `now` (UTC); `body_sha256` is in hex.
    """
    parts = urlsplit(url)
    date = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": content_type,
        "host": signed_host(url),
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
    to_sign = "\n".join((ALGORITHM, headers["x-date"], scope, sha256(canonical)))
    return chained(secret, (*scope.split("/"), to_sign))
