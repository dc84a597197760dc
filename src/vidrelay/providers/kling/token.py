"""
The bearer token: a JWT made here of the account's key and the time, used again until it is about to run out.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import jwt

LIFE = timedelta(minutes=30)
RENEWED_AFTER = timedelta(minutes=25)
EARLY = timedelta(seconds=5)
"""A token is valid from a little before it was made, since clocks differ."""
FRESH = timedelta(minutes=1)


class Token:
    """
    The token of a key `ACCESS:SECRET`; any other key is a bearer token itself.
    """

    def __init__(self, key: str | None, now: Callable[[], datetime]) -> None:
        self._plain = key
        self._access, is_pair, self._secret = (key or "").partition(":")
        self._signs = bool(is_pair)
        self._now = now
        self._token = ""
        self._made_at: datetime | None = None
        self._ahead = timedelta()

    @property
    def secrets(self) -> tuple[str, ...]:
        """
        What must not be shown.
        """
        return tuple(one for one in (self._plain, self._secret, self._token) if one)

    def bearer(self) -> str | None:
        """
        The token to send now; None without a key.
        """
        if not self._signs:
            return self._plain
        now = self._now()
        if self._made_at is None or not timedelta() <= now - self._made_at < RENEWED_AFTER:
            told = now + self._ahead
            claims = {
                "iss": self._access,
                "exp": int((told + LIFE).timestamp()),
                "nbf": int((told - EARLY).timestamp()),
            }
            self._token = jwt.encode(claims, self._secret, algorithm="HS256", headers={"typ": "JWT"})
            self._made_at = now
        return self._token

    def renew(self, shown: datetime | None) -> bool:
        """
        Forget a token that the provider took for early or late; the next is made by its own clock, as `shown` by its
        answer. Returns whether that may help: not where the token was new.
        """
        now = self._now()
        was_new = self._made_at is None or now - self._made_at < FRESH
        ahead = timedelta() if shown is None else shown - now
        by_another_clock = abs(ahead - self._ahead) > EARLY
        self._ahead, self._made_at = ahead, None
        return self._signs and (by_another_clock or not was_new)
