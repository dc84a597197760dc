"""
`make bench-doors`: what one call of an official SDK costs when something goes wrong, directly and through vidrelay.

Every SDK runs unmodified, with its own defaults, as a process of its own, against the pretend provider in its words;
through vidrelay the relay is one too. Counted is what reached the provider: create calls, and jobs that were made.
"""

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bench import doors_cost
from vidrelay.testing.process import relay_process
from vidrelay.testing.simulator import RunningSimulator, running_simulator

ROOT = Path(__file__).parents[1]
SDK_SECONDS = 90.0
SETTLE_SECONDS = 15.0
"""So long an uncertain task may take to be found."""
POLL = 'first = "0.1s"\ncap = "0.3s"\n'
TROUBLES = {
    "answer dropped": ("create-drop-after:always",),
    "503 once": ("create-error=503",),
    "429 once": ("create-rate=1",),
    "3 at once": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """
    An SDK: its name in `sdks/create.py`, whose words it speaks, and the path in its base address.
    """

    title: str
    name: str
    provider: str
    path: str = ""
    environment: str = "main"
    key: str = "right"
    settings: str = ""


SDKS = (
    Sdk(title="openai", name="openai", provider="openai", path="/v1"),
    Sdk(title="replicate", name="replicate", provider="replicate"),
    Sdk(title="fal-client", name="fal", provider="fal"),
    Sdk(title="runwayml", name="runway", provider="runway"),
    Sdk(title="lumaai", name="luma", provider="luma", path="/dream-machine/v1"),
    Sdk(title="luma-agents", name="luma_agents", provider="luma-agents", path="/v1"),
    Sdk(title="google-genai 2 (Veo)", name="veo", provider="google"),
    Sdk(title="google-genai 3 (Interactions)", name="interactions", provider="google", environment="genai3"),
    Sdk(title="openrouter", name="openrouter", provider="openrouter", path="/api/v1"),
    Sdk(title="dashscope", name="dashscope", provider="dashscope", path="/api/v1"),
    Sdk(title="dashscope (old surface)", name="dashscope_legacy", provider="dashscope", path="/api/v1"),
    Sdk(title="volcengine ark", name="ark", provider="ark", path="/api/v3"),
    Sdk(title="byteplus", name="byteplus", provider="ark", path="/api/v3", settings='dialect = "byteplus"'),
    Sdk(title="zai-sdk", name="zai", provider="zhipu", path="/api/paas/v4", key="id.right", settings='dialect = "zai"'),
    Sdk(
        title="zhipuai",
        name="zhipuai",
        provider="zhipu",
        path="/api/paas/v4",
        key="id.right",
        environment="zhipuai",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """
    What reached the provider: create calls, and jobs made; and how the relay's tasks stand, where it had one.
    """

    posts: int
    jobs: int
    uncertain: int = 0

    def __str__(self) -> str:
        """
        As the table shows it: `3/3` is three calls that made three jobs; `?` that the relay's task is uncertain.
        """
        return f"{self.posts}/{self.jobs}" + ("?" if self.uncertain else "")


def python_of(environment: str) -> Path:
    """
    The Python of an environment of `make sdks`.
    """
    place = Path(os.environ.get("VIDRELAY_SDKS") or ROOT / ".venv-sdks").absolute() / environment / "bin" / "python"
    if not place.exists():
        sys.exit(f"the SDK environment {environment!r} is missing: `make sdks` makes it")
    return place


async def called(sdk: Sdk, base: str, key: str, count: int, home: Path) -> None:
    """
    Let the SDK make its calls.
    """
    program = ROOT / "bench" / "sdks" / "create.py"
    process = await asyncio.create_subprocess_exec(
        *(str(python_of(sdk.environment)), str(program), sdk.name, base, str(count)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(home), "NO_PROXY": "127.0.0.1", "SDK_KEY": key},
        cwd=home,
    )
    try:
        async with asyncio.timeout(SDK_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        sys.exit(f"{sdk.title} was not done within {SDK_SECONDS:g} s")
    if process.returncode != 0:
        sys.exit(f"{sdk.title} ended with {process.returncode}:\n{err.decode(errors='replace')[-2000:]}")
    json.loads(out)


def counted(simulator: RunningSimulator, uncertain: int = 0) -> Count:
    """
    What the pretend provider saw.
    """
    return Count(posts=simulator.ledger()["creates"]["received"], jobs=len(simulator.engine.jobs), uncertain=uncertain)


async def directly(sdk: Sdk, armed: tuple[str, ...], count: int) -> Count:
    """
    The SDK talks to the provider itself.
    """
    async with running_simulator(dialect=sdk.provider, key=sdk.key, window=8) as simulator:
        simulator.arm(*armed)
        with tempfile.TemporaryDirectory() as home:
            await called(sdk, f"http://127.0.0.1:{simulator.port}{sdk.path}", sdk.key, count, Path(home))
        return counted(simulator)


async def through_relay(sdk: Sdk, armed: tuple[str, ...], count: int) -> Count:
    """
    The SDK talks to a relay, which is watched until nothing is left to be sent.
    """
    async with running_simulator(dialect=sdk.provider, key=sdk.key, window=8) as simulator:
        simulator.arm(*armed)
        above = f"http://127.0.0.1:{simulator.port}{sdk.path}"
        account = f'provider = "{sdk.provider}"\nbase_url = "{above}"\nkey_env = "UPSTREAM_KEY"\nwindow = 8\n'
        config = f"[poll]\n{POLL}\n[accounts.main]\n{account}{sdk.settings}\n"
        with tempfile.TemporaryDirectory() as home:
            async with relay_process(Path(home), config, environ={"UPSTREAM_KEY": sdk.key}) as relay:
                base = f"http://127.0.0.1:{relay.port}"
                await called(sdk, f"{base}/{sdk.provider}{sdk.path}", relay.token, count, Path(home))
                states = await settled(base, relay.token)
        return counted(simulator, states.count("uncertain"))


async def settled(base: str, token: str) -> list[str]:
    """
    The states of the relay's tasks, once none of them is to be sent any more or is being looked for.
    """
    async with httpx2.AsyncClient(base_url=base, headers={"X-Local-Token": token}, trust_env=False) as http:
        for _ in range(int(SETTLE_SECONDS / 0.25)):
            states = [task["state"] for task in (await http.get("/tasks")).json()["tasks"]]
            if states and not {"queued", "submitting", "uncertain"}.intersection(states):
                break
            await asyncio.sleep(0.25)
    return states


async def main(names: list[str]) -> int:
    """
    Print the table. Fails where a relay let more than one job be made, for that is not a matter of speed.
    """
    chosen = [sdk for sdk in SDKS if not names or sdk.name in names]
    print("One wanted clip: create calls that reached the provider / jobs that it made, directly → through vidrelay;")
    print("? where the task is shown as uncertain, since the provider offers no way to settle it.\n")
    print("| SDK | " + " | ".join(TROUBLES) + " |")
    print("| --- |" + " --- |" * len(TROUBLES))
    broken = 0
    for sdk in chosen:
        cells = []
        for trouble, armed in TROUBLES.items():
            count = 3 if trouble == "3 at once" else 1
            alone, relayed = await directly(sdk, armed, count), await through_relay(sdk, armed, count)
            broken += relayed.jobs > 1
            cells.append(f"{alone} → {relayed}")
        print(f"| {sdk.title} | " + " | ".join(cells) + " |", flush=True)
    if broken:
        print(f"\n{broken} cells show more than one job through vidrelay.")
    if not names:
        with tempfile.TemporaryDirectory() as place:
            figures = [*doors_cost.reads(Path(place)), *doors_cost.pictures(Path(place))]
        print("\n| what | measured | goal |\n| --- | --- | --- |")
        print("\n".join(f"| {what} | {measured} | {goal} |" for what, measured, goal in figures))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
