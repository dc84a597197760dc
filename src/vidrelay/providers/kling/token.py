"""
The bearer token: a JWT made here of the account's key and the time, used again until it is about to run out.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import jwt

from vidrelay.providers.credentials import key_pair

LIFE = timedelta(minutes=30)
RENEWED_AFTER = timedelta(minutes=25)
EARLY = timedelta(seconds=5)
"""A token is valid from a little before it was made, since clocks differ."""
FRESH = timedelta(minutes=1)
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
            self._token = jwt.encode(claims, self._pair.secret, algorithm="HS256", headers={"typ": "JWT"})
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
