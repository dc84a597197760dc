"""
Finds a provider by name: the built-in list first, then packages that offer one under the entry point group
`vidrelay.providers`. A provider's code is loaded when an account of it is made, not before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from vidrelay.core.adapter import Adapter
from vidrelay.core.door import Door
from vidrelay.core.errors import ConfigError
from vidrelay.providers.json_api import AdapterSettings

GROUP = "vidrelay.providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """
    One provider on the list.

    `factory` is `module:function`, called with `AdapterSettings`; `door` likewise, called with the account's dialect or
    None, for a provider whose SDKs the relay answers. `key_envs` are environment variables of which each makes an
    account by itself; `A+B` stands for two that are needed together, and the key is then `a:b`. `dialects` are the
    spellings an account may choose from; `key_dialects` tells the one that a variable is for, where an account that has
    its key from there chooses none.
    """

    name: str
    factory: str
    key_envs: tuple[str, ...] = ()
    door: str | None = None
    needs_base_url: bool = False
    dialects: tuple[str, ...] = ()
    key_dialects: Mapping[str, str] = field(default_factory=dict)


BUILT_IN: tuple[Provider, ...] = (
    Provider(
        name="openai",
        factory="vidrelay.providers.openai.adapter:make",
        door="vidrelay.providers.openai.door:make",
        needs_base_url=True,
        dialects=("auto", "openai", "vllm-omni", "sglang"),
    ),
    Provider(name="preview", factory="vidrelay.providers.preview.factory:make"),
    Provider(
        name="replicate",
        factory="vidrelay.providers.replicate.adapter:make",
        door="vidrelay.providers.replicate.door:make",
        key_envs=("REPLICATE_API_TOKEN",),
    ),
    Provider(
        name="fal",
        factory="vidrelay.providers.fal.adapter:make",
        door="vidrelay.providers.fal.door:make",
        key_envs=("FAL_KEY", "FAL_KEY_ID+FAL_KEY_SECRET"),
    ),
    Provider(
        name="runway",
        factory="vidrelay.providers.runway.adapter:make",
        door="vidrelay.providers.runway.door:make",
        key_envs=("RUNWAYML_API_SECRET",),
    ),
    Provider(
        name="luma",
        factory="vidrelay.providers.luma.adapter:make",
        door="vidrelay.providers.luma.door:make",
        key_envs=("LUMAAI_API_KEY",),
    ),
    Provider(
        name="luma-agents",
        factory="vidrelay.providers.luma_agents.adapter:make",
        door="vidrelay.providers.luma_agents.door:make",
        key_envs=("LUMA_AGENTS_API_KEY",),
    ),
    Provider(
        name="google",
        factory="vidrelay.providers.google.adapter:make",
        door="vidrelay.providers.google.door:make",
        key_envs=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    ),
    Provider(
        name="xai",
        factory="vidrelay.providers.xai.adapter:make",
        door="vidrelay.providers.xai.door:make",
        key_envs=("XAI_API_KEY",),
    ),
    Provider(
        name="openrouter",
        factory="vidrelay.providers.openrouter.adapter:make",
        door="vidrelay.providers.openrouter.door:make",
        key_envs=("OPENROUTER_API_KEY",),
    ),
    Provider(
        name="kling",
        factory="vidrelay.providers.kling.adapter:make",
        door="vidrelay.providers.kling.door:make",
        key_envs=("KLING_ACCESS_KEY+KLING_SECRET_KEY",),
    ),
    Provider(
        name="minimax",
        factory="vidrelay.providers.minimax.adapter:make",
        door="vidrelay.providers.minimax.door:make",
        key_envs=("MINIMAX_API_KEY",),
        dialects=("v2", "v1"),
    ),
    Provider(
        name="dashscope",
        factory="vidrelay.providers.dashscope.adapter:make",
        door="vidrelay.providers.dashscope.door:make",
        key_envs=("DASHSCOPE_API_KEY",),
    ),
    Provider(
        name="ark",
        factory="vidrelay.providers.ark.adapter:make",
        door="vidrelay.providers.ark.door:make",
        key_envs=("ARK_API_KEY",),
        dialects=("volcengine", "byteplus"),
    ),
    Provider(
        name="vidu",
        factory="vidrelay.providers.vidu.adapter:make",
        door="vidrelay.providers.vidu.door:make",
        key_envs=("VIDU_API_KEY",),
    ),
    Provider(
        name="zhipu",
        factory="vidrelay.providers.zhipu.adapter:make",
        door="vidrelay.providers.zhipu.door:make",
        key_envs=("ZHIPUAI_API_KEY", "ZAI_API_KEY"),
        dialects=("zhipu", "zai"),
        # Two houses with keys of their own: neither gets the other's.
        key_dialects={"ZAI_API_KEY": "zai"},
    ),
    Provider(
        name="jimeng", factory="vidrelay.providers.jimeng.adapter:make", key_envs=("VOLC_ACCESSKEY+VOLC_SECRETKEY",)
    ),
    Provider(
        name="tencent",
        factory="vidrelay.providers.tencent.adapter:make",
        key_envs=("TENCENTCLOUD_SECRET_ID+TENCENTCLOUD_SECRET_KEY",),
        dialects=("hunyuan", "kling"),
    ),
    Provider(
        name="new-api",
        factory="vidrelay.providers.new_api.adapter:make",
        door="vidrelay.providers.new_api.door:make",
        needs_base_url=True,
    ),
    Provider(
        name="comfyui",
        factory="vidrelay.providers.comfyui.adapter:make",
        door="vidrelay.providers.comfyui.door:make",
        needs_base_url=True,
    ),
)


def providers() -> dict[str, Provider]:
    """
    Every provider that can be named, by name. One from outside cannot take a built-in one's name.
    """
    return _outside() | {one.name: one for one in BUILT_IN}


@cache
def _outside() -> dict[str, Provider]:
    # Every installed package is asked, which takes its time, and several questions come for each account.
    return {one.name: Provider(name=one.name, factory=one.value) for one in entry_points(group=GROUP)}


def key_envs() -> dict[str, tuple[str, ...]]:
    """
    Every provider by name, with the environment variables of which each makes an account of it.
    """
    return {name: one.key_envs for name, one in providers().items()}


def dialect_of(name: str, variable: str | None) -> str | None:
    """
    The provider's dialect that a key in that environment variable is for; None where the variable does not tell.
    """
    provider = providers().get(name)
    return None if provider is None or variable is None else provider.key_dialects.get(variable)


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
    adapter: Adapter = _load(provider, provider.factory)(settings)
    return adapter


def make_door(name: str, dialect: str | None) -> Door | None:
    """
    The door of an account of that provider; None where its SDKs are not answered.

    Raises:
        ConfigError: It cannot be loaded.
    """
    provider = providers().get(name)
    if provider is None or provider.door is None:
        return None
    door: Door = _load(provider, provider.door)(dialect)
    return door


def _load(provider: Provider, place: str) -> Callable[..., Any]:
    module, _, attribute = place.partition(":")
    try:
        factory: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The provider {provider.name} cannot be loaded: {error}.") from error
    return factory
