"""
`vidrelay env` and `vidrelay run` as people use them: in a real shell, around real commands.
"""

import asyncio
import functools
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vidrelay.cli.child import AWAKE_SECONDS, keep_awake
from vidrelay.cli.pointing import Shell, written
from vidrelay.cli.variables import Variables, variables
from vidrelay.client.beacon import Beacon, read_beacon
from vidrelay.core.errors import RelayUnavailable
from vidrelay.core.proof import door_key
from vidrelay.providers.registry import BUILT_IN, key_envs
from vidrelay.providers.sdks import SDKS, sdk_of
from vidrelay.testing.clock import FakeClock

CONFIG = """
[relay]
default_account = "films"
[accounts.films]
provider = "runway"
key_file = "runway.key"
[accounts.other-films]
provider = "runway"
key_file = "runway.key"
[accounts.gate]
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
[accounts.clips]
provider = "fal"
key_file = "runway.key"
[accounts.signed]
provider = "tencent"
key_file = "pair.key"
"""
KEYS = {
    "RUNWAYML_API_SECRET": "a-real-key",
    "FAL_KEY_ID": "a-real-key",
    "FAL_KEY_SECRET": "a-real-key",
    "LUMAAI_API_KEY": "of-nobody-here",
    "UNTOUCHED": 'it\'s "$HOME" `x` \\ and\nmore',
}
SHOWN = "import json, os, sys; json.dump(dict(os.environ), sys.stdout)"

process = pytest.mark.process


class Place:
    """
    A folder with a configuration, a state directory, and an environment without the machine's own settings.
    """

    def __init__(self, folder: Path, config: str) -> None:
        self.folder, self.state = folder, folder / "state"
        (folder / "runway.key").write_text("a-real-key")
        (folder / "pair.key").write_text("an-id:a-secret")
        (folder / "vidrelay.toml").write_text(config)
        for path in folder.iterdir():
            path.chmod(0o600)
        told = {name for names in key_envs().values() for one in names for name in one.split("+")}
        usual = {name: value for name, value in os.environ.items() if not name.startswith("VIDRELAY_")}
        self.bare = {name: value for name, value in usual.items() if name not in told} | {
            "VIDRELAY_CONFIG": str(folder / "vidrelay.toml"),
            "VIDRELAY_STATE_DIR": str(self.state),
            "PYTHONUTF8": "1",
        }
        self.environ = self.bare | KEYS

    @property
    def beacon(self) -> Beacon:
        found = read_beacon(self.state)
        assert found is not None
        return found

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "vidrelay", *arguments]

    def run(self, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
        return self.run_as_is(self.command(*arguments), **options)

    def run_as_is(self, command: list[str], **options) -> subprocess.CompletedProcess[str]:
        settings = {"env": self.environ, "cwd": self.folder, "timeout": 60, "text": True}
        if "input" not in options:
            settings["stdin"] = subprocess.DEVNULL
        return subprocess.run(command, check=False, capture_output=True, **settings | options)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """
    A place where a relay runs.
    """
    found = Place(tmp_path_factory.mktemp("pointing"), CONFIG)
    with subprocess.Popen(
        found.command("serve"), env=found.bare, cwd=found.folder, stdout=subprocess.PIPE, text=True
    ) as relay:
        try:
            assert "listening on" in relay.stdout.readline()
            yield found
        finally:
            relay.terminate()
            relay.communicate(timeout=60)


def sh(place: Place, script: str) -> subprocess.CompletedProcess[str]:
    """
    A script in a real shell, where `vidrelay` is the command under test.
    """
    return place.run_as_is(["sh", "-c", f'vidrelay() {{ "{sys.executable}" -m vidrelay "$@"; }}; {script}'])


# env


@process
def test_a_real_shell_that_evaluates_it_has_addresses_and_keys(place: Place) -> None:
    """
    Of every provider with an account and a door, by the names that their SDKs read.
    """
    found = sh(place, f"""eval "$(vidrelay env)"; exec "{sys.executable}" -c '{SHOWN}'""")
    told, beacon = json.loads(found.stdout), place.beacon
    assert told["RUNWAYML_BASE_URL"] == f"http://127.0.0.1:{beacon.port}/runway"
    assert told["OPENAI_BASE_URL"] == f"http://127.0.0.1:{beacon.port}/openai/v1"
    assert told["FAL_QUEUE_RUN_HOST"] == f"127.0.0.1:{beacon.tls_port}/fal"
    assert told["FAL_RUN_HOST"] == f"127.0.0.1:{beacon.tls_port}/fal/run"
    assert {told[name] for name in ("RUNWAYML_API_SECRET", "OPENAI_API_KEY", "FAL_KEY")} == {beacon.token}
    assert Path(told["SSL_CERT_FILE"]).parent == place.state / "trust"
    assert "FAL_KEY_ID" not in told
    assert told["LUMAAI_API_KEY"] == "of-nobody-here"
    assert "LUMAAI_BASE_URL" not in told
    assert told["UNTOUCHED"] == KEYS["UNTOUCHED"]
    assert found.stderr == ""


@process
def test_a_shell_that_joins_the_lines_has_them_as_well(place: Place) -> None:
    """
    Without quotes the notes become one long comment, behind everything else.
    """
    found = sh(place, 'eval $(vidrelay env); echo "$RUNWAYML_BASE_URL $FAL_KEY"')
    assert found.stdout == f"http://127.0.0.1:{place.beacon.port}/runway {place.beacon.token}\n"


@process
def test_one_provider_or_one_account_can_be_named(place: Place) -> None:
    """
    A provider's door leads to its first account; an account has a door of its own name.
    """
    for name in ("runway", "films", "other-films"):
        told = json.loads(place.run("env", name, "--json").stdout)
        assert told["set"]["RUNWAYML_BASE_URL"].endswith(f"/{name}")
        assert set(told["set"]) == {"RUNWAYML_BASE_URL", "RUNWAYML_API_SECRET", "NO_PROXY", "no_proxy"}


@process
def test_what_the_program_must_say_itself_is_noted(place: Place) -> None:
    """
    As a comment that names the provider, and for machines under `notes`.
    """
    lines = place.run("env", "fal").stdout.splitlines()
    assert [line for line in lines if line.startswith("#")] == lines[-1:]
    note = json.loads(place.run("env", "fal", "--json").stdout)["notes"]["fal"]
    assert lines[-1] == f"# fal: {note}"
    assert f"https://127.0.0.1:{place.beacon.tls_port}/fal" in note


@process
@pytest.mark.parametrize("name", ["tencent", "signed", "luma", "nobody", "preview"])
def test_what_has_no_door_or_no_account_here_is_refused(place: Place, name: str) -> None:
    """
    Exit status 2, the reason on stderr, and nothing that a shell would evaluate.
    """
    for command in (("env", name), ("run", "--only", name, "--", "echo", "it ran")):
        found = place.run(*command)
        assert (found.returncode, found.stdout) == (2, ""), found
        assert found.stderr.startswith("vidrelay: ")


@process
def test_addresses_that_no_proxy_is_asked_for_gain_ours(place: Place) -> None:
    """
    And lose none.
    """
    for before, after in {"": "127.0.0.1", "a.example, b.example": "a.example,b.example,127.0.0.1", "*": "*"}.items():
        environ = place.environ | {"NO_PROXY": before, "no_proxy": ""}
        told = json.loads(place.run("env", "runway", "--json", env=environ).stdout)["set"]
        assert (told["NO_PROXY"], told["no_proxy"]) == (after, after)


ODD = {"A": 'it\'s "$HOME" `x` \\ ’ %d', "B": "plain"}


def test_values_reach_a_shell_as_they_are() -> None:
    """
    Whatever a shell would make of them.
    """
    found = "\n".join(written(Variables(values=ODD, unset=["C"], notes={"d": "e"}), Shell.SH))
    script = f"""{found}\nexec "{sys.executable}" -c '{SHOWN}'"""
    told = json.loads(subprocess.run(["sh", "-c", script], env={"C": "c"}, capture_output=True, check=True).stdout)
    assert {name: told[name] for name in ODD} == ODD
    assert "C" not in told


def test_fish_and_powershell_have_their_own_quotes() -> None:
    """
    As their manuals have it.
    """
    found = Variables(values={"A": "it's \\ ’"}, unset=["C"], notes={"d": "e"})
    assert written(found, Shell.FISH) == [r"set -gx A 'it\'s \\ ’'", "set -e C", "# d: e"]
    told = ["$env:A = 'it''s \\ ’’'", "Remove-Item Env:C -ErrorAction SilentlyContinue", "# d: e"]
    assert written(found, Shell.POWERSHELL) == told


def test_values_reach_fish_as_they_are(needs: Callable[[str], None]) -> None:
    """
    Whatever it would make of them.
    """
    needs("fish")
    script = "\n".join([*written(Variables(values=ODD), Shell.FISH), f"{sys.executable} -c '{SHOWN}'"])
    told = json.loads(subprocess.run(["fish", "-c", script], capture_output=True, check=True).stdout)
    assert {name: told[name] for name in ODD} == ODD


def test_every_provider_with_a_door_says_how_its_sdk_is_pointed_there() -> None:
    """
    By variables or by what the program must say; and nothing is said of providers that are not there.
    """
    assert set(SDKS) <= {one.name for one in BUILT_IN}
    for one in BUILT_IN:
        sdk = sdk_of(one.name)
        assert (sdk is None) == (one.door is None)
        if sdk is not None:
            assert sdk.bases or sdk.hosts or sdk.code
            # The key variables that make an account are those that an SDK reads: each is replaced or taken away.
            told = {name for names in one.key_envs for name in names.split("+")}
            assert told <= {*sdk.keys, *sdk.unset}


class Answering:
    """
    Stands for a client of a relay with these accounts.
    """

    def __init__(self, *providers: str, tls_port: int | None = None, door_key: bool = False) -> None:
        told = {"token": "vrl_" + "a" * 40, "pid": 1, "version": "0", "instance": "i", "started_at": "now"}
        self.beacon = Beacon(port=61000, tls_port=tls_port, **told)
        self._providers = providers
        self._door_key = door_key

    async def accounts(self) -> list[dict[str, object]]:
        door_key = self._door_key
        return [{"name": f"my-{one}", "provider": one, "doorKey": door_key} for one in self._providers]


async def test_of_two_that_share_a_variable_the_second_is_told_of(tmp_path: Path) -> None:
    """
    An SDK can be at one address only; what the program must say for the other one is noted.
    """
    found = await variables(Answering("openai", "new-api"), tmp_path, {}, only=[])
    assert found.values["OPENAI_BASE_URL"] == "http://127.0.0.1:61000/openai/v1"
    assert 'base_url="http://127.0.0.1:61000/new-api/v1"' in found.notes["new-api"]


@pytest.mark.parametrize("name", ["comfyui", "my-comfyui"])
async def test_an_address_with_the_doors_own_key_is_told(tmp_path: Path, name: str) -> None:
    """
    ComfyUI's programs send no key. Whichever name the door has, the key is that of the account behind it.
    """
    client = Answering("openai", "comfyui")
    found = await variables(client, tmp_path, {}, only=[name])
    key = door_key(client.beacon.token, account="my-comfyui")
    assert found.notes[name].endswith(f"then it is http://127.0.0.1:61000/{name}/~{key}")
    client = Answering("openai", "comfyui", door_key=True)
    found = await variables(client, tmp_path, {}, only=[name])
    assert found.notes[name].startswith(f"its server is http://127.0.0.1:61000/{name}/~{key};")
    assert "door_key" not in found.notes[name]


async def test_a_relay_that_speaks_no_https_is_told_of(tmp_path: Path) -> None:
    """
    It was started by an earlier version; another provider's SDK can do without.
    """
    with pytest.raises(RelayUnavailable, match="fal"):
        await variables(Answering("fal", "runway"), tmp_path, {}, only=[])
    assert await variables(Answering("fal", "runway"), tmp_path, {}, only=["runway"])


# run


@process
def test_a_command_has_the_token_in_place_of_the_keys_and_all_else_as_it_was(place: Place) -> None:
    """
    The very environment of `env`, for the child only.
    """
    found = place.run("run", "--", sys.executable, "-c", SHOWN)
    told = json.loads(found.stdout)
    printed = json.loads(place.run("env", "--json").stdout)
    assert {name: told[name] for name in printed["set"]} == printed["set"]
    assert "a-real-key" not in told.values()
    changed = {*printed["set"], *printed["unset"]}
    # What Python itself sets for its children in this locale.
    assert {name: value for name, value in told.items() if name not in changed | {"LC_CTYPE"}} == {
        name: value for name, value in place.environ.items() if name not in changed | {"LC_CTYPE"}
    }


@process
def test_only_those_that_are_named_are_pointed(place: Place) -> None:
    """
    Every other variable is left alone.
    """
    found = place.run("run", "--only", "gate", "--", sys.executable, "-c", SHOWN)
    told = json.loads(found.stdout)
    assert told["OPENAI_BASE_URL"].endswith("/gate/v1")
    assert told["RUNWAYML_API_SECRET"] == "a-real-key"
    assert "FAL_KEY" not in told


@process
def test_what_it_reads_and_writes_is_not_touched(place: Place) -> None:
    """
    Byte for byte, and nothing of ours between it.
    """
    data = bytes(range(256)) * 1000
    copying = "import sys, os; d = sys.stdin.buffer.read(); os.write(2, d[:1000]); sys.stdout.buffer.write(d)"
    found = place.run("run", "--", sys.executable, "-c", copying, input=data, text=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, data, data[:1000])


@process
def test_its_exit_status_is_passed_on(place: Place) -> None:
    """
    As a shell tells it.
    """
    not_a_program = place.folder / "not-a-program"
    not_a_program.write_text("x")
    for command, status in {
        ("sh", "-c", "exit 7"): 7,
        ("true",): 0,
        ("sh", "-c", "kill -TERM $$"): 143,
        ("no-such-command-here",): 127,
        (str(not_a_program),): 126,
        (str(place.folder),): 126,
    }.items():
        found = place.run("run", "--", *command)
        assert (found.returncode, found.stdout) == (status, ""), command
        assert bool(found.stderr) == (status in (126, 127))


@process
def test_its_own_options_are_its_own(place: Place) -> None:
    """
    With `--` before it and without, even those that vidrelay has as well.
    """
    words = ["-x", "--config", "c", "--only=d", "--", "--state-dir", "e"]
    for before in (["--"], []):
        found = place.run("run", *before, "echo", *words)
        assert found.stdout == " ".join(words) + "\n"
    assert place.run("run").returncode == 2
    assert place.run("run", "--").returncode == 2


@process
def test_without_a_door_nothing_is_run(tmp_path: Path) -> None:
    """
    Exit status 2, for the command would pay past the relay; and 3 where no relay can run.
    """
    bare = Place(tmp_path, "")
    found = bare.run("run", "--", "echo", "it ran", env=bare.bare)
    assert (found.returncode, found.stdout) == (2, "")
    os.kill(bare.beacon.pid, signal.SIGTERM)
    blocked = bare.bare | {"VIDRELAY_STATE_DIR": str(tmp_path / "vidrelay.toml")}
    found = bare.run("run", "--", "echo", "it ran", env=blocked)
    assert (found.returncode, found.stdout) == (3, "")


@process
def test_a_relay_is_started_with_the_real_keys_where_none_runs(tmp_path: Path) -> None:
    """
    It makes its account of the variable that the command then has no more.
    """
    place = Place(tmp_path, "")
    environ = place.bare | {"RUNWAYML_API_SECRET": "a-real-key"}
    found = place.run("run", "--", sys.executable, "-c", SHOWN, env=environ)
    try:
        told = json.loads(found.stdout)
        assert told["RUNWAYML_API_SECRET"] == place.beacon.token
        assert told["RUNWAYML_BASE_URL"] == f"http://127.0.0.1:{place.beacon.port}/runway"
        assert place.run("env", env=environ).stderr.startswith("This relay leaves when idle")
    finally:
        os.kill(place.beacon.pid, signal.SIGTERM)


CATCHING = """
import os, signal, sys, time
caught = []
signal.signal(signal.{name}, lambda number, _: caught.append(number))
print("ready", flush=True)
while not caught:
    time.sleep(0.02)
time.sleep(0.5)
print("caught", len(caught), flush=True)
sys.exit(42)
"""


@process
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_is_passed_on_once(place: Place, name: str) -> None:
    """
    And the command decides what becomes of it.
    """
    command = place.command("run", "--", sys.executable, "-c", CATCHING.format(name=name))
    number = signal.Signals[name]
    # What whoever runs the tests ignores (nohup: a hang-up) is ignored by what they start, and not passed on then.
    heeded = functools.partial(signal.signal, number, signal.SIG_DFL)
    options = {"env": place.environ, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, preexec_fn=heeded, **options) as child:  # noqa: PLW1509 no threads of ours
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(number)
            rest, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (rest, child.returncode) == ("caught 1\n", 42)


LEAVING = """
import os, signal, sys, time
if sys.argv[1] == "leaves":
    os.setpgrp()
caught = []
signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
print("ready", flush=True)
time.sleep(1)
print("caught", len(caught), flush=True)
sys.exit(42)
"""


@process
@pytest.mark.parametrize(("stays", "caught"), [("stays", 1), ("leaves", 0)])
def test_ctrl_c_on_a_terminal_reaches_it_as_if_it_ran_alone(place: Place, stays: str, caught: int) -> None:
    """
    By the terminal and not once more by us: one that has left the terminal's group is not told.
    """
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        command = place.command("run", "--", sys.executable, "-c", LEAVING, stays)
        os.execve(command[0], command, place.environ)
    seen, typed, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                break
        if not typed and b"ready" in seen:
            typed = True
            os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert f"caught {caught}".encode() in seen
    assert os.waitstatus_to_exitcode(status) == 42


FETCHING = """
import os, urllib.error, urllib.request
try:
    urllib.request.urlopen("https://" + os.environ["FAL_QUEUE_RUN_HOST"] + "/a/b/requests/c/status")
except urllib.error.HTTPError as error:
    print(error.code)
except urllib.error.URLError as error:
    print(type(error.reason).__name__)
"""


@process
def test_the_certificate_is_trusted_in_the_command_and_nowhere_else(place: Place) -> None:
    """
    Python's own client speaks https with the relay there; without the variable it does not trust it.
    """
    within = place.run("run", "--", sys.executable, "-c", FETCHING)
    assert within.stdout == "403\n"
    host = f"127.0.0.1:{place.beacon.tls_port}/fal"
    without = place.run_as_is([sys.executable, "-c", FETCHING], env=place.environ | {"FAL_QUEUE_RUN_HOST": host})
    assert without.stdout == "SSLCertVerificationError\n"


class Reached:
    """
    Stands for a client, whose relay leaves when idle, fails once, and then is another one.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.beacon = self._of(1)

    def _of(self, port: int, *, idle_exit: bool = True) -> Beacon:
        told = {"token": "vrl_" + "a" * 40, "pid": 1, "version": "0", "instance": "i", "started_at": "now"}
        return Beacon(port=port, idle_exit=idle_exit, **told)

    async def health(self) -> None:
        self.asked += 1
        if self.asked == 2:
            raise RelayUnavailable
        if self.asked == 3:
            self.beacon = self._of(2)
        if self.asked == 4:
            self.beacon = self._of(2, idle_exit=False)


async def test_a_relay_that_leaves_when_idle_is_asked_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Also after it could not be reached; that it has another address is said once. One that stays is left alone.
    """
    clock, client = FakeClock(), Reached()
    work = asyncio.get_running_loop().create_task(keep_awake(client, clock))
    await clock.settle()
    for _ in range(6):
        await clock.advance(AWAKE_SECONDS)
    assert work.done()
    assert client.asked == 4
    assert capsys.readouterr().err.count("another address") == 1
