"""
What can be set on the pretend provider: one frozen record, and its command-line flags.
"""

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from vidrelay.core.errors import ConfigError
from vidrelay.simulator.faults import Fault

DIALECTS = (
    *("openai", "vllm-omni", "sglang"),
    *("replicate", "fal", "runway", "luma", "luma-agents", "google", "xai", "openrouter"),
    *("kling", "minimax", "minimax-v2", "dashscope", "ark", "vidu", "zhipu", "jimeng", "tencent", "new-api", "comfyui"),
)


def _setting(default: Any, told: str, kind: type = str, choices: tuple[str, ...] | None = None) -> Any:
    """
    A field with the words that explain it, how its flag is read, and what it may be.
    """
    return field(default=default, metadata={"told": told, "kind": kind, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """
    Everything that can be set; each field's `told` says what it does (it is the flag's help). Durations are seconds.

    The fields under `port` and `dialect` can also be changed at run time by `POST /_control`.
    """

    port: int = _setting(0, "port on 127.0.0.1; 0 takes a free one", int)
    dialect: str = _setting("openai", "whose words it speaks", choices=DIALECTS)
    key: str | None = _setting(None, "the only key it takes; without one, any key and none")
    window: int | None = _setting(None, "unended jobs a key may have; a create above it gets 429", int)
    workers: int | None = _setting(None, "jobs worked on at once, all keys together; the rest wait in line", int)
    queue_seconds: float = _setting(0.5, "least time a job waits in line", float)
    run_seconds: float = _setting(2.0, "time a job is worked on", float)
    models: str = _setting("", "run time by model, as in 'fast=1,slow=60'")
    rate: int | None = _setting(None, "requests a key may make in each `rate-per`; one more gets 429", int)
    rate_per: float = _setting(60.0, "the span that `rate` counts in", float)
    retry_after: str = _setting("seconds", "how a 429 says when to come back", choices=("seconds", "date", "none"))
    fail_share: float = _setting(0.0, "share of jobs that fail, 0 to 1", float)
    moderation_share: float = _setting(0.0, "share of jobs refused by policy, 0 to 1", float)
    list_lag: float = _setting(0.0, "how long a new job stays out of the list", float)
    url_seconds: float | None = _setting(
        None, "signed addresses of results die after so long; asking again gives fresh ones (sglang: needs it)", float
    )
    keep_seconds: float | None = _setting(None, "how long a finished job and its file are kept", float)
    clip_bytes: int = _setting(0, "pad each clip to at least so many bytes", int)
    bytes_per_second: int | None = _setting(None, "send clips no faster than this", int)
    seed: int = _setting(0, "what chance and the clips' pictures are drawn from", int)
    faults: tuple[str, ...] = _setting((), "what goes wrong on purpose, PLACE-EFFECT[=ARG][:COUNT]; may be repeated")

    def __post_init__(self) -> None:
        """
        Refuse what cannot be.

        Raises:
            ConfigError: A setting is out of its range; names it.
        """
        for one in fields(self):
            value, kind, choices = getattr(self, one.name), one.metadata["kind"], one.metadata["choices"]
            if value is None and one.default is None:
                continue
            if one.name != "faults" and (
                isinstance(value, bool) or not isinstance(value, int | float if kind is float else kind)
            ):
                raise ConfigError(f"{one.name} must be a {kind.__name__}, not {value!r}.")
            if choices and value not in choices:
                raise ConfigError(f"{one.name} must be one of {', '.join(choices)}, not {value!r}.")
            if isinstance(value, int | float) and not value >= 0:
                raise ConfigError(f"{one.name} must not be negative.")
        for share in ("fail_share", "moderation_share"):
            if getattr(self, share) > 1:
                raise ConfigError(f"{share} must be from 0 to 1.")
        self.run_by_model()
        for spec in self.faults:
            Fault.parse(spec)

    def run_by_model(self) -> dict[str, float]:
        """
        The run time in seconds of each model that has its own.

        Raises:
            ConfigError: `models` cannot be read.
        """
        try:
            pairs = [one.split("=", 1) for one in self.models.split(",") if one.strip()]
            return {model.strip(): float(seconds) for model, seconds in pairs}
        except ValueError as error:
            raise ConfigError(f"models must be like 'fast=1,slow=60', not {self.models!r}.") from error


def add_flags(parser: argparse.ArgumentParser) -> None:
    """
    Add one flag for each setting: `--queue-seconds` for `queue_seconds`; `--fault` may be given several times.
    """
    for one in fields(SimulatorOptions):
        told = str(one.metadata["told"]).replace("%", "%%")
        if one.name == "faults":
            parser.add_argument("--fault", dest="faults", action="append", default=[], metavar="FAULT", help=told)
            continue
        default = None if one.default is MISSING else one.default
        shown = told if default in (None, "") else f"{told} (default {default})"
        parser.add_argument(
            "--" + one.name.replace("_", "-"),
            dest=one.name,
            type=one.metadata["kind"],
            choices=one.metadata["choices"],
            default=default,
            help=shown,
        )


def parse(arguments: Sequence[str], *, prog: str = "vidrelay simulate") -> SimulatorOptions:
    """
    Read the flags; a wrong one is told on stderr and ends the program with status 2, as argparse does.
    """
    parser = argparse.ArgumentParser(prog=prog, description="A pretend provider on loopback.", allow_abbrev=False)
    add_flags(parser)
    given = vars(parser.parse_args(arguments))
    given["faults"] = tuple(given["faults"])
    try:
        return SimulatorOptions(**given)
    except ConfigError as error:
        parser.error(error.message)
