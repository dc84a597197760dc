"""
The bearer token: a JWT made here of the account's key and the time, used again until it is about to run out.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from vidrelay.providers.credentials import key_pair

LIFE = timedelta(minutes=30)
RENEWED_AFTER = timedelta(minutes=25)
EARLY = timedelta(seconds=5)
"""A token is valid from a little before it was made, since clocks differ."""
FRESH = timedelta(minutes=1)
USUAL_BYTES = 32
LAST_YEAR = 9000
"""A clock that shows a later one shows nothing: a token made by it would end after the end of time."""


class Token:
    """
    The token of a key `ACCESS:SECRET`; a key without a colon is a bearer token itself.
    """

    def __init__(self, key: str | None, now: Callable[[], datetime]) -> None:
        """
        Read the key.

        Raises:
            ConfigError: It has a colon, and nothing before or behind it.
        """
        self._plain = key
        self._pair = key_pair(key, who="Kling") if ":" in (key or "") else None
        self._now = now
        self._token = ""
        self._made_at: datetime | None = None
        self._ahead = timedelta()

    @property
    def secrets(self) -> tuple[str, ...]:
        """
        What must not be shown.
        """
        secret = None if self._pair is None else self._pair.secret
        return tuple(one for one in (self._plain, secret, self._token) if one)

    @property
    def note(self) -> str | None:
        """
        What a person should know of the secret: that it is shorter than one of this kind should be.
        """
        if self._pair is None or len(self._pair.secret) >= USUAL_BYTES:
            return None
        return (
            f"its secret is shorter than {USUAL_BYTES} bytes, the least that RFC 7518 wants for such signatures; it is "
            "used as it is, and was perhaps cut when it was copied"
        )

    def bearer(self) -> str | None:
        """
        The token to send now; None without a key.
        """
        if self._pair is None:
            return self._plain
        now = self._now()
        if self._made_at is None or not timedelta() <= now - self._made_at < RENEWED_AFTER:
            told = now + self._ahead
            claims = {
                "iss": self._pair.access,
                "exp": int((told + LIFE).timestamp()),
                "nbf": int((told - EARLY).timestamp()),
            }
            self._token = _signed(claims, self._pair.secret)
            self._made_at = now
        return self._token

    def renew(self, shown: datetime | None) -> bool:
        """
        Forget a token that the provider took for early or late; the next is made by its own clock, as `shown` by its
        answer. Returns whether that may help: not where the token was new.
        """
        now = self._now()
        was_new = self._made_at is None or now - self._made_at < FRESH
        ahead = timedelta() if shown is None or shown.year > LAST_YEAR else shown - now
        by_another_clock = abs(ahead - self._ahead) > EARLY
        self._ahead, self._made_at = ahead, None
        return self._pair is not None and (by_another_clock or not was_new)


def _signed(claims: Mapping[str, Any], secret: str) -> str:
    """
    The claims as a JWT (RFC 7519, HS256). PyJWT would print a warning about a short secret at each, and the user has no
    other: `note` says it once.
    """
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{signed}.{_encoded(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
