"""
The door of an account at MiniMax, in the generation that its dialect names.
"""

from vidrelay.providers.minimax.v1_door import V1Door
from vidrelay.providers.minimax.v2_door import V2Door


def make(dialect: str | None) -> V1Door | V2Door:
    """
    The door of an account: V2 unless its dialect is `v1`, as its adapter.
    """
    return V1Door() if dialect == "v1" else V2Door()
