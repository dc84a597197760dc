"""
How a client and a relay prove to each other that both know the token, without sending it (`POST /proof`).

The client sends a nonce and `client_proof`; a relay that finds it right answers with `server_proof`, which names its
instance. Both are bound to the port, so what a listener on another port recorded proves nothing here, and a nonce has
one fixed length, so no nonce and port can be read as another pair.
"""

import hmac
import re
from typing import TypeGuard

TOKEN_PREFIX = "vrl_"  # noqa: S105 the mark of our own tokens, not one of them
NONCE_BYTES = 32

_TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{16,256}}")
_NONCE = re.compile(r"[0-9a-f]{64}")
_MAC = re.compile(r"[0-9a-f]{64}")


def is_token(value: object) -> TypeGuard[str]:
    """
    Whether it has the form of a relay's token, as it stands in a file of the state directory.
    """
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def is_nonce(value: object) -> bool:
    """
    Whether it is a nonce as both sides write it: `NONCE_BYTES` random bytes as lower-case hexadecimal digits.
    """
    return isinstance(value, str) and _NONCE.fullmatch(value) is not None


def client_proof(token: str, *, nonce: str, port: int) -> str:
    """
    What a client sends beside its nonce, before any token.
    """
    return _mac(token, "client", nonce, str(port))


def server_proof(token: str, *, nonce: str, port: int, instance: str) -> str:
    """
    What the relay answers; `instance` is the one that its `relay.json` names.
    """
    return _mac(token, "server", nonce, str(port), instance)


def file_proof(token: str, *, task_id: str, index: int) -> str:
    """
    What makes an address of one result good without a key: it opens that file alone, and ends with the token.
    """
    return _mac(token, "file", f"{index}/", task_id)


def door_proof(token: str, *, method: str, path: str) -> str:
    """
    What makes one path of a door good without a key, to one method: `path` as it stands in the request's first line.
    """
    return _mac(token, "door", f"{method} ", path)


def door_key(token: str, *, account: str) -> str:
    """
    What stands for the token in the path of an account's door, for clients that can send no key: it opens the doors of
    that account alone, and ends with the token.
    """
    return _mac(token, "key ", account)


def proves(mac: object, expected: str) -> bool:
    """
    Whether `mac`, as it came over the wire, is the expected one; takes the same time wherever they differ.
    """
    return isinstance(mac, str) and _MAC.fullmatch(mac) is not None and hmac.compare_digest(mac, expected)


def _mac(token: str, *parts: str) -> str:
    return hmac.new(token.encode(), "".join(parts).encode(), "sha256").hexdigest()
