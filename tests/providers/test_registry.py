"""
Providers by name.
"""

import pytest

from vidrelay.core.errors import ConfigError
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.providers.registry import AdapterSettings, key_envs, make_adapter

BASE = "https://video.example/v1"


def test_an_adapter_is_made_by_name() -> None:
    """A built-in name gives its adapter."""
    adapter = make_adapter("openai", AdapterSettings(key="k", base_url=BASE, dialect="sglang"))
    assert isinstance(adapter, OpenAiAdapter)


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("nobody", AdapterSettings(), "no provider 'nobody'"),
        ("openai", AdapterSettings(key="k"), "needs a base_url"),
        ("openai", AdapterSettings(base_url=BASE, dialect="klingon"), "no dialect 'klingon'"),
        ("preview", AdapterSettings(dialect="openai"), "no dialect"),
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
    assert "sk-canary" not in repr(AdapterSettings(key="sk-canary"))
