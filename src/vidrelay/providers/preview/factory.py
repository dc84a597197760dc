"""
Makes the adapter from an account's settings; there is nothing to set.
"""

from vidrelay.providers.preview.adapter import PreviewAdapter
from vidrelay.providers.registry import AdapterSettings


def make(_: AdapterSettings) -> PreviewAdapter:
    """
    The adapter of the built-in renderer.
    """
    return PreviewAdapter()
