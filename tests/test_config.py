"""
Settings: what a file may say, what is refused and how it is told.
"""

import contextlib
import os
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from vidrelay.config import Config, KeySource, config_file, load_config, places, read_key, state_directory
from vidrelay.config.keys import key_fault
from vidrelay.config.units import duration, said, size
from vidrelay.core.errors import ConfigError
from vidrelay.core.plan import Pricing
from vidrelay.core.policy import Policy
from vidrelay.core.task import Money

PROVIDERS = {"openai": (), "preview": (), "replicate": ("REPLICATE_API_TOKEN",), "fal": ("FAL_KEY", "FAL_API_KEY")}

FULL = """
[relay]
default_account = "main"
dedupe_window = "45s"
join_live = false
token = "keep"
stale_after = "3h"
port = 61234
origins = ["tauri://localhost", "https://app.example:8443"]
[poll]
first = "3s"
factor = 2
cap = "20s"
jitter = 0.1
learned = false
not_found_grace = "90s"
[cache]
max_bytes = "2GiB"
min_free = "300MB"
max_age = "12h"
[network]
proxy = "http://127.0.0.1:7890"
fake_ip = true
[accounts.main]
provider = "openai"
key_env = "MY_KEY"
window = { "model-a" = 2, "*" = 1 }
price = { "model-a" = "0.10 USD/s", "model-b" = "0.35 USD" }
daily_limit = "20 USD"
base_url = "http://127.0.0.1:8000/v1/"
allow_hosts = ["cdn.example.com", "*.media.example"]
[accounts.second]
provider = "replicate"
key_file = "~/key"
window = 4
"""


def load(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    path = tmp_path / "vidrelay.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return load_config(path, must_exist=True, environ=environ or {}, key_envs=PROVIDERS)


def refused(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, environ)
    return caught.value


def test_every_setting_is_read(tmp_path: Path) -> None:
    """
    Each setting of a full file stands in the configuration in its proper type and unit.
    """
    config = load(tmp_path, FULL)
    assert config.policy.default_account == "main"
    assert config.policy.dedupe_window == timedelta(seconds=45)
    assert not config.policy.join_live
    assert config.policy.stale_after == timedelta(hours=3)
    assert (config.token, config.port) == ("keep", 61234)
    assert config.origins == {"tauri://localhost", "https://app.example:8443"}
    assert config.policy.poll.first == 3
    assert config.policy.poll.factor == 2
    assert config.policy.cache.max_bytes == 2 * 1024**3
    assert config.policy.cache.min_free_bytes == 300 * 1000**2
    assert config.policy.cache.max_age == timedelta(hours=12)
    assert config.network.proxy == "http://127.0.0.1:7890"
    assert config.network.fake_ip
    main, second, preview = config.accounts
    assert main.key == KeySource(kind="env", name="MY_KEY")
    assert main.window.limits == {"model-a": 2, "*": 1}
    assert main.prices["model-a"] == Pricing(amount="0.10", currency="USD", per_second=True)
    assert main.prices["model-b"] == Pricing(amount="0.35", currency="USD")
    assert main.daily_limit == Money(amount=Decimal(20), currency="USD")
    assert main.base_url == "http://127.0.0.1:8000/v1"
    assert main.allow_hosts == ("cdn.example.com", "*.media.example")
    assert second.window.limits == {"*": 4}
    assert preview.provider == "preview"


def test_without_a_file_everything_is_as_the_contract_says(tmp_path: Path) -> None:
    """
    Without a file all is default, and the preview account is the only and default one.
    """
    config = load_config(tmp_path / "none.toml", must_exist=False, environ={}, key_envs=PROVIDERS)
    assert config.policy == Policy(default_account="preview")
    assert [account.name for account in config.accounts] == ["preview"]
    assert config.path is None
    assert config.token == "new"


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    """
    A configuration file that was asked for by name and is missing is an error.
    """
    with pytest.raises(ConfigError, match=r"none\.toml does not exist"):
        load_config(tmp_path / "none.toml", must_exist=True, environ={}, key_envs=PROVIDERS)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("[relay]\nhost = '0.0.0.0'", ":2", "127.0.0.1 only"),
        ("bind = '0.0.0.0'", ":1", "127.0.0.1 only"),
        ("[relay]\n\n# x\nunheard = 1", ":4", "is not a setting"),
        ("[rely]\n", ":1", "is not a setting"),
        ("[relay]\ndedupe_window = '5'", ":2", "with its unit"),
        ("[relay]\ndedupe_window = 5", ":2", "text in quotes"),
        ("[relay]\ndedupe_window = '-1s'", ":2", "with its unit"),
        ("[relay]\ndedupe_window = '９s'", ":2", "with its unit"),
        ("[relay]\ndedupe_window = '9d'", ":2", "from 0s to 1d"),
        ("[relay]\nstale_after = '0s'", ":2", "from 1m to 30d"),
        ("[relay]\ntoken = 'old'", ":2", "new"),
        ("[relay]\nport = 0", ":2", "1024"),
        ("[relay]\nport = true", ":2", "1024"),
        ("[relay]\nport = '61000'", ":2", "1024"),
        ("[relay]\nport = 1e9", ":2", "1024"),
        ("[relay]\njoin_live = 1", ":2", "true or false"),
        ("[relay]\norigins = ['*']", ":2", "origins"),
        ("[relay]\norigins = ['https://*.example']", ":2", "without *"),
        ("[relay]\norigins = 'https://a.example'", ":2", "list"),
        ("[relay]\ndefault_account = 'nobody'", ":2", "names no account"),
        ("[poll]\nfactor = 0", ":2", "from 1 to 10"),
        ("[poll]\nfactor = nan", ":2", "number"),
        ("[poll]\njitter = -1", ":2", "from 0 to 0.9"),
        ("[poll]\njitter = '0.2'", ":2", "number"),
        ("[poll]\nfirst = '20s'\ncap='10s'", ":3", "not be less"),
        ("[cache]\nmax_bytes = '1KB'", ":2", "1MB"),
        ("[cache]\nmax_bytes = 10", ":2", "text"),
        ("[network]\nproxy = 'somewhere'", ":2", "address"),
        ("[network]\nca_file = '/nowhere/ca.pem'", ":2", "names no file"),
        ("[accounts.a]\nprovider = 'nobody'", ":2", "not known"),
        ("[accounts.a]\nwindow = 1", ":1", "needs a provider"),
        ("[accounts.'a b']\nprovider = 'openai'", ":1", "account name"),
        ("[accounts.a]\nprovider = 'preview'", ":2", "only one"),
        ("[accounts.preview]\nprovider = 'openai'", ":2", "only one"),
        ("[accounts.a]\nprovider = 'openai'\nkey = 'sk-1'", ":3", "use key_env"),
        ("[accounts.a]\nprovider = 'openai'\nkey_env = 'sk-not a name'", ":3", "name of an environment"),
        ("[accounts.a]\nprovider = 'openai'\nkey_env = 'A'\nkey_file = 'b'", ":1", "more than one"),
        ("[accounts.a]\nprovider = 'openai'\nwindow = 0", ":3", "window"),
        ("[accounts.a]\nprovider = 'openai'\nwindow = 'many'", ":3", "window"),
        ("[accounts.a]\nprovider = 'openai'\nwindow = {}", ":3", "window"),
        ("[accounts.a]\nprovider = 'openai'\nwindow = { m = true }", ":3", "window"),
        ("[accounts.a]\nprovider = 'openai'\nprice = { m = '1' }", ":3", "price a clip"),
        ("[accounts.a]\nprovider = 'openai'\ndaily_limit = '20'", ":3", "amount and a currency"),
        ("[accounts.a]\nprovider = 'openai'\nbase_url = 'http://api.example'", ":3", "loopback"),
        ("[accounts.a]\nprovider = 'openai'\nbase_url = 'https://u:p@api.example'", ":3", "name or password"),
        ("[accounts.a]\nprovider = 'openai'\nbase_url = 'ftp://api.example'", ":3", "https"),
        ("[accounts.a]\nprovider = 'openai'\nbase_url = 'http://127.0.0.1:/v1'", ":3", "plain address"),
        ("[accounts.a]\nprovider = 'openai'\nbase_url = 'https://api.example/?a=1'", ":3", "must not hold"),
        *(
            (f"[accounts.a]\nprovider = 'openai'\nbase_url = 'https://api.example{path}'", ":3", "must not hold a path")
            for path in ("/./v1", "/v2/../v1", "/v1/.", "/..", "//v1")
        ),
        ("[accounts.a]\nprovider = 'openai'\nallow_hosts = ['*']", ":3", "host names"),
        ("[accounts.a]\nprovider = 'openai'\nallow_hosts = ['10.0.0.1']", ":3", "host names"),
        ("[accounts]\na = 1", ":2", "must be a table"),
        ("[relay]\ntoken = 'new'\ntoken = 'keep'", ":3", "TOML"),
        ("relay = ", ":1", "TOML"),
        ("a = " + "[" * 5000, "", "TOML"),
    ],
)
def test_a_fault_is_told_with_its_line_and_what_is_right(tmp_path: Path, text: str, where: str, what: str) -> None:
    """
    A wrong setting is refused with the file, the line and what would be right.
    """
    error = refused(tmp_path, text)
    assert f"vidrelay.toml{where}" in error.message
    assert what in error.message


NUMBERS = {
    "relay": ("port", "dedupe_window", "stale_after"),
    "poll": ("first", "factor", "cap", "jitter", "not_found_grace"),
    "cache": ("max_bytes", "max_age", "min_free"),
    "accounts.a": ("window", "daily_limit"),
}
FLAGS = {
    "relay": ("join_live",),
    "poll": ("learned",),
    "network": ("fake_ip",),
    "accounts.a": ("private_network", "pass_through", "door_key"),
}
TEXTS = {
    "relay": ("token", "default_account", "origins"),
    "network": ("proxy", "ca_file"),
    "accounts.a": ("key_env", "key_file", "keyring", "base_url", "allow_hosts", "price", "dialect"),
}
ODD = ["0", "-1", "1e9", "true", "nan", "inf", '"5"', '"-5s"', '"nan"', "[]", "{}", "1979-05-27"]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(("section", "name"), [(section, name) for section, names in NUMBERS.items() for name in names])
def test_no_number_is_taken_out_of_its_range_or_in_another_type(
    tmp_path: Path, section: str, name: str, value: str
) -> None:
    """
    Neither 0 nor -1, a billion, a flag, no number at all, nor a number in quotes is taken; but jitter may be 0.
    """
    if (name, value) == ("jitter", "0"):
        return
    start = "provider = 'openai'\n" if section == "accounts.a" else ""
    error = refused(tmp_path, f"[{section}]\n{start}{name} = {value}")
    assert f"vidrelay.toml:{3 if start else 2}: {section}.{name}" in error.message


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        *(
            (section, name, value)
            for section, names in FLAGS.items()
            for name in names
            for value in ODD
            if value != "true"
        ),
        *((section, name, value) for section, names in TEXTS.items() for name in names for value in ODD[:6]),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_line(tmp_path: Path, section: str, name: str, value: str) -> None:
    """
    A flag is true or false and a text stands in quotes: nothing is taken for something else.
    """
    start = "provider = 'openai'\n" if section == "accounts.a" else ""
    error = refused(tmp_path, f"[{section}]\n{start}{name} = {value}")
    assert f"vidrelay.toml:{3 if start else 2}: {section}.{name}" in error.message


def test_every_setting_is_tried_with_odd_values(tmp_path: Path) -> None:
    """
    The lists above name each setting of each section but what an account is called and whose it is.
    """
    tried: dict[str, set[str]] = {"accounts.a": {"provider"}}
    for group in (NUMBERS, FLAGS, TEXTS):
        for section, names in group.items():
            tried.setdefault(section, set()).update(names)
    for section, names in tried.items():
        start = "provider = 'openai'\n" if section == "accounts.a" else ""
        hint = refused(tmp_path, f"[{section}]\n{start}zzz = 1").hint or ""
        assert set(hint.removeprefix("Known here: ").removesuffix(".").split(", ")) == names, section


def test_an_unset_number_never_reads_as_a_flag(tmp_path: Path) -> None:
    """
    `true` is not taken for a window of one.
    """
    assert "whole number" in refused(tmp_path, "[accounts.a]\nprovider='openai'\nwindow = true").message


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9/v1", "https://a.example"]
)
def test_a_loopback_base_url_may_be_plain_http(tmp_path: Path, base_url: str) -> None:
    """
    HTTP is taken for loopback addresses, and HTTPS for any host.
    """
    config = load(tmp_path, f"[accounts.a]\nprovider='openai'\nbase_url='{base_url}'")
    assert config.accounts[0].base_url == base_url


def test_a_private_base_url_may_be_plain_http_when_it_says_so(tmp_path: Path) -> None:
    """
    HTTP to a private address is taken where `private_network` is set.
    """
    text = "[accounts.a]\nprovider='openai'\nbase_url='http://192.168.1.9:8000'\nprivate_network=true"
    assert load(tmp_path, text).accounts[0].private_network


def test_the_only_account_is_the_default(tmp_path: Path) -> None:
    """
    A single configured account is the default without being named.
    """
    config = load(tmp_path, "[accounts.a]\nprovider='openai'\nbase_url='https://a.example'")
    assert config.policy.default_account == "a"


def test_of_two_accounts_none_is_the_default(tmp_path: Path) -> None:
    """
    Among two accounts no default is guessed.
    """
    config = load(tmp_path, "[accounts.a]\nprovider='openai'\n[accounts.b]\nprovider='openai'")
    assert config.policy.default_account is None


def test_a_known_variable_makes_an_account_and_the_default(tmp_path: Path) -> None:
    """
    A provider's variable makes an account of its name, with its key there, as the default.
    """
    config = load(tmp_path, "", {"FAL_API_KEY": "k-1"})
    assert config.accounts[0].name == "fal"
    assert config.accounts[0].key == KeySource(kind="env", name="FAL_API_KEY")
    assert config.policy.default_account == "fal"


def test_a_known_variable_adds_nothing_beside_an_account_of_that_provider(tmp_path: Path) -> None:
    """
    Where an account of the provider is configured, its variable makes no second one.
    """
    text = "[accounts.mine]\nprovider='fal'\nkey_env='OTHER'"
    config = load(tmp_path, text, {"FAL_KEY": "k-1"})
    assert [account.name for account in config.accounts] == ["mine", "preview"]


def test_an_openai_key_in_the_environment_makes_no_account(tmp_path: Path) -> None:
    """
    `OPENAI_API_KEY`, which says no base URL, leaves preview as the default.
    """
    config = load(tmp_path, "", {"OPENAI_API_KEY": "sk-1"})
    assert config.policy.default_account == "preview"


def test_our_own_token_in_a_providers_variable_is_refused(tmp_path: Path) -> None:
    """
    A relay's token in place of a key is refused by the variable's name, and not told.
    """
    error = refused(tmp_path, "", {"FAL_KEY": "vrl_abc"})
    assert "FAL_KEY" in error.message
    assert "abc" not in error.message


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_refused_with_the_fix(tmp_path: Path, mode: int) -> None:
    """
    A file that group or others may write is refused, and the hint is the command that mends it.
    """
    path = tmp_path / "vidrelay.toml"
    path.write_text("")
    path.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        load_config(path, must_exist=True, environ={}, key_envs=PROVIDERS)
    assert caught.value.hint == f"chmod go-w '{path}'"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners are POSIX")
@pytest.mark.parametrize(("owner", "is_trusted"), [(0, True), (1, True), (2, False)])
def test_a_file_of_another_user_is_refused_with_the_fix(tmp_path: Path, owner: int, is_trusted: bool) -> None:
    """
    It is this user's or the administrator's; the hint is the command that mends it.
    """
    owners = (0, os.getuid(), os.getuid() + 1)
    facts = os.stat_result((0o100600, 1, 1, 1, owners[owner], 0, 10, 0, 0, 0))
    if is_trusted:
        places._check(tmp_path / "vidrelay.toml", facts, max_bytes=100, secret=False)
        return
    with pytest.raises(ConfigError, match="another user") as caught:
        places._check(tmp_path / "vidrelay.toml", facts, max_bytes=100, secret=False)
    assert caught.value.hint == f"chown $(id -un) '{tmp_path}/vidrelay.toml'"


def test_a_file_in_the_working_directory_is_not_the_configuration(tmp_path: Path) -> None:
    """
    Whoever unpacks a stranger's archive and works in it gets none of its settings.
    """
    (tmp_path / "vidrelay.toml").write_text("[relay]\nport = 61000\n")
    with contextlib.chdir(tmp_path):
        path, named = config_file(None, {})
    assert (path.is_relative_to(tmp_path), path.is_absolute(), named) == (False, True, False)


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    """
    A FIFO in place of the file is refused without waiting for a writer.
    """
    path = tmp_path / "vidrelay.toml"
    os.mkfifo(path, 0o600)
    with pytest.raises(ConfigError, match="regular file"):
        load_config(path, must_exist=True, environ={}, key_envs=PROVIDERS)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    """
    A directory in place of the file is a configuration error.
    """
    with pytest.raises(ConfigError, match=r"regular file|cannot be opened"):
        load_config(tmp_path, must_exist=True, environ={}, key_envs=PROVIDERS)


def test_a_file_over_256_kb_is_refused(tmp_path: Path) -> None:
    """
    A file of 256 KB is read, and one of a byte more is refused.
    """
    assert "256 KB" in refused(tmp_path, "#" * (256 * 1024 + 1)).message
    load(tmp_path, "#" * (256 * 1024))


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    """
    The line of the first byte that is no UTF-8 is told.
    """
    path = tmp_path / "vidrelay.toml"
    path.write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(ConfigError, match=r"vidrelay\.toml:2: not UTF-8"):
        load_config(path, must_exist=True, environ={}, key_envs=PROVIDERS)


def test_places_follow_option_then_variable_then_platform(tmp_path: Path) -> None:
    """
    An option wins over a variable, and that over the platform's place, for file and state.
    """
    environ = {"VIDRELAY_CONFIG": "/e/c.toml", "VIDRELAY_STATE_DIR": "/e/state"}
    assert config_file("/o/c.toml", environ) == (Path("/o/c.toml"), True)
    assert config_file(None, environ) == (Path("/e/c.toml"), True)
    assert config_file(None, {})[1] is False
    assert config_file(None, {})[0].name == "vidrelay.toml"
    assert state_directory("/o/state", environ) == Path("/o/state")
    assert state_directory(None, environ) == Path("/e/state")
    assert state_directory(None, {}).name == "vidrelay"


def test_a_key_is_trimmed_of_outer_blanks() -> None:
    """
    Blanks and line ends around a key are dropped, and no source means no key.
    """
    source = KeySource(kind="env", name="K")
    assert read_key(source, account="a", environ={"K": "  sk-1\r\n"}) == "sk-1"
    assert read_key(None, account="a", environ={}) is None


@pytest.mark.parametrize(
    "key", ["sk\n1", "sk 1", '"sk"', "'sk'", "“sk”", "sk\u200b1", "sk\u20601", "sk\x00", "vrl_x", "ключ", "sk\ufeff1"]
)
def test_what_cannot_be_a_key_is_refused_and_never_told(key: str) -> None:
    """
    A key with blanks, quotes, invisible or foreign characters is refused and not repeated.
    """
    with pytest.raises(ConfigError) as caught:
        read_key(KeySource(kind="env", name="K"), account="a", environ={"K": key})
    assert key not in caught.value.message
    assert key_fault(key)


def test_a_missing_key_says_where_it_was_looked_for() -> None:
    """
    The error of a missing key names its environment variable.
    """
    with pytest.raises(ConfigError, match="environment variable K is empty or not there"):
        read_key(KeySource(kind="env", name="K"), account="a", environ={})


def test_a_key_file_is_read_and_checked(tmp_path: Path) -> None:
    """
    A key file is read when private, refused when others may read it, and told when missing.
    """
    path = tmp_path / "key"
    source = KeySource(kind="file", name=str(path))
    with pytest.raises(ConfigError, match="is missing"):
        read_key(source, account="a", environ={})
    path.write_text("sk-1\n")
    path.chmod(0o600)
    assert read_key(source, account="a", environ={}) == "sk-1"
    path.chmod(0o644)
    if os.getuid() != 0:
        with pytest.raises(ConfigError, match="read by other users"):
            read_key(source, account="a", environ={})


def test_a_keyring_that_is_not_installed_says_how_to_get_it() -> None:
    """
    Without the keyring package the hint is the command that installs it.
    """
    try:
        import keyring  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigError) as caught:
            read_key(KeySource(kind="keyring", name="vidrelay"), account="a", environ={})
        assert caught.value.hint == 'pip install "vidrelay[keyring]"'


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1.5h", 5400), ("250ms", 0.25), ("7d", 604800), ("0s", 0), ("2m", 120)]
)
def test_durations(text: str, seconds: float) -> None:
    """
    A number with its unit is read as that span of time.
    """
    assert duration(text) == timedelta(seconds=seconds)


def test_durations_are_said_as_they_are_read() -> None:
    """
    A duration that is said in words reads back as the same duration.
    """
    for text in ("30s", "90s", "2m", "2h", "7d"):
        assert duration(said(duration(text))) == duration(text)


@pytest.mark.parametrize(("text", "count"), [("10GB", 10**10), ("1 MiB", 1024**2), ("0.5KB", 500), ("1TB", 10**12)])
def test_sizes(text: str, count: int) -> None:
    """
    Decimal and binary units of bytes are read as exact counts.
    """
    assert size(text) == count


# The page


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("relay", "[relay]\nzzz = 1"),
        ("poll", "[poll]\nzzz = 1"),
        ("cache", "[cache]\nzzz = 1"),
        ("network", "[network]\nzzz = 1"),
        ("accounts.NAME", "[accounts.a]\nprovider='openai'\nzzz = 1"),
    ],
)
def test_every_setting_is_on_the_page_and_no_other(tmp_path: Path, section: str, text: str) -> None:
    """
    Each section of the reference has the settings that the code knows, and no other.
    """
    page = (Path(__file__).parents[1] / "docs/reference/configuration.md").read_text(encoding="utf-8")
    known = (refused(tmp_path, text).hint or "").removeprefix("Known here: ").removesuffix(".").split(", ")
    part = page.split(f"## `[{section}]`")[1].split("\n## ")[0]
    written = re.findall(r"^\| `([a-z_]+)` \|", part, re.MULTILINE)
    assert sorted(written) == sorted(known)
