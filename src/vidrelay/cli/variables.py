"""
Which variables point official SDKs at a relay, and what they hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vidrelay.client.beacon import Beacon
from vidrelay.client.calls import Client
from vidrelay.client.trust import VARIABLE, trusting
from vidrelay.core.errors import ConfigError, InvalidRequest, RelayUnavailable, UnknownAccount
from vidrelay.core.proof import door_key
from vidrelay.providers.sdks import Sdk, sdk_of

_LOOPBACK = "127.0.0.1"


@dataclass(slots=True, kw_only=True)
class Variables:
    """
    What is set and unset, and by provider what must be said in the program's own code.
    """

    values: dict[str, str] = field(default_factory=dict, repr=False)
    unset: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict, repr=False)


async def variables(client: Client, state_dir: Path, environ: Mapping[str, str], *, only: Sequence[str]) -> Variables:
    """
    The variables for programs of that environment.

    Args:
        client: The relay's.
        state_dir: Its state directory.
        environ: What such a program has in its environment so far.
        only: The providers or accounts whose SDKs are meant; none: every provider that has an account here.

    Raises:
        UnknownAccount: A name in `only` is neither.
        InvalidRequest: A provider's SDKs cannot be answered by the relay.
        ConfigError: No account here is of a provider whose SDKs can be, or SSL_CERT_FILE is of no use.
        RelayUnavailable: The relay cannot be reached, or has no https listener where one is needed.
    """
    accounts = await client.accounts()
    beacon = client.beacon
    if beacon is None:
        raise RelayUnavailable
    doors = [_named(name, accounts) for name in only] if only else _every(accounts)
    if not doors:
        raise ConfigError(
            "No account here is of a provider whose SDKs the relay can answer.",
            hint="Add one to the configuration, or set its key's variable before the relay starts.",
        )
    found = Variables()
    for place, provider, sdk in doors:
        _point(found, place, provider, sdk, beacon, account=_account_of(place, accounts))
    if any(sdk.needs_tls for _, _, sdk in doors):
        found.values[VARIABLE] = str(trusting(state_dir, environ))
    beside = _without_proxy(environ)
    found.values |= {"NO_PROXY": beside, "no_proxy": beside}
    found.unset = [name for name in found.unset if name not in found.values]
    return found


_Door = tuple[str, str, Sdk]


def _every(accounts: Sequence[Mapping[str, Any]]) -> list[_Door]:
    providers = dict.fromkeys(str(account.get("provider")) for account in accounts)
    return [(provider, provider, sdk) for provider in providers if (sdk := sdk_of(provider)) is not None]


def _named(name: str, accounts: Sequence[Mapping[str, Any]]) -> _Door:
    known = {str(account.get("name")): str(account.get("provider")) for account in accounts}
    provider = name if name in known.values() else known.get(name)
    if provider is None:
        raise UnknownAccount(
            f"No account here is called {name}, nor is any of a provider of that name.",
            hint=f"There are: {', '.join(f'{account} ({of})' for account, of in known.items())}.",
        )
    sdk = sdk_of(provider)
    if sdk is None:
        raise InvalidRequest(
            f"The relay does not answer the SDKs of {provider}.", hint="Use the relay's own interface: POST /generate."
        )
    return name, provider, sdk


def _account_of(place: str, accounts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """
    The account behind the door of that name: the one that is called so, or else the provider's first.
    """
    named = {str(account.get("name")): account for account in accounts}
    return named.get(place) or next(account for account in accounts if account.get("provider") == place)


def _point(
    found: Variables, place: str, provider: str, sdk: Sdk, beacon: Beacon, *, account: Mapping[str, Any]
) -> None:
    """
    Add one provider's.
    """
    origin = beacon.url
    if sdk.needs_tls:
        if beacon.tls_port is None:
            raise RelayUnavailable(
                f"The SDK of {provider} needs https, and the relay that runs here does not speak it.",
                hint="Start it again: vidrelay serve --replace",
            )
        origin = f"https://{_LOOPBACK}:{beacon.tls_port}"
    base = f"{origin}/{place}{sdk.path}"
    note = (account.get("doorKey") is True and sdk.keyed) or sdk.code
    for name in sdk.bases:
        if found.values.setdefault(name, base) != base:
            note = f'{name} is another one\'s here, so say in the program: base_url="{{base}}"'
    for name, behind in sdk.hosts.items():
        found.values[name] = f"{base}{behind}".removeprefix("https://")
    found.values |= dict.fromkeys(sdk.keys, beacon.token)
    found.unset += sdk.unset
    if note:
        found.notes[provider if place == provider else place] = note.format(
            base=base,
            key=beacon.token,
            keyed=f"{origin}/{place}/~{door_key(beacon.token, account=str(account.get('name')))}{sdk.path}",
        )


def _without_proxy(environ: Mapping[str, str]) -> str:
    """
    The addresses that no proxy is asked for, with the relay's among them.
    """
    listed = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    named = [name.strip() for name in listed if name.strip()]
    return ",".join(named if "*" in named else dict.fromkeys((*named, _LOOPBACK)))
