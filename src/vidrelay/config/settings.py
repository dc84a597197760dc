"""
The records of the configuration, and how a file becomes them: wholly, or not at all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from vidrelay.config.keys import KeySource, from_environment, half_set, key_fault
from vidrelay.config.places import MAX_CONFIG_BYTES, read_trusted
from vidrelay.config.table import Source, Table
from vidrelay.config.units import duration, money, price, said, size
from vidrelay.core.errors import ConfigError
from vidrelay.core.hosts import is_loopback_host
from vidrelay.core.plan import Pricing, WindowSetting
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import Money

PREVIEW = "preview"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}(\+[A-Za-z_][A-Za-z0-9_]{0,127})?")
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_LOOPBACK_ONLY = "cannot be set: the relay listens on 127.0.0.1 only"
_REFUSED = dict.fromkeys(("host", "bind", "address", "listen", "interface"), _LOOPBACK_ONLY)
_REFUSED_ACCOUNT = dict.fromkeys(
    ("key", "api_key", "token", "secret"), "cannot be set: use key_env, key_file or keyring, so that no key is in here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """
    One account: which provider, whose key, how many tasks at once, what a clip costs.

    `daily_limit` is read and kept; nothing enforces it yet. `dialect` names a spelling of the provider's words where it
    has several. `place` is where the file says all this, None where no file does.
    """

    name: str
    provider: str
    key: KeySource | None = None
    window: WindowSetting = WindowSetting()
    prices: Mapping[str, Pricing] = field(default_factory=dict)
    daily_limit: Money | None = None
    base_url: str | None = None
    allow_hosts: tuple[str, ...] = ()
    private_network: bool = False
    pass_through: bool = False
    door_key: bool = False
    dialect: str | None = None
    place: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """
    How to reach the outside: a proxy's address, a file of more certificates to trust, a proxy that answers DNS itself.
    """

    proxy: str | None = None
    ca_file: Path | None = None
    fake_ip: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """
    All settings, checked. `path` None: there is no file, everything is as it comes; `port` None: chosen at start.
    `half_set` says of each provider that would have an account by its known variables, were both set, which is missing.
    """

    policy: Policy
    accounts: tuple[AccountSettings, ...]
    network: NetworkSettings = NetworkSettings()
    token: Literal["new", "keep"] = "new"  # noqa: S105 a choice, not a token
    port: int | None = None
    origins: frozenset[str] = frozenset()
    path: Path | None = None
    half_set: tuple[str, ...] = ()


def load_config(
    path: Path, *, must_exist: bool, environ: Mapping[str, str], key_envs: Mapping[str, tuple[str, ...]]
) -> Config:
    """
    Read the configuration.

    Args:
        path: The TOML file.
        must_exist: Whether its absence is an error; else everything is as it comes.
        environ: The environment, for accounts that a known variable makes.
        key_envs: Every known provider by name, with the environment variables of which each makes an account of it.

    Raises:
        ConfigError: Something in it is wrong; says the file, the line and the setting.
    """
    try:
        text = read_trusted(path, max_bytes=MAX_CONFIG_BYTES)
    except FileNotFoundError as error:
        if must_exist:
            raise ConfigError(f"{path} does not exist.", hint="Name another file, or make this one.") from error
        return _read(Source(path=path, text=""), environ=environ, key_envs=key_envs, found=False)
    return _read(Source(path=path, text=text), environ=environ, key_envs=key_envs, found=True)


def _read(
    source: Source, *, environ: Mapping[str, str], key_envs: Mapping[str, tuple[str, ...]], found: bool
) -> Config:
    root = Table(source=source, path=(), values=source.parse())
    accounts = _accounts(root.table("accounts"), key_envs)
    accounts = _from_environment(accounts, environ, key_envs)
    halves = _half_set(accounts, environ, key_envs)
    names = [account.name for account in accounts]
    if PREVIEW not in names:
        accounts.append(AccountSettings(name=PREVIEW, provider=PREVIEW))

    relay = root.table("relay")
    default = relay.text("default_account")
    if default is not None and default not in (*names, PREVIEW):
        relay.fail("default_account", f"names no account ({', '.join((*names, PREVIEW))} are there)")
    policy = Policy(
        default_account=default or _only(names),
        dedupe_window=_span(relay, "dedupe_window", Policy().dedupe_window, high=timedelta(days=1)),
        join_live=relay.flag("join_live", True),
        stale_after=_span(
            relay, "stale_after", Policy().stale_after, low=timedelta(minutes=1), high=timedelta(days=30)
        ),
        poll=_poll(root.table("poll")),
        cache=_cache(root.table("cache")),
    )
    config = Config(
        policy=policy,
        accounts=tuple(accounts),
        network=_network(root.table("network")),
        token=_token(relay),
        half_set=halves,
        port=relay.whole("port", low=1024, high=65535),
        origins=frozenset(_origin(relay, text) for text in relay.texts("origins")),
        path=source.path if found else None,
    )
    relay.finish(refused=_REFUSED)
    root.finish(refused=_REFUSED)
    return config


def _only(names: list[str]) -> str | None:
    """
    Where a request that names no account goes (contract section 7): the only one; preview where there is no other.
    """
    others = [name for name in names if name != PREVIEW]
    if not others:
        return PREVIEW
    return others[0] if len(others) == 1 else None


def _span(table: Table, key: str, default: timedelta, *, low: timedelta = timedelta(0), high: timedelta) -> timedelta:
    value = table.read(key, duration)
    if value is None:
        return default
    if not low <= value <= high:
        table.fail(key, f"must be from {said(low)} to {said(high)}")
    return value


def _seconds(table: Table, key: str, default: float, *, low: float, high: float) -> float:
    return _span(
        table, key, timedelta(seconds=default), low=timedelta(seconds=low), high=timedelta(seconds=high)
    ).total_seconds()


def _token(relay: Table) -> Literal["new", "keep"]:
    text = relay.text("token")
    if text == "keep":
        return "keep"
    if text not in (None, "new"):
        relay.fail("token", 'must be "new" or "keep"')
    return "new"


def _origin(relay: Table, text: str) -> str:
    """
    An extra web origin, exactly as browsers send it.
    """
    parts = urlsplit(text)
    if not text.isascii() or not parts.scheme or not parts.netloc or text != f"{parts.scheme}://{parts.netloc}":
        relay.fail("origins", f'must hold exact origins such as "https://app.example", not {text!r}')
    if "*" in text or "@" in text or text != text.lower():
        relay.fail("origins", f"must hold exact origins in lower case, without *, not {text!r}")
    return text


def _poll(table: Table) -> PollPolicy:
    usual = PollPolicy()
    policy = PollPolicy(
        first=_seconds(table, "first", usual.first, low=0.1, high=600),
        factor=table.number("factor", usual.factor, low=1, high=10),
        cap=_seconds(table, "cap", usual.cap, low=0.1, high=3600),
        jitter=table.number("jitter", usual.jitter, low=0, high=0.9),
        learned=table.flag("learned", usual.learned),
        not_found_grace=_seconds(table, "not_found_grace", usual.not_found_grace, low=0, high=3600),
    )
    table.finish()
    if policy.cap < policy.first:
        table.fail("cap", "must not be less than poll.first")
    return policy


def _bytes(table: Table, name: str, usual: int, *, low: int) -> int:
    value = table.read(name, size)
    if value is None:
        return usual
    if not low <= value <= 1000 * 1000**4:
        table.fail(name, f"must be from {low // 1000**2}MB to 1000TB")
    return value


def _cache(table: Table) -> CachePolicy:
    usual = CachePolicy()
    max_bytes = _bytes(table, "max_bytes", usual.max_bytes, low=1000**2)
    min_free_bytes = _bytes(table, "min_free", usual.min_free_bytes, low=0)
    policy = CachePolicy(
        max_bytes=max_bytes,
        min_free_bytes=min_free_bytes,
        max_age=_span(table, "max_age", usual.max_age, low=timedelta(minutes=1), high=timedelta(days=36500)),
    )
    table.finish()
    return policy


def _network(table: Table) -> NetworkSettings:
    proxy = table.text("proxy")
    if proxy is not None and not _is_proxy(proxy):
        table.fail("proxy", 'must be an address such as "http://127.0.0.1:7890"')
    ca_file = table.text("ca_file")
    path = Path(ca_file).expanduser() if ca_file else None
    if path is not None and not path.is_file():
        table.fail("ca_file", f"names no file: {path}")
    settings = NetworkSettings(proxy=proxy, ca_file=path, fake_ip=table.flag("fake_ip", False))
    table.finish()
    return settings


def _is_proxy(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https", "socks5", "socks5h") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


# Accounts -------------------------------------------------------------------------------------------------------------


def _accounts(tables: Table, key_envs: Mapping[str, tuple[str, ...]]) -> list[AccountSettings]:
    accounts = []
    for name in tables.values:
        if not _NAME.fullmatch(name):
            tables.fail(name, "is no account name: letters, digits, - and _ only, at most 64")
        accounts.append(_account(name, tables.table(name), key_envs))
    return accounts


def _account(name: str, table: Table, key_envs: Mapping[str, tuple[str, ...]]) -> AccountSettings:
    provider = table.text("provider")
    if provider is None:
        table.fail(None, "needs a provider", hint=f"Known providers: {', '.join(sorted(key_envs))}.")
    if provider not in key_envs:
        table.fail("provider", f"is not known: {provider!r}", hint=f"Known: {', '.join(sorted(key_envs))}.")
    if (name == PREVIEW) != (provider == PREVIEW):
        table.fail("provider", "does not fit: the account named preview is the built-in renderer, and the only one")
    private = table.flag("private_network", False)
    account = AccountSettings(
        name=name,
        provider=provider,
        key=_key(table),
        window=_window(table),
        prices=_prices(table),
        daily_limit=table.read("daily_limit", money),
        base_url=_base_url(table, private),
        allow_hosts=_hosts(table),
        private_network=private,
        pass_through=table.flag("pass_through", False),
        door_key=table.flag("door_key", False),
        dialect=table.text("dialect"),
        place=table.place(),
    )
    table.finish(refused=_REFUSED_ACCOUNT)
    return account


def _key(table: Table) -> KeySource | None:
    sources: list[KeySource] = []
    env = table.text("key_env")
    if env is not None:
        fault = None if _ENV_NAME.fullmatch(env) else "must be the name of an environment variable, not a key"
        if fault:
            table.fail("key_env", fault)
        sources.append(KeySource(kind="env", name=env, place=table.place("key_env")))
    file = table.text("key_file")
    if file is not None:
        sources.append(KeySource(kind="file", name=file, place=table.place("key_file")))
    service = table.text("keyring")
    if service is not None:
        sources.append(KeySource(kind="keyring", name=service, place=table.place("keyring")))
    if len(sources) > 1:
        table.fail(None, "has more than one of key_env, key_file and keyring")
    return sources[0] if sources else None


def _window(table: Table) -> WindowSetting:
    value: Any = table.value("window")
    if value is None or value == "auto":
        return WindowSetting()
    limits = value if isinstance(value, dict) else {"*": value}
    for limit in limits.values():
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            table.fail("window", 'must be "auto", a whole number from 1 to 1000, or a table of such numbers by model')
    if not limits:
        table.fail("window", "must name at least one model, or * for all")
    return WindowSetting(limits=dict(limits))


def _prices(table: Table) -> dict[str, Pricing]:
    prices = table.table("price")
    found = {}
    for model in prices.values:
        told = prices.read(model, price)
        if told is not None:
            found[model] = told
    return found


def _hosts(table: Table) -> tuple[str, ...]:
    hosts = table.texts("allow_hosts")
    for host in hosts:
        name = host.removeprefix("*.")
        if not _HOST.fullmatch(name) or name.replace(".", "").isdigit() or "." not in name:
            table.fail("allow_hosts", f'must hold host names in lower case such as "cdn.example.com", not {host!r}')
    return hosts


def _base_url(table: Table, private: bool) -> str | None:
    text = table.text("base_url")
    if text is None:
        return None
    fault = _base_url_fault(text, private)
    if fault:
        table.fail("base_url", fault)
    return text.rstrip("/")


def _has_no_port(parts: SplitResult) -> bool:
    """
    Whether a colon stands where a port should follow.
    """
    return parts.netloc.endswith(":")


def _base_url_fault(text: str, private: bool) -> str | None:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if not text.isascii() or " " in text or "\\" in text or "%" in text or not host or port == 0 or _has_no_port(parts):
        return 'is no plain address such as "https://api.example.com/v1"'
    if parts.username is not None or parts.password is not None:
        return "must not hold a name or password; use key_env, key_file or keyring"
    if parts.query or parts.fragment or "?" in text or "#" in text:
        return "must not hold ? or #"
    if not {".", ".."}.isdisjoint(parts.path.split("/")) or "//" in parts.path.rstrip("/"):
        return "must not hold a path with /./, /../ or //"
    if parts.scheme not in ("http", "https"):
        return "must begin with https://"
    if parts.scheme == "http" and not (is_loopback_host(host) or private):
        return "may be http:// only for a loopback address, or on a private network with private_network = true"
    return None


def _from_environment(
    accounts: list[AccountSettings], environ: Mapping[str, str], key_envs: Mapping[str, tuple[str, ...]]
) -> list[AccountSettings]:
    """
    Add an account for each provider whose variable is set and that has no account in the file.
    """
    found = list(accounts)
    for provider, variables in key_envs.items():
        variable = next((name for name in variables if from_environment(name, environ) is not None), None)
        if variable is None or _has_account(provider, accounts):
            continue
        fault = key_fault(from_environment(variable, environ) or "")
        if fault:
            raise ConfigError(
                f"The environment variable {variable} {fault}.", hint=f"Set it right, or unset {variable}."
            )
        found.append(AccountSettings(name=provider, provider=provider, key=KeySource(kind="env", name=variable)))
    return found


def _half_set(
    accounts: list[AccountSettings], environ: Mapping[str, str], key_envs: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """
    What is missing for an account of each provider that has none and one half of whose key is set.
    """
    halves = {
        half: provider
        for provider, variables in key_envs.items()
        if not _has_account(provider, accounts)
        for name in variables
        if (half := half_set(name, environ)) is not None
    }
    return tuple(f"{half}; {provider} has no account" for half, provider in halves.items())


def _has_account(provider: str, accounts: list[AccountSettings]) -> bool:
    return any(provider in (account.provider, account.name) for account in accounts)
