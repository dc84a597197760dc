"""
Providers by name.
"""

from typing import Any

import pytest

from vidrelay.clock import SystemClock
from vidrelay.core.errors import ConfigError
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.providers.registry import AdapterSettings, key_envs, make_adapter

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


def test_no_variable_makes_an_openai_account() -> None:
    """The shape needs a base_url, so no key in the environment makes an account of it."""
    assert key_envs()["openai"] == ()


def test_settings_do_not_show_the_key() -> None:
    """A key stays out of what is printed."""
    assert "sk-canary" not in repr(given(key="sk-canary"))
