"""
The pages about providers say what the code does: their tables are made of it, and their examples are taken.
"""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from vidrelay.config import load_config
from vidrelay.core.task import Asset, Reference, Request
from vidrelay.providers.facts import Facts
from vidrelay.providers.registry import BUILT_IN, Provider, key_envs
from vidrelay.simulator.options import DIALECTS
from vidrelay.testing.rehearsal import PICTURE, rehearse

DOCS = Path(__file__).resolve().parents[2] / "docs/reference"
SDKS = Path(__file__).resolve().parents[1] / "sdks"
PROVIDERS = (DOCS / "providers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([a-z-]+)\n(.*?)(?=^## |\Z)", PROVIDERS, re.MULTILINE | re.DOTALL))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")
LAST = Asset(id="sha256:" + "cd" * 32, pixels="py", width=1280, height=720, size_bytes=5, media_type="image/png")

every_provider = pytest.mark.parametrize("provider", BUILT_IN, ids=lambda one: one.name)


def maker() -> Any:
    """
    The program that makes the tables.
    """
    spec = importlib.util.spec_from_file_location("make_providers", DOCS / "make_providers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(name: str, language: str) -> str:
    """
    The section's first block in that language.
    """
    return next(code for spoken, code in FENCE.findall(SECTIONS[name]) if spoken == language)


def asked(name: str) -> Request:
    """
    The section's example request, each path being a picture.
    """
    fields = {SNAKE.sub("_", key).lower(): value for key, value in json.loads(example(name, "json")).items()}
    files = iter((PICTURE, LAST))
    given = [
        Reference(asset=next(files).id if "path" in one else None, url=one.get("url"), role=one.get("role"))
        for one in fields.pop("references", [])
    ]
    return Request(references=tuple(given), **fields)


def mentioned(value: Any) -> set[str]:
    """
    Every key and every text in a JSON value.
    """
    if isinstance(value, dict):
        return set(value).union(*map(mentioned, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(mentioned, value))
    return {value} if isinstance(value, str) else set()


@every_provider
def test_every_provider_tells_its_facts(provider: Provider) -> None:
    """A line for each column, and when and how it was verified."""
    facts = maker().facts_of(provider)
    assert isinstance(facts, Facts)
    assert all(getattr(facts, name).strip() for name in Facts.__dataclass_fields__)
    assert provider.name == "preview" or "30 November 2026" in facts.verified


@every_provider
def test_an_sdk_that_is_said_to_have_run_is_run(provider: Provider) -> None:
    """In the version that the facts name, which is what `make sdks` installs, by a test of that provider's own."""
    facts = maker().facts_of(provider)
    if "run against the pretend provider" not in facts.verified:
        assert "SDK" not in facts.verified.replace("no official SDK", "").replace("official SDK speaks gRPC", "")
        return
    pinned = "".join(path.read_text() for path in (SDKS / "environments").glob("*.txt")).lower().replace("_", "-")
    named = re.findall(r"([a-z0-9-]+) (\d[\w.]*\d)", facts.verified.partition("SDK")[2].partition("run against")[0])
    named += [("google-genai", one) for one in re.findall(r"and (\d[\w.]*\d)", facts.verified)]
    named = [(name, version) for name, version in named if name != "and"]
    assert named
    assert all(f"{name}=={version}" in pinned for name, version in named), named
    assert (SDKS / f"test_{provider.name.replace('-', '_')}.py").exists()


@pytest.mark.parametrize("page", ["providers.md", "configuration.md", "simulator.md"])
def test_the_tables_are_what_the_code_makes(page: str) -> None:
    """`python docs/reference/make_providers.py` would change nothing."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert "made by make_providers.py" in text
    assert maker().made(text) == text


@every_provider
def test_every_provider_has_a_section_of_its_own(provider: Provider, tmp_path: Path) -> None:
    """It names its key variables and dialects, and its account is a configuration without a fault."""
    section = SECTIONS[provider.name]
    for word in (*(one for names in provider.key_envs for one in names.split("+")), *provider.dialects):
        assert word in section
    if provider.name == "preview":
        return
    file = tmp_path / "vidrelay.toml"
    file.write_text(example(provider.name, "toml"))
    file.chmod(0o600)
    (account,) = (
        one
        for one in load_config(file, must_exist=True, environ={}, key_envs=key_envs()).accounts
        if one.name != "preview"
    )
    assert account.provider == provider.name
    assert account.dialect in (None, *provider.dialects)


@every_provider
def test_the_example_request_of_each_section_is_taken(provider: Provider) -> None:
    """The adapter says it in the provider's words; what stands under extra is among them."""
    request = asked(provider.name)
    prepared = maker().adapter_of(provider).prepare(request, {PICTURE.id: PICTURE, LAST.id: LAST})
    left = mentioned(request.extra) - {"$reference", "first_frame", "last_frame"}
    assert left <= mentioned(prepared.parameters)
    assert all(one.asset is None or one.asset in json.dumps(prepared.parameters) for one in request.references)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_account_of_each_dialect_speaks_with_the_simulator(dialect: str) -> None:
    """Provider, dialect and the end of the base address as the page's table has them: a create is accepted there."""
    made = maker()
    name, spelling = made.SPOKEN.get(dialect, (dialect, None))
    provider = next(one for one in BUILT_IN if one.name == name)
    it = rehearse(
        lambda settings: made.make_adapter(provider.name, settings),
        dialect,
        path=made.PATHS.get(dialect, ""),
        key="id:secret-of-thirty-two-letters-or-more",
        account_dialect=spelling,
    )
    request = asked(name)
    fields = {"model_version": request.model_version, "duration": request.duration, "extra": request.extra}
    await it.submitted(it.task(request.prompt, **(fields if not request.references else {**fields, "extra": {}})))
    assert len(it.engine.jobs) == 1
