"""
The real parts put together: an account's way out, and a relay inside this process.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vidrelay import Request, State, open_relay
from vidrelay.assemble import adapter_for, assembled, far_end, transport_for, user_agent, version
from vidrelay.config import AccountSettings, Config, KeySource, NetworkSettings, load_config
from vidrelay.core.errors import ConfigError, DiskFull, OutboundRefused, RelayUnavailable
from vidrelay.core.messages import HttpRequest
from vidrelay.core.policy import CachePolicy, Policy
from vidrelay.providers.registry import key_envs
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.simulator import running_simulator


def account(base_url: str | None = "http://127.0.0.1:9/v1", **more) -> AccountSettings:
    return AccountSettings(name="main", provider="openai", base_url=base_url, **more)


def test_providers_are_told_the_products_name_and_version() -> None:
    """
    The user agent is the product's name and the version that is installed.
    """
    assert user_agent() == f"vidrelay/{version()}"


def test_an_account_without_what_its_provider_needs_is_refused() -> None:
    """
    A missing base URL, a missing key or an unknown dialect is an error that names it.
    """
    with pytest.raises(ConfigError, match="base_url"):
        adapter_for(account(None), {}, FakeClock())
    with pytest.raises(ConfigError, match="is missing"):
        adapter_for(account(key=KeySource(kind="env", name="K")), {}, FakeClock())
    with pytest.raises(ConfigError, match="dialect"):
        adapter_for(account(dialect="klingon"), {}, FakeClock())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('provider = "openai"', "2: accounts.main: The provider openai needs a base_url."),
        ('provider = "openai"\nbase_url = "https://a.example"\ndialect = "x"', "2: accounts.main: The provider openai"),
        ('provider = "openai"\nkey_env = "K"', "4: accounts.main.key_env: The key of account main is missing"),
        ('provider = "openai"\nkey_file = "no"', "4: accounts.main.key_file: The key file of account main is missing"),
    ],
)
def test_what_an_account_lacks_is_told_with_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    """
    An account that only its provider or its key can judge is refused with the place where it is written.
    """
    path = tmp_path / "vidrelay.toml"
    path.write_text(f"# mine\n[accounts.main]\n{text}\n")
    path.chmod(0o600)
    config = load_config(path, must_exist=True, environ={}, key_envs=key_envs())
    with pytest.raises(ConfigError) as caught:
        adapter_for(config.accounts[0], {}, FakeClock())
    assert caught.value.message.startswith(f"{path}:{told}")


@pytest.mark.parametrize(("variable", "host"), [("ZAI_API_KEY", "api.z.ai"), ("ZHIPUAI_API_KEY", "open.bigmodel.cn")])
def test_a_key_goes_to_the_house_that_its_variable_names(variable: str, host: str) -> None:
    """
    Z.ai's key never goes to Zhipu, nor the other way round, unless the account says so itself.
    """
    source = KeySource(kind="env", name=variable)
    told: dict[str, str] = {}
    for dialect in (None, "zhipu"):
        found = AccountSettings(name="zhipu", provider="zhipu", key=source, dialect=dialect)
        told[str(dialect)] = getattr(adapter_for(found, {variable: "id.secret"}, FakeClock()), "base", "")
    assert told == {
        "None": f"https://{host}/api/paas/v4",
        "zhipu": "https://open.bigmodel.cn/api/paas/v4",
    }


@pytest.mark.parametrize(
    "base_url", [None, "https://api.replicate.com", "https://api.replicate.com/v1/", "https://API.replicate.com/v1"]
)
def test_accounts_at_one_server_are_neighbours_however_each_writes_its_address(base_url: str | None) -> None:
    """
    A job of one may show in the list of another, so a lost create of that one must not take it for its own.
    """
    mine = AccountSettings(name="main", provider="replicate", base_url=base_url)
    assert far_end(adapter_for(mine, {}, FakeClock()), base_url) == "https://api.replicate.com"


async def test_a_wrong_account_opens_no_database(tmp_path: Path) -> None:
    """
    An account that cannot be assembled is refused before any database file is made.
    """
    config = Config(policy=Policy(), accounts=(account(key=KeySource(kind="env", name="K")),))
    with pytest.raises(ConfigError):
        async with assembled(config, tmp_path, environ={}):
            pass
    assert not (tmp_path / "relay.db").exists()


async def test_an_account_reaches_its_own_address_and_no_other() -> None:
    """
    An account's transport lets out its base URL and refuses that of another server.
    """
    async with running_simulator() as provider, running_simulator() as other:
        mine = account(provider.base_url)
        transport = transport_for(
            mine, NetworkSettings(), adapter_for(mine, {}, FakeClock()), asset_path=lambda _: Path()
        )
        try:
            async with transport.send(HttpRequest(method="GET", url=f"{provider.base_url}/videos"), timeout=5) as reply:
                assert reply.status == 200
            with pytest.raises(OutboundRefused):
                async with transport.send(HttpRequest(method="GET", url=f"{other.base_url}/videos"), timeout=5):
                    pass
        finally:
            await transport.aclose()


@pytest.mark.process
async def test_a_relay_runs_inside_a_program(tmp_path: Path) -> None:
    """
    A relay opened in a program takes a task to done, its file whole, with one create at the provider.
    """
    async with running_simulator() as provider:
        config = Config(policy=Policy(default_account="main"), accounts=(account(provider.base_url),))
        async with open_relay(tmp_path / "state", config=config) as relay, asyncio.timeout(30):
            task = (await relay.submit(Request(prompt="A fox"))).task
            while not task.ended:
                task = await relay.wait(task.id, seconds=10, seen=task.state)
            path, file = await relay.result_file(task.id, 0)
            assert task.state is State.DONE
            assert path.stat().st_size == file.size_bytes
        assert provider.ledger()["creates"]["accepted"] == 1


async def test_a_picture_is_not_taken_in_where_nothing_may_be_begun(tmp_path: Path) -> None:
    """
    The reserve is the one that is configured.
    """

    async def picture() -> AsyncIterator[bytes]:
        yield b"\x89PNG\r\n\x1a\n" + b"x" * 5000

    policy = Policy(cache=CachePolicy(min_free_bytes=1000 * 1000**4))
    async with assembled(Config(policy=policy, accounts=()), tmp_path) as relay:
        with pytest.raises(DiskFull):
            await relay.add_asset(picture())


@pytest.mark.parametrize("name", ["cache", "assets"])
async def test_a_relay_with_a_link_in_a_folders_place_does_not_start(tmp_path: Path, name: str) -> None:
    """
    What is paid for could not be saved, so it is said before anything is paid for, and nothing is made.
    """
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayUnavailable, match=f"{name} is a link"):
        async with open_relay(tmp_path / "state"):
            pass
    assert [path.name for path in (tmp_path / "state").iterdir()] == [name]
