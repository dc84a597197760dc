"""
What a process has loaded once it is ready: what most lives do not need, and what is slow to load, must not be there.
Time is not measured, for it depends on the machine.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

# Runs a command in a fresh interpreter until it says its first line, then tells how often it was asked which packages
# are installed, how often garbage was looked for, whether it will be, and all that is loaded.
COMMAND = """
import gc, io, os, sys

asked = 0

class Counting:
    def find_spec(self, *_):
        return None

    def find_distributions(self, context):
        global asked
        asked += context.name is None
        return ()

class Told(io.StringIO):
    def write(self, text):
        looked = sum(each["collections"] for each in gc.get_stats())
        os.write(1, "\\n".join([f"{asked} {looked} {gc.isenabled():d}", *sys.modules]).encode())
        os._exit(0)

sys.meta_path.append(Counting())
sys.argv[0] = "vidrelay"
sys.stdout = Told()
from vidrelay.cli.main import main
sys.exit(main())
"""
IMPORTS = "import sys; [__import__(name) for name in sys.argv[1:]]; print('0 0 1', *sys.modules, sep='\\n')"

WEBSOCKETS = {"wsproto", "uvicorn.protocols.websockets.wsproto_impl", "vidrelay.transport.streams"}
PICTURES = {"av", "PIL", "vidrelay.providers.preview.render"}
CLIENT = {"httpx2", "vidrelay.client.calls"}
PARSER = {"typer", "rich", "pydantic", "vidrelay.cli.commands"}
SCHEDULER = {"vidrelay.core.lifecycle", "vidrelay.core.adapter", "vidrelay.core.door", "vidrelay.scheduler.relay"}
CERTIFICATES = {"cryptography", "certifi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """
    How often the installed packages were `asked` for and garbage was `looked` for; whether it is `heedful` of garbage
    now; and which modules are loaded.
    """

    asked: int
    looked: int
    heedful: bool
    modules: set[str]


def fresh(program: str, *arguments: str) -> Started:
    """
    A program in an interpreter of its own, at the moment at which it is ready.
    """
    # No account by a variable, and no tool that watches and loads modules of its own.
    kept = ("PATH", "HOME", "PYTHONPATH", "SYSTEMROOT")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    told = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    figures, *modules = told.stdout.split("\n")
    asked, looked, heedful = map(int, figures.split())
    return Started(asked=asked, looked=looked, heedful=bool(heedful), modules=set(modules))


def served(place: Path, provider: str, *lines: str) -> Started:
    """
    A relay with one account beside the built-in renderer, none where no provider is named. Without more lines it has
    its key in a file.
    """
    key, config = place / "key", place / "vidrelay.toml"
    key.write_text("secret:secret")
    rest = lines or (f'key_file = "{key}"',)
    config.write_text("\n".join(["[accounts.one]", f'provider = "{provider}"', *rest] if provider else []))
    for file in (key, config):
        file.chmod(0o600)
    return fresh(COMMAND, "serve", "--state-dir", str(place / "state"), "--config", str(config))


def test_a_relay_that_previews_loads_no_parser_client_engine_or_picture_library(tmp_path: Path) -> None:
    """
    What `vidrelay serve` needs to listen is loaded, and no more; the pictures are a child's matter.
    """
    modules = served(tmp_path, "").modules
    assert "vidrelay.server.serve" in modules
    unneeded = {"httpcore2", "h11", "h2", "vidrelay.transport.http"}
    assert modules & (unneeded | WEBSOCKETS | PICTURES | CLIENT | PARSER | CERTIFICATES) == set()


@pytest.mark.parametrize("provider", ["runway", "kling"])
def test_a_relay_loads_what_speaks_websockets_for_those_only_who_have_them(tmp_path: Path, provider: str) -> None:
    """
    An account at a provider without websockets, whose door has none either, does not wait for them; what it pays
    through is there before the relay listens.
    """
    modules = served(tmp_path, provider).modules
    assert {"vidrelay.transport.http", "vidrelay.transport.download", "vidrelay.scheduler.submitting"} <= modules
    assert modules & (WEBSOCKETS | PICTURES | CLIENT | PARSER) == set()


def test_a_relay_that_has_websockets_loads_what_speaks_them_before_it_listens(tmp_path: Path) -> None:
    """
    A relay that runs while its files are exchanged does not come to load them then.
    """
    started = served(tmp_path, "comfyui", 'base_url = "http://127.0.0.1:8188"', "private_network = true")
    assert started.modules >= WEBSOCKETS


def test_a_relay_asks_once_which_packages_are_installed(tmp_path: Path) -> None:
    """
    Each asking reads a file of every installed package, and each account has several questions.
    """
    assert served(tmp_path, "runway").asked == 1


def test_a_relay_looks_for_no_garbage_before_it_listens_and_does_then(tmp_path: Path) -> None:
    """
    What is loaded is none, and what the calls leave behind is some. The interpreter's own start looks a few times too.
    """
    started = served(tmp_path, "")
    assert (started.looked < 60, started.heedful) == (True, True)


def test_the_pretend_provider_loads_no_parser_and_nothing_of_the_scheduler() -> None:
    """
    `vidrelay simulate` loads what it answers with, and of its words those of its dialect.
    """
    modules = fresh(COMMAND, "simulate", "--dialect", "runway").modules
    assert "vidrelay.simulator.words.runway" in modules
    others = {"vidrelay.simulator.words.openai"}
    assert modules & (others | WEBSOCKETS | PICTURES | CLIENT | PARSER | SCHEDULER) == set()


def test_a_command_loads_neither_the_settings_nor_the_scheduler() -> None:
    """
    A command that asks a running relay loads a client and the way to find the relay.
    """
    rooms = ("vidrelay.cli.commands", "vidrelay.cli.tasks", "vidrelay.config.places", "vidrelay.client.calls")
    modules = fresh(IMPORTS, *rooms).modules
    assert modules >= set(rooms)
    unneeded = {"vidrelay.config.settings", "vidrelay.core.fingerprint", "rich", "tomllib", "platformdirs"}
    assert modules & (unneeded | WEBSOCKETS | PICTURES | SCHEDULER | CERTIFICATES) == set()
