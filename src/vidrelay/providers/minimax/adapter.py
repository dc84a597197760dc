"""
The adapter of an account at MiniMax, in the generation that its dialect names.
"""

from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.minimax.v1 import V1Adapter
from vidrelay.providers.minimax.v2 import V2Adapter


def make(settings: AdapterSettings) -> V1Adapter | V2Adapter:
    """
    The adapter of an account: V2 unless its dialect is `v1`, since there more can be done about a job.

    Raises:
        ConfigError: Its base URL is none.
    """
    return V1Adapter(settings) if settings.dialect == "v1" else V2Adapter(settings)
