"""
The sheet of an adapter: what is a provider's own, for the contract suite of `adapters.py` to hold the adapter to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vidrelay.core.adapter import Adapter
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.simulator.words.vocabulary import Words
from vidrelay.testing.rehearsal import Rehearsal, rehearse


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    A recorded reply of the provider's fact sheet: `of` is `submit` or `poll`; `outcome` is what must come of it.
    """

    of: str
    data: Any
    outcome: type
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """
    What is a provider's own.

    Args:
        dialect: The pretend provider's words for it, where it has some (`SimulatorOptions.dialect`).
        speaks: A vocabulary of your own, in place of a dialect's.
        make: The adapter's factory.
        path: What of its base address comes after the host, as `/v1`.
        key: A key of its kind.
        account_dialect: The account's own dialect, where the provider has several.
        fields: A request with everything that it takes, in the contract's words.
        picture: The same with a first frame, but for the reference itself; None where it takes no picture.
        words: Every status word of its fact sheet.
        create_codes: Its error codes for a create, by what each must be taken for.
        job_codes: The error codes of a job that failed.
        refused: Requests that it cannot do, with the field that the refusal must name.
        samples: Recorded replies.
    """

    make: Callable[[AdapterSettings], Adapter]
    dialect: str = "openai"
    speaks: type[Words] | None = None
    path: str = ""
    key: str = "key-canary"
    account_dialect: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    picture: Mapping[str, Any] | None = None
    words: Mapping[str, Standing] = field(default_factory=dict)
    create_codes: Mapping[str, Meaning] = field(default_factory=dict)
    job_codes: Mapping[str, Meaning] = field(default_factory=dict)
    refused: Sequence[tuple[Mapping[str, Any], str]] = ()
    samples: Sequence[Sample] = ()

    def rehearse(self, **options: Any) -> Rehearsal:
        """
        Put the adapter before the pretend provider.
        """
        return rehearse(
            self.make,
            self.dialect,
            path=self.path,
            key=self.key,
            account_dialect=self.account_dialect,
            speaks=self.speaks,
            **options,
        )
