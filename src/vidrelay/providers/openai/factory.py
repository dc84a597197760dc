"""
Makes the adapter from an account's settings.
"""

from vidrelay.core.errors import ConfigError
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.providers.openai.words import Dialect


def make(settings: AdapterSettings) -> OpenAiAdapter:
    """
    The adapter for this account.

    Raises:
        ConfigError: The base URL or the dialect is wrong.
    """
    if settings.base_url is None:
        raise ConfigError("The provider openai needs a base_url.")
    return OpenAiAdapter(key=settings.key, base_url=settings.base_url, dialect=settings.dialect or Dialect.AUTO)
