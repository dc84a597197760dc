"""
Providers by name.
"""

from typing import Any

import pytest

from vidrelay.clock import SystemClock
from vidrelay.core.errors import ConfigError
from vidrelay.providers.json_api import JsonAdapter
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.providers.registry import BUILT_IN, AdapterSettings, key_envs, make_adapter

BASE = "https://video.example/v1"


def given(**fields: Any) -> AdapterSettings:
    return AdapterSettings(now=SystemClock().now, **fields)


def test_an_adapter_is_made_by_name() -> None:
    """A built-in name gives its adapter."""
    adapter = make_adapter("openai", given(key="k", base_url=BASE, dialect="sglang"))
    assert isinstance(adapter, OpenAiAdapter)


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("nobody", given(), "no provider 'nobody'"),
        ("openai", given(key="k"), "needs a base_url"),
        ("openai", given(base_url=BASE, dialect="klingon"), "no dialect 'klingon'"),
        ("preview", given(dialect="openai"), "no dialect"),
    ],
)
def test_settings_that_do_not_suit_are_refused(name: str, settings: AdapterSettings, told: str) -> None:
    """What is missing or unknown is told."""
    with pytest.raises(ConfigError, match=told):
        make_adapter(name, settings)


HOSTED = "https://api.example"
BASES = {
    "openai": "/v1",
    "replicate": "",
    "fal": "",
    "runway": "",
    "luma": "/dream-machine/v1",
    "luma-agents": "/v1",
    "google": "/v1beta",
    "xai": "/v1",
    "openrouter": "/api/v1",
    "kling": "",
    "minimax": "",
    "dashscope": "/api/v1",
    "ark": "/api/v3",
    "vidu": "/ent/v2",
    "zhipu": "/api/paas/v4",
    "jimeng": "",
    "tencent": "",
    "new-api": "/v1",
    "comfyui": "",
}
VERSIONED = {"replicate": ("/v1",), "runway": ("/v1",), "kling": ("/v1",), "minimax": ("/v1", "/v2")}


def test_every_provider_with_an_address_has_its_spellings_here() -> None:
    """One that is added says how its address may be written."""
    assert set(BASES) == {one.name for one in BUILT_IN} - {"preview"}


@pytest.mark.parametrize("provider", BASES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_base_url_may_be_written_with_or_without_the_apis_path(provider: str, slash: str) -> None:
    """The host alone, the whole path, a version that stands in every call, a slash: all are the same address."""
    path = BASES[provider]
    for spelling in ("", path, *VERSIONED.get(provider, ())):
        adapter = make_adapter(provider, given(base_url=f"{HOSTED}{spelling}{slash}"))
        assert isinstance(adapter, JsonAdapter)
        assert adapter.base == f"{HOSTED}{path}"


@pytest.mark.parametrize("provider", BASES)
def test_a_gateways_own_path_stays(provider: str) -> None:
    """What somebody else's server puts before the API's addresses is part of them."""
    for spelling in (BASES[provider], *VERSIONED.get(provider, ())):
        adapter = make_adapter(provider, given(base_url=f"{HOSTED}/our/gateway{spelling}"))
        assert isinstance(adapter, JsonAdapter)
        assert adapter.base == f"{HOSTED}/our/gateway{BASES[provider]}"


def test_no_variable_makes_an_openai_account() -> None:
    """The shape needs a base_url, so no key in the environment makes an account of it."""
    assert key_envs()["openai"] == ()


def test_settings_do_not_show_the_key() -> None:
    """A key stays out of what is printed."""
    assert "sk-canary" not in repr(given(key="sk-canary"))
