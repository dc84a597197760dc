"""
Where an account's key comes from, and whether it can be one.
"""

import importlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vidrelay.config.places import MAX_KEY_BYTES, read_trusted
from vidrelay.core.errors import ConfigError
from vidrelay.core.proof import TOKEN_PREFIX

_INVISIBLE = {"Cf", "Cc", "Zl", "Zp", "Zs"}
_QUOTES = "\"'`\u2018\u2019\u201c\u201d"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """
    Where a key is kept: an environment variable, a file, or the platform's keyring (`name` is its service there).

    `place` is where the configuration says so, None where it does not.
    """

    kind: Literal["env", "file", "keyring"]
    name: str
    place: str | None = field(default=None, compare=False)

    @property
    def told(self) -> str:
        """
        The source in words.
        """
        words = {"env": "the environment variable", "file": "the file", "keyring": "the keyring entry"}
        return f"{words[self.kind]} {self.name}"


def read_key(source: KeySource | None, *, account: str, environ: Mapping[str, str]) -> str | None:
    """
    The account's key, checked; None where the account has none.

    Raises:
        ConfigError: It is missing or cannot be a key; says the file and line that name it, and the hint what to do. The
            key itself is never told.
    """
    if source is None:
        return None
    try:
        return _read(source, account, environ)
    except ConfigError as error:
        if source.place is None:
            raise
        raise error.at(source.place) from error


def _read(source: KeySource, account: str, environ: Mapping[str, str]) -> str:
    match source.kind:
        case "env":
            raw = from_environment(source.name, environ)
        case "file":
            raw = _from_file(source.name, account)
        case "keyring":
            raw = _from_keyring(source.name, account)
    if raw is None or not raw.strip():
        half = half_set(source.name, environ) if source.kind == "env" else None
        why = f"the environment variable {half}" if half else f"{source.told} is empty or not there"
        raise ConfigError(
            f"The key of account {account} is missing: {why}.",
            hint=f"Put the key there, or take [accounts.{account}] out of the configuration.",
        )
    fault = key_fault(raw.strip())
    if fault:
        raise ConfigError(f"The key of account {account}, from {source.told}, {fault}.")
    return raw.strip()


def from_environment(name: str, environ: Mapping[str, str]) -> str | None:
    """
    The value of a variable; of two that belong together (`A+B`) both values with a colon between, None unless both are
    there.
    """
    values = [environ.get(one, "").strip() for one in name.split("+")]
    return ":".join(values) if all(values) else None


def half_set(name: str, environ: Mapping[str, str]) -> str | None:
    """
    Which of two variables that belong together (`A+B`) is missing while the other is there, in words; None where both
    are there, or neither.
    """
    parts = name.split("+")
    there = [one for one in parts if environ.get(one, "").strip()]
    missing = [one for one in parts if one not in there]
    if not there or not missing:
        return None
    return f"{', '.join(missing)} is empty or not there, and {', '.join(there)} is set: the two belong together"


def key_fault(key: str) -> str | None:
    """
    Why this text cannot be a provider's key, or None where it can.
    """
    if key.startswith(TOKEN_PREFIX):
        return "is a vidrelay token, not a provider's key"
    if any(mark in key for mark in _QUOTES):
        return "holds a quotation mark; write the key alone"
    if any(unicodedata.category(letter) in _INVISIBLE for letter in key):
        return "holds a line break, a blank or an invisible character inside"
    if not key.isascii():
        return "holds a character that no key has"
    return None


def _from_file(name: str, account: str) -> str:
    try:
        return read_trusted(Path(name).expanduser(), max_bytes=MAX_KEY_BYTES, secret=True)
    except FileNotFoundError as error:
        raise ConfigError(f"The key file of account {account} is missing: {name}.") from error


def _from_keyring(service: str, account: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")  # an extra
    except ImportError as error:
        raise ConfigError(
            f"Account {account} keeps its key in the keyring, and the keyring package is not installed.",
            hint='pip install "vidrelay[keyring]"',
        ) from error
    try:
        found = keyring.get_password(service, account)
    except Exception as error:  # the back ends raise what they like
        raise ConfigError(f"The keyring gave no key for account {account}: {type(error).__name__}.") from error
    return found if isinstance(found, str) else None
