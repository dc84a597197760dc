"""
Everything the relay writes is the user's alone at every moment, and what somebody has planted is not followed.
"""

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from PIL import Image

from vidrelay.client.calls import open_client
from vidrelay.core.errors import RelayUnavailable

from .lives import Life, pretend_provider

pytestmark = [pytest.mark.process, pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX")]


class Modes:
    """
    Looks at a directory again and again: which names there were, and which others could have read or written.
    """

    def __init__(self, place: Path) -> None:
        self.seen: set[str] = set()
        self.open: set[str] = set()
        self._place, self._over = place, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            for folder, folders, files in os.walk(self._place):
                for name in (*folders, *files):
                    path = Path(folder, name)
                    try:
                        mode = path.lstat().st_mode
                    except OSError:
                        continue
                    told = path.relative_to(self._place).as_posix()
                    self.seen.add(told)
                    if mode & 0o077:
                        self.open.add(f"{told} {stat.filemode(mode)}")
            time.sleep(0.002)


def test_under_any_umask_nobody_else_may_read_or_write_anything_at_any_moment(tmp_path: Path) -> None:
    """
    A whole life with umask 000, watched all the while.
    """
    with pretend_provider(tmp_path, "--clip-bytes", "400000", "--bytes-per-second", "400000") as port:
        config = (
            f'[accounts.main]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n[relay]\ntoken = "keep"\n'
        )
        with Modes(tmp_path / "state") as modes, Life(tmp_path, config, umask=0) as life:
            Image.new("RGB", (64, 64), "red").save(tmp_path / "a.png")
            asset = life.http.post("/assets", content=(tmp_path / "a.png").read_bytes()).json()["asset"]
            wanted = [{"account": "main"}, {"account": "preview", "duration": 1, "references": [{"asset": asset}]}]
            tasks = [life.http.post("/generate", json={"prompt": "a fox", **fields}).json() for fields in wanted]
            for task in tasks:
                life.until(task["taskId"], "done")
    assert modes.open == set()
    endings = {Path(name).name.partition(".")[2] for name in modes.seen}
    assert {"json", "lock", "db", "db-wal", "db-shm", "log", "mp4", "part", "png"} <= endings
    assert {"cache", "assets", "logs", "preview", "keep.json", "ballast"} <= modes.seen


FILES = [
    *("relay.json", "relay.lock", "keep.json", "logs/relay.log", "ballast", "emergency.jsonl"),
    *("relay.db", "relay.db-wal", "relay.db-shm", "relay.db-journal", "relay.db.bak"),
]


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Path]:
    """
    A place outside the state directory that must stay as it is.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("as it was")
    yield outside
    assert (outside / "file").read_text() == "as it was"
    assert [path.name for path in outside.iterdir()] == ["file"]


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_a_link_in_a_files_place_is_not_followed(tmp_path: Path, planted: Path, name: str, dangling: bool) -> None:
    """
    The relay replaces it or refuses to start, but neither reads nor writes what it leads to.
    """
    place = tmp_path / "state" / name
    place.parent.mkdir(parents=True, mode=0o700)
    place.symlink_to(planted / ("nothing" if dangling else "file"))
    with may_refuse(), Life(tmp_path, '[relay]\ntoken = "keep"\n') as life:
        assert life.http.get("/health").status_code == 200


@pytest.mark.parametrize("name", ["logs", "cache", "assets", "preview"])
def test_a_link_in_a_folders_place_is_not_followed(tmp_path: Path, planted: Path, name: str) -> None:
    """
    Nothing is written through it; `generate` starts a relay where there is none, which logs as well.
    """
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / name).symlink_to(planted)
    with contextlib.nullcontext() if name == "preview" else may_refuse(), Life(tmp_path) as life:
        Image.new("RGB", (64, 64), "red").save(tmp_path / "a.png")
        assert life.http.post("/assets", content=(tmp_path / "a.png").read_bytes()).status_code == 200
        task = life.http.post("/generate", json={"prompt": "a fox", "duration": 1}).json()
        assert life.http.get(f"/task/{task['taskId']}", params={"wait": 2, "seen": "submitting"}).status_code == 200
    if name != "preview":
        assert Life(tmp_path).run("generate", "a fox", "--no-wait").returncode == 3


@contextlib.contextmanager
def may_refuse() -> Iterator[None]:
    """
    A relay that does not start is as right as one that replaces what was planted.
    """
    try:
        yield
    except AssertionError as refused:
        if "the relay did not come up" not in str(refused):
            raise


def hint(**changes: object) -> str:
    told = {"port": 50_000, "token": "vrl_" + "c" * 43, "pid": 1, "version": "0", "instance": "old"}
    return json.dumps({**told, "startedAt": "2026-11-30T12:00:00.000Z", **changes})


HINTS = {
    "dead port": hint(),
    "port of another service": hint(port="FOREIGN"),
    "garbage": "\x00\x01garbage",
    "empty": "",
    "huge": hint() + " " * 100_000,
}


async def look(state: Path) -> object:
    """
    What a client that starts nothing finds there.
    """
    async with open_client(state, start=False) as client:
        return (await client.health())["status"]


@pytest.mark.parametrize("name", [*HINTS, "too open", "link", "folder"])
async def test_relay_json_is_a_hint_that_misleads_nobody(tmp_path: Path, name: str) -> None:
    """
    A client finds nobody there and a relay starts all the same, whatever stands in it.
    """
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    place = state / "relay.json"
    with pretend_provider(tmp_path) as foreign:
        text = HINTS.get(name, hint(port=foreign)).replace('"FOREIGN"', str(foreign))
        if name == "link":
            (tmp_path / "elsewhere").write_text(text)
            place.symlink_to(tmp_path / "elsewhere")
        elif name == "folder":
            place.mkdir()
        else:
            place.write_text(text)
            place.chmod(0o644 if name == "too open" else 0o600)
        with pytest.raises(RelayUnavailable):
            await look(state)
        if name == "folder":
            return  # a folder of the user's is not cleared away; the relay says so and does not start
        with Life(tmp_path):
            assert await look(state) == "ok"
    assert not place.exists()
