"""
Runs an official SDK, unmodified and in its own environment, against the pretend provider in its words, directly or
through a relay's door.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from vidrelay.core.proof import door_key
from vidrelay.simulator.engine import Job
from vidrelay.testing.process import relay_process
from vidrelay.testing.simulator import running_simulator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 120
"""The time that a program may take, its start included."""
PACE = 'first = "0.1s"\ncap = "0.3s"\nnot_found_grace = "1s"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """
    A program that came to its end: the JSON object that it printed, and what the pretend provider saw meanwhile.
    """

    printed: dict[str, Any]
    ledger: dict[str, Any]
    jobs: list[Job]
    tasks: list[dict[str, Any]] = field(default_factory=list)
    """The relay's tasks, oldest first, where it ran through a door."""


RunSdk = Callable[..., Awaitable[Ran]]


def python_of(environment: str) -> Path:
    """
    The Python of an environment; without it the test is skipped, and fails where CI=true.
    """
    # Not resolved: the link is what tells Python that it is in an environment.
    python = Path(os.environ.get("VIDRELAY_SDKS") or ROOT / ".venv-sdks").absolute() / environment / "bin" / "python"
    if not python.exists():
        told = f"the SDK environment {environment!r} is missing: `make sdks` makes it"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return python


@pytest.fixture
def run_sdk(tmp_path: Path) -> RunSdk:
    """
    A function that runs a program of `tests/sdks/programs` against a simulator on loopback, and gives a `Ran`.

    `await run_sdk("openai_sync", dialect="openai", path="/v1", key="right")`: the program is started with the base
    address `http://127.0.0.1:PORT/v1` and further positional arguments, and prints one JSON object as its last line.

    - `dialect`: whose words the simulator speaks; further keyword arguments are its options (`key`, `run_seconds`,
      `window`, ...), `armed` its faults.
    - `environment`: whose Python runs it: `main` (default), `genai3` or `zhipuai`.
    - `environ`: environment variables of the program; `{base}` and `{host}` in them are filled in. It has no others but
      the search path, an empty home and NO_PROXY, so that no proxy and no key of this machine reaches it.

    A program that ends otherwise than with 0, or is not done within 120 s, fails the test with what it said.
    """

    async def run(
        program: str,
        *arguments: str,
        dialect: str,
        path: str = "",
        environment: str = "main",
        environ: Mapping[str, str] | None = None,
        armed: tuple[str, ...] = (),
        **options: Any,
    ) -> Ran:
        python = python_of(environment)
        async with running_simulator(dialect=dialect, **options) as simulator:
            simulator.arm(*armed)
            host = f"127.0.0.1:{simulator.port}"
            base = f"http://{host}{path}"
            said = await _run(
                [str(python), str(HERE / "programs" / f"{program}.py"), base, *arguments],
                {name: value.format(base=base, host=host) for name, value in (environ or {}).items()},
                tmp_path,
            )
            return Ran(printed=said, ledger=simulator.ledger(), jobs=list(simulator.engine.jobs.values()))

    return run


@pytest.fixture
def run_door(tmp_path: Path) -> RunSdk:
    """
    A function that runs a program of `tests/sdks/programs` against a relay's door: SDK, relay and pretend provider, of
    which the first two are processes of their own. It gives a `Ran`, with the relay's tasks.

    `await run_door("openai_sync", provider="openai", dialect="openai", upstream="/v1", path="/v1")`: as `run_sdk`, and

    - `provider`: of the relay's account; `upstream` is the path of its `base_url` at the pretend provider, None for an
      account without one of its own path; `settings` are further lines of the account's TOML.
    - the base address is `http://127.0.0.1:PORT/<provider><path>`; the program finds the relay's token in the
      environment variable `SDK_KEY`.
    - `keyed`: it finds none there, and the door's own key in the address.
    - `pointed`: the program is run by `vidrelay run` instead, and told neither.
    """

    async def run(
        program: str,
        *arguments: str,
        provider: str,
        dialect: str,
        upstream: str = "",
        path: str = "",
        environment: str = "main",
        environ: Mapping[str, str] | None = None,
        armed: tuple[str, ...] = (),
        settings: str = "",
        key: str = "right",
        keyed: bool = False,
        pointed: bool = False,
        **options: Any,
    ) -> Ran:
        python = python_of(environment)
        async with running_simulator(dialect=dialect, key=key, **options) as simulator:
            simulator.arm(*armed)
            above = f"http://127.0.0.1:{simulator.port}{upstream}"
            account = (
                f'provider = "{provider}"\nbase_url = "{above}"\nkey_env = "UPSTREAM_KEY"\nwindow = 4\n{settings}\n'
            )
            config = f"[poll]\n{PACE}\n[accounts.main]\n{account}"
            async with relay_process(tmp_path, config, environ={"UPSTREAM_KEY": key}) as relay:
                host = f"127.0.0.1:{relay.port}"
                in_path = f"/~{door_key(relay.token, account='main')}" if keyed else ""
                base = f"http://{host}/{provider}{in_path}{path}"
                filled = {name: value.format(base=base, host=host) for name, value in (environ or {}).items()}
                started = [str(python), str(HERE / "programs" / f"{program}.py")]
                if pointed:
                    command = [*_pointing(tmp_path), *started, *arguments]
                else:
                    told = {} if keyed else {"SDK_KEY": relay.token}
                    command, filled = [*started, base, *arguments], {**filled, **told}
                said = await _run(command, filled, tmp_path)
                asking = {"base_url": f"http://{host}", "headers": {"X-Local-Token": relay.token}}
                async with httpx2.AsyncClient(**asking, trust_env=False) as http:
                    tasks = (await http.get("/tasks", params={"limit": 500})).json()["tasks"][::-1]
            jobs = list(simulator.engine.jobs.values())
            return Ran(printed=said, ledger=simulator.ledger(), jobs=jobs, tasks=tasks)

    return run


def _pointing(folder: Path) -> list[str]:
    """
    How a command is run with its SDKs pointed at the relay of that folder.
    """
    return [sys.executable, "-m", "vidrelay", "--state-dir", str(folder / "state"), "run", "--"]


async def _run(command: list[str], environ: Mapping[str, str], home: Path) -> dict[str, Any]:
    usual = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PYTHONIOENCODING": "utf-8",
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**usual, **environ},
        cwd=home,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        pytest.fail(f"{Path(command[1]).name} was not done within {SECONDS} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    told = err.decode(errors="replace")[-4000:]
    assert process.returncode == 0, f"{Path(command[1]).name} ended with {process.returncode}:\n{told}"
    lines = out.decode().strip().splitlines()
    assert lines, f"{Path(command[1]).name} printed nothing:\n{told}"
    printed = json.loads(lines[-1])
    assert isinstance(printed, dict)
    return printed
