"""
Finds a provider by name: the built-in list first, then packages that offer one under the entry point group
`vidrelay.providers`. A provider's code is loaded when an account of it is made, not before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points

from vidrelay.core.errors import ConfigError
from vidrelay.core.ports import Adapter

GROUP = "vidrelay.providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """
    What an account gives its adapter: the key itself, the address, the dialect; None for what the configuration does
    not say.
    """

    key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    dialect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """
    One provider on the list.

    `factory` is `module:function`, called with `AdapterSettings`. `key_envs` are environment variables of which each
    makes an account by itself. `dialects` are the spellings an account may choose from.
    """

    name: str
    factory: str
    key_envs: tuple[str, ...] = ()
    needs_base_url: bool = False
    dialects: tuple[str, ...] = ()


BUILT_IN: tuple[Provider, ...] = (
    Provider(
        name="openai",
        factory="vidrelay.providers.openai.factory:make",
        needs_base_url=True,
        dialects=("auto", "openai", "vllm-omni", "sglang"),
    ),
    Provider(name="preview", factory="vidrelay.providers.preview.factory:make"),
)


def providers() -> dict[str, Provider]:
    """
    Every provider that can be named, by name. One from outside cannot take a built-in one's name.
    """
    outside = {one.name: Provider(name=one.name, factory=one.value) for one in entry_points(group=GROUP)}
    return outside | {one.name: one for one in BUILT_IN}


def key_envs() -> dict[str, tuple[str, ...]]:
    """
    Every provider by name, with the environment variables of which each makes an account of it.
    """
    return {name: one.key_envs for name, one in providers().items()}


def make_adapter(name: str, settings: AdapterSettings) -> Adapter:
    """
    The adapter of an account of that provider.

    Raises:
        ConfigError: There is no such provider, or the settings do not suit it.
    """
    known = providers()
    provider = known.get(name)
    if provider is None:
        raise ConfigError(f"There is no provider {name!r}.", hint=f"Known are {', '.join(sorted(known))}.")
    if provider.needs_base_url and settings.base_url is None:
        raise ConfigError(
            f"The provider {name} needs a base_url.", hint='Write base_url = "https://host/v1" in the account.'
        )
    if settings.dialect is not None and provider in BUILT_IN and settings.dialect not in provider.dialects:
        told = f"It has {', '.join(provider.dialects)}." if provider.dialects else "It has none."
        raise ConfigError(f"The provider {name} has no dialect {settings.dialect!r}.", hint=told)
    return _load(provider)(settings)


def _load(provider: Provider) -> Callable[[AdapterSettings], Adapter]:
    module, _, attribute = provider.factory.partition(":")
    try:
        factory: Callable[[AdapterSettings], Adapter] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The provider {provider.name} cannot be loaded: {error}.") from error
    return factory
