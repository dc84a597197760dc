"""
What a person wants to know of a provider before choosing it; the table of docs/reference/providers.md is made of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    One provider in a few words.

    `takes` is what a clip can be made of, `pictures` how they get there, `limits` how many at once and how that is
    known, `lost` how a create whose answer was lost is settled, `cancel` what can be stopped, `results` how long the
    provider keeps a clip, `verified` since when and how all this is known: an SDK that was run against the pretend
    provider, a document, or nothing.
    """

    title: str
    takes: str
    pictures: str
    limits: str
    lost: str
    cancel: str
    results: str
    verified: str
