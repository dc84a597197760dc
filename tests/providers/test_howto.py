"""
The example of "Add a provider" (docs/howto/add-a-provider.md) works as it stands on the page.
"""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from vidrelay.core.lifecycle import Ready
from vidrelay.core.task import Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse_with
from vidrelay.testing.records import make_task
from vidrelay.testing.simulator import running_simulator

PAGE = (Path(__file__).resolve().parents[2] / "docs/howto/add-a-provider.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n(?=# (\w+)\.py\n)(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def load(name: str) -> Any:
    """
    A file of the page as a module of that name, which the next file can import.
    """
    module = sys.modules[name] = ModuleType(name)
    exec(compile(FILES[name], f"{name}.py", "exec"), module.__dict__)
    return module


brightclip, _, page = [load(name) for name in FILES]


class TestTheExample(page.TestBrightClip):
    """
    The page's own test: the whole contract suite.
    """

    async def test_a_window_of_its_own(self) -> None:
        """The pretend provider takes three clips and refuses the fourth, as its words say by default."""
        it = self.sheet.rehearse()
        for _ in range(3):
            await it.submitted(it.task())
        refused = await it.run(it.adapter.submit(it.task()))
        assert refused.reason == "window"
        assert it.engine.ledger.told()["creates"]["accepted"] == 3


async def test_the_example_runs_on_a_socket() -> None:
    """As the page says: the author's own words, spoken by a pretend provider that anybody can reach."""
    words = sys.modules["brightclip_words"].BrightClipWords
    async with running_simulator(speaks=words) as simulator, httpx2.AsyncClient(verify=False) as client:
        settings = AdapterSettings(now=FakeClock().now, key="k", base_url=f"http://127.0.0.1:{simulator.port}/v1")
        adapter = brightclip.make(settings)
        task = make_task(parameters=adapter.prepare(Request(prompt="a boat", duration=4), {}).parameters)
        made = await converse_with(client, adapter.submit(task))
        simulator.finish()
        seen = await converse_with(client, adapter.poll(replace(task, remote_id=made.remote_id)))
    assert isinstance(seen, Ready)
    assert simulator.ledger()["creates"]["accepted"] == 1


def test_the_example_is_as_long_as_the_page_says() -> None:
    """Three files, each small enough for an afternoon."""
    assert list(FILES) == ["brightclip", "brightclip_words", "test_brightclip"]
    assert all(len(code.splitlines()) < 150 for code in FILES.values())


@pytest.mark.process
def test_the_relay_finds_it_by_its_entry_point(tmp_path: Path) -> None:
    """Laid out as an installed package with the page's own entry point, an account of it can be made."""
    group = re.search(r'^ {4}\[project\.entry-points\."(.+)"\]\n {4}(\w+) = "(.+)"$', PAGE, re.MULTILINE)
    assert group is not None
    (tmp_path / "brightclip.py").write_text(FILES["brightclip"])
    info = tmp_path / "brightclip-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brightclip\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group[1]}]\n{group[2]} = {group[3]}\n")
    program = (
        "from datetime import UTC, datetime\n"
        "from vidrelay.providers.registry import AdapterSettings, key_envs, make_adapter\n"
        "adapter = make_adapter('brightclip', AdapterSettings(now=lambda: datetime.now(UTC), key='k'))\n"
        "print(type(adapter).__name__, adapter.base, key_envs()['brightclip'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() == "BrightClip https://api.brightclip.example/v1 ()", done.stderr
