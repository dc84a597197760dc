"""
Write the tables of providers from the code: `python docs/reference/make_providers.py`.

They are in providers.md (what each can do, and where calls go), in configuration.md (the variables of their keys) and
in simulator.md (the dialects), between comments that name them.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from vidrelay.core.adapter import Adapter
from vidrelay.providers.facts import Facts
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import BUILT_IN, Provider, make_adapter
from vidrelay.simulator.options import DIALECTS
from vidrelay.simulator.words.catalog import words_class

HERE = Path(__file__).parent
PAGES = (HERE / "providers.md", HERE / "configuration.md", HERE / "simulator.md")
_TABLE = re.compile(r"(?<=<!-- made by make_providers.py: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

SPOKEN = {
    "vllm-omni": ("openai", "vllm-omni"),
    "sglang": ("openai", "sglang"),
    "minimax": ("minimax", "v1"),
    "minimax-v2": ("minimax", "v2"),
}
"""The provider and dialect of an account at a simulator, where they are not that name and none."""
PATHS = {
    **dict.fromkeys(("openai", "vllm-omni", "sglang", "xai", "luma-agents", "new-api"), "/v1"),
    "google": "/v1beta",
    "luma": "/dream-machine/v1",
    "openrouter": "/api/v1",
    "dashscope": "/api/v1",
    "ark": "/api/v3",
    "vidu": "/ent/v2",
    "zhipu": "/api/paas/v4",
}
"""What a `base_url` of a simulator ends in, where it is not its host alone."""


def facts_of(provider: Provider) -> Facts:
    """
    What the provider's words say of it.
    """
    room = provider.factory.partition(":")[0].rpartition(".")[0]
    facts: Facts = import_module(f"{room}.words").FACTS
    return facts


def adapter_of(provider: Provider, dialect: str | None = None) -> Adapter:
    """
    An adapter as an account without any other wishes has it.
    """
    base_url = "https://your.host/v1" if provider.needs_base_url else None
    settings = AdapterSettings(
        now=lambda: datetime(2026, 11, 30, tzinfo=UTC),
        key="id:secret-of-thirty-two-letters-or-more",
        base_url=base_url,
        dialect=dialect,
    )
    return make_adapter(provider.name, settings)


def abilities() -> str:
    """
    What each provider can do.
    """
    heads = (
        *("provider", "a clip is made of", "pictures", "how many at once", "a lost create"),
        *("can be stopped", "results stay", "asked", "known from"),
    )
    return table(heads, ([_linked(one), *_told(facts_of(one), adapter_of(one))] for one in BUILT_IN))


def hosts() -> str:
    """
    Where each provider's calls go and results lie.
    """
    rows = []
    for one in BUILT_IN:
        told = {host for dialect in one.dialects or (None,) for host in adapter_of(one, dialect).traits.hosts}
        named = [f"`{host}`" for host in sorted(told - {"your.host"})]
        rows.append([_linked(one), ", ".join(["`base_url`'s"] * one.needs_base_url + named) or "none"])
    return table(("provider", "hosts"), rows)


def variables() -> str:
    """
    The environment variables that make an account, and the dialects it may have.
    """
    rows = [
        [
            f"[`{one.name}`](providers.md#{one.name})",
            " or ".join(f"`{name}`" for name in one.key_envs) or "none",
            "needed" if one.needs_base_url else "its own",
            ", ".join(f"`{name}`" for name in one.dialects) or "–",
        ]
        for one in BUILT_IN
    ]
    return table(("provider", "variables", "`base_url`", "`dialect`"), rows)


def dialects() -> str:
    """
    What the simulator speaks, which account speaks with it, and the limits that it has unless told otherwise.
    """
    rows = []
    for dialect in DIALECTS:
        provider, spelling = SPOKEN.get(dialect, (dialect, None))
        account = f'`provider = "{provider}"`' + (f', `dialect = "{spelling}"`' if spelling else "")
        own = [f"`{name.replace('_', '-')}` {value:.15g}" for name, value in words_class(dialect).DEFAULTS.items()]
        rows.append(
            [f"`{dialect}`", account, f"`{PATHS[dialect]}`" if dialect in PATHS else "–", ", ".join(own) or "–"]
        )
    return table(("dialect", "account", "`base_url` ends in", "its own limits"), rows)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """
    A table in Markdown.
    """
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def made(page: str) -> str:
    """
    The page with its tables as the code is now.
    """
    makers = {"abilities": abilities, "hosts": hosts, "variables": variables, "dialects": dialects}
    return _TABLE.sub(lambda found: f"{found[1]}{found[2]}\n{makers[found[1]]()}\n", page)


def _linked(provider: Provider) -> str:
    return f"[`{provider.name}`](#{provider.name}) {facts_of(provider).title}"


def _told(facts: Facts, adapter: Adapter) -> list[str]:
    traits = adapter.traits
    pace = f"at most every {traits.poll_floor:g} s"
    together = ", all tasks in one call" * traits.lists
    lasting = ", or by a call that lasts until there is news" * traits.follows
    return [
        *(facts.takes, facts.pictures, facts.limits, facts.lost, facts.cancel, facts.results),
        pace + together + lasting,
        facts.verified,
    ]


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
