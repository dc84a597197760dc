"""
What clouds share that want every call signed: a key of two parts, and a signature by a chain of HMACs that also covers
the body, so that it is made as the call leaves.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import reduce
from urllib.parse import urlsplit

from vidrelay.core.messages import HttpRequest
from vidrelay.providers.credentials import KeyPair, key_pair
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter

_PORTS = {"http": 80, "https": 443}


class SignedAdapter(JsonAdapter):
    """
    One account whose key is `ACCESS:SECRET`, and whose calls are signed with it.
    """

    def __init__(self, settings: AdapterSettings, *, base_url: str, who: str) -> None:
        """
        Speak to the account's own address, else to `base_url`; `who` is the provider's name as a person knows it.

        Raises:
            ConfigError: The address has no host, or the key is not of two parts.
        """
        super().__init__(settings, base_url=base_url)
        self.pair = key_pair(settings.key, who=who)
        self._now = settings.now

    @property
    def secret(self) -> str | None:
        """
        The part of the key that must not be shown; None without a key.
        """
        return None if self.pair is None else self.pair.secret

    def authorization(self) -> dict[str, str]:
        """
        None: a call is signed when its body is known.
        """
        return {}

    def signature(self, pair: KeyPair, request: HttpRequest, body_sha256: str, now: datetime) -> Mapping[str, str]:
        """
        The headers that sign a call made `now` (UTC); `body_sha256` is in hex.
        """
        raise NotImplementedError

    def signed(self, request: HttpRequest, *, asks: bool = False) -> HttpRequest:
        """
        The call, signed as it leaves where there is a key; `asks` says that it only asks, though it is a POST.
        """
        pair = self.pair
        if pair is None:
            return replace(request, asks=asks)
        return replace(
            request, asks=asks, signed=lambda body_sha256: self.signature(pair, request, body_sha256, self._now())
        )


def signed_host(url: str) -> str:
    """
    The host as a signature covers it: an IPv6 address in brackets, a port only where it is not the usual one.
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in (None, _PORTS.get(parts.scheme)) else f"{host}:{parts.port}"


def sha256(text: str) -> str:
    """
    The text's SHA-256 in hex.
    """
    return hashlib.sha256(text.encode()).hexdigest()


def chained(secret: str, texts: Iterable[str]) -> str:
    """
    The HMAC-SHA256 in hex of the last text, by a key that is made of the secret and the texts before, one by one.
    """
    return reduce(lambda key, text: hmac.digest(key, text.encode(), hashlib.sha256), texts, secret.encode()).hex()
