"""
Reads keys that are made of two parts.
"""

from dataclasses import dataclass, field

from vidrelay.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """
    An access key, which is told to everybody who is asked, and the secret that signs in its name.
    """

    access: str
    secret: str = field(repr=False)


def key_pair(key: str | None, *, who: str) -> KeyPair | None:
    """
    Read `ACCESS:SECRET`; None without a key.

    Raises:
        ConfigError: It is not of two parts; never says what it is.
    """
    if key is None:
        return None
    access, _, secret = key.partition(":")
    if not access or not secret:
        raise ConfigError(
            f"The key of {who} has two parts, and this one has not.", hint="Write the access key, a colon, the secret."
        )
    return KeyPair(access=access, secret=secret)
