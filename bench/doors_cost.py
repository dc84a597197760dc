"""
What doors cost this machine: a status read, an SDK that asks ten times a second, a large picture.
"""

import base64
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from PIL import Image

from bench.relay import Running, load, pretend_provider, relay

TASKS, EVERY_SECONDS, LOAD_SECONDS = 100, 0.1, 10.0
PICTURE_BYTES = 50 * 1024 * 1024
EDGE = 4180
"""So many pixels a side of noise are a PNG of a little more than 50 MiB."""

CONFIG = """
[relay]
default_account = "bench"
[accounts.bench]
provider = "{provider}"
key_file = "{key}"
base_url = "http://127.0.0.1:{port}{path}"
window = 1
"""


@contextmanager
def door(folder: Path, provider: str, path: str) -> Iterator[Running]:
    """
    A relay with one account of that provider, whose jobs never end.
    """
    folder.mkdir()
    key, config = folder / "key", folder / "vidrelay.toml"
    with pretend_provider("--dialect", provider, "--key", "right", "--run-seconds", "36000") as port:
        key.write_text("right")
        config.write_text(CONFIG.format(provider=provider, key=key, port=port, path=path))
        for file in (key, config):
            file.chmod(0o600)
        with relay(folder) as running:
            yield running


def cpu_seconds(pid: int) -> float:
    """
    What a process has used of the processor so far.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_growth_mb(pid: int, work: Callable[[], None]) -> float:
    """
    How much a process's memory grew while `work` was done, at its highest.
    """
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = _status_mb(pid, "VmRSS")
    work()
    return _status_mb(pid, "VmHWM") - before


def _status_mb(pid: int, name: str) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def reads(folder: Path) -> list[tuple[str, str, str]]:
    """
    A status read by itself, and fal-client's loop for a hundred tasks.
    """
    with door(folder / "fal", "fal", "") as it:
        made = [
            it.call("POST", "/fal/fal-ai/wan-t2v", json={"prompt": f"boat {number}"}).json() for number in range(TASKS)
        ]
        paths = [one["status_url"].partition(str(it.port))[2] for one in made]
        alone = load(it, paths[0], method="GET", body="", connections=1, seconds=3.0)
        before, began = cpu_seconds(it.pid), time.perf_counter()
        many = load(it, *paths, method="GET", body="", connections=TASKS, seconds=LOAD_SECONDS, every=EVERY_SECONDS)
        share = (cpu_seconds(it.pid) - before) / (time.perf_counter() - began)
    return [
        ("a status read through a door", f"{alone['p50']:.2f} ms p50, {alone['p99']:.2f} p99", "<= 1 ms p50"),
        (
            f"{TASKS} fal tasks, each asked for {EVERY_SECONDS:g} s after the last answer",
            f"{share:.0%} of a core at {many['perSecond']:.0f} reads/s, {many['p50']:.2f} ms p50",
            "< 15 %",
        ),
    ]


def pictures(folder: Path) -> list[tuple[str, str, str]]:
    """
    A picture of 50 MiB, in a form and in line.
    """
    picture = folder / "noise.png"
    Image.frombytes("RGB", (EDGE, EDGE), os.urandom(3 * EDGE * EDGE)).save(picture, "PNG", compress_level=0)
    size = picture.stat().st_size
    body = json.dumps(
        {
            "prompt": "b",
            "input_reference": {
                "image_url": f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
            },
        }
    ).encode()
    figures = []
    with door(folder / "openai", "openai", "/v1") as it:

        def in_form() -> None:
            with picture.open("rb") as file:
                form = {"input_reference": ("a.png", file, "image/png"), "prompt": (None, "a")}
                _taken(it.call("POST", "/openai/v1/videos", files=form))

        def in_line() -> None:
            _taken(it.call("POST", "/openai/v1/videos", content=body))

        for what, work, goal in (
            ("in a form", in_form, "<= 16 MB"),
            ("in line", in_line, f"<= {2 * len(body) / 1e6:.0f} MB"),
        ):
            grown = peak_growth_mb(it.pid, work)
            figures.append((f"a picture of {size / 1024**2:.0f} MiB {what}", f"{grown:.1f} MiB more at the peak", goal))
    return figures


def _taken(answer: httpx2.Response) -> None:
    if answer.status_code != 200:
        sys.exit(f"the door answered {answer.status_code}: {answer.text[:500]}")
