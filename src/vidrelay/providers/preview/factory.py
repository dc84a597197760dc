"""
Makes the adapter from an account's settings; there is nothing to set.
"""

from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.preview.adapter import PreviewAdapter


def make(_: AdapterSettings) -> PreviewAdapter:
    """
    The adapter of the built-in renderer.
    """
    return PreviewAdapter()
