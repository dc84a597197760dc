"""
The result cache: never wrong bytes, whatever somebody did to the files; index and disk agree after any kill.
"""

import asyncio
import hashlib
import os
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from vidrelay.core.disk import ResultName
from vidrelay.core.errors import ResultGone
from vidrelay.core.policy import CachePolicy
from vidrelay.core.task import Request, State
from vidrelay.files.local import LocalFiles

from .lives import Ground
from .processes import configure, relay, simulator


@pytest.fixture
def ground(tmp_path):
    (tmp_path / "state").mkdir()
    return Ground(tmp_path / "state", window=4)


def altered(path, tmp_path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def altered_and_dated_back(path, tmp_path):
    before = path.stat()
    altered(path, tmp_path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(path, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"x" * path.stat().st_size)
    other.rename(path)


def link_to_a_copy(path, tmp_path):
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")


def folder_is_a_link(path, tmp_path):
    path.parent.rename(tmp_path / "folder")
    path.parent.symlink_to(tmp_path / "folder")


def directory(path, tmp_path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "deleted": lambda path, _: path.unlink(),
    "cut off": lambda path, _: os.truncate(path, 100),
    "longer": lambda path, _: path.open("ab").write(b"x"),
    "altered": altered,
    "altered and dated back": altered_and_dated_back,
    "swapped": swapped,
    "a link": link_to_a_copy,
    "in a linked folder": folder_is_a_link,
    "a directory": directory,
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("seen", [False, True], ids=["never asked for", "asked for before"])
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_result_that_was_tampered_with_is_gone_and_made_anew(ground, tmp_path, damage, seen):
    """Asking for it says that it is gone, asking for the clip again makes a new one; other bytes are never given."""
    async with ground.life() as life:
        task = await life.submit("a boat")
        await life.until(State.DONE, prompts=1)
        path, _ = await life.relay.result_file(task.id, 0)
        if seen:
            await life.relay.result_file(task.id, 0)
        DAMAGES[damage](path, tmp_path)
        with pytest.raises(ResultGone):
            await life.relay.result_file(task.id, 0)
        again = await ask_again(life)
        assert again.id != task.id
        await life.until(State.DONE, prompts=2)
        file = (await life.relay.get(again.id)).files[0]
        fresh, _ = await life.relay.result_file(again.id, 0)
        assert hashlib.sha256(fresh.read_bytes()).hexdigest() == file.sha256


async def ask_again(life):
    """
    The same request without a key of its own: a hit, or a new task.
    """
    admission = await life.relay.submit(Request(prompt="a boat"))
    await life.ground.clock.settle()
    return admission.task


@pytest.mark.parametrize(
    "change", [lambda path: path.touch(), lambda path: path.chmod(0o640), lambda path: os.utime(path, (0, 0))]
)
async def test_a_file_that_was_only_touched_is_still_a_hit(ground, change):
    """Other times or another mode make it read through again, and nothing more."""
    async with ground.life() as life:
        task = await life.submit("a boat")
        await life.until(State.DONE, prompts=1)
        path, _ = await life.relay.result_file(task.id, 0)
        change(path)
        assert (await ask_again(life)).id == task.id
    assert len(ground.provider.creates) == 1


async def test_verifying_finds_every_altered_result_and_no_other(ground, tmp_path):
    """Each byte of each result is looked at; those that are not whole leave the index and the disk."""
    async with ground.life() as life:
        tasks = [await life.submit(f"clip {number}") for number in range(4)]
        await life.until(State.DONE, prompts=4)
        path, _ = await life.relay.result_file(tasks[1].id, 0)
        altered(path, tmp_path)
        assert await life.relay.verify_cache() == [tasks[1].id]
        assert not path.exists()
        assert await life.relay.verify_cache() == []


NAME = ResultName(fingerprint="ab12" * 16, task_id="t1", index=0)


async def save(files, content=b"whole"):
    part = await files.part(NAME)
    await part.write(content)
    return await part.commit(extension="mp4", media_type="video/mp4")


async def test_two_writes_within_one_grain_of_time_are_told_apart(tmp_path):
    """A file that changes right after it was saved, at the same length, is found out: a young stamp is not believed."""
    files = LocalFiles(tmp_path)
    for number in range(50):
        file = await save(files, b"before")
        assert await files.whole(file)
        files.location(file).write_bytes(b"behind")
        assert not await files.whole(file), f"try {number}"
        await files.delete([file])


async def test_an_old_file_is_read_through_once(tmp_path):
    """What has been looked at and has not changed since is believed; that is what makes a hit cheap."""
    later = datetime.now(UTC) + timedelta(hours=1)
    files = LocalFiles(tmp_path, now=lambda: later)
    content = os.urandom(64_000_000)
    file = await save(files, content)
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await files.whole(file)
    first, began = loop.time() - began, loop.time()
    for _ in range(20):
        assert await files.whole(file)
    assert loop.time() - began < first


async def test_a_sweep_does_not_touch_what_was_made_since_it_looked_at_the_index(tmp_path):
    """A result that is published between the look and the sweep is paid for, and stays; so does one being written."""
    files = LocalFiles(tmp_path)
    known = frozenset()
    file = await save(files)
    part = await files.part(ResultName(fingerprint="ab12" * 16, task_id="t2", index=0))
    assert await files.sweep(known) == 0
    assert await files.whole(file)
    await part.write(b"more")
    await part.discard()
    await files.delete([file])
    assert await LocalFiles(tmp_path).sweep(known) == 0


async def test_a_folder_that_is_tidied_away_while_a_part_begins_is_made_again(tmp_path):
    """Sweeping empty folders and beginning a result in one of them never get in each other's way."""
    files = LocalFiles(tmp_path)

    async def begin(number):
        part = await files.part(ResultName(fingerprint="ab12" * 16, task_id=f"t{number}", index=0))
        await part.discard()

    for number in range(100):
        await asyncio.gather(begin(number), files.sweep(frozenset()), begin(number + 1000))


async def test_over_its_limit_the_cache_has_one_result_at_the_most(tmp_path):
    """Results that come at the same moment are taken one by one, each followed by the evictions that it calls for."""
    (tmp_path / "state").mkdir()
    ground = Ground(tmp_path / "state", window=8, cache=CachePolicy(min_free_bytes=1, max_bytes=1000))
    async with ground.life() as life:
        peaks = []
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_watch_peak(life, peaks))
            for number in range(24):
                await life.submit(f"clip {number}")
            await life.until(State.DONE, prompts=24)
            watching.cancel()
        largest = max(file.size_bytes for task in await life.tasks() for file in task.files)
        assert 1000 - largest < max(peaks) <= 1000 + largest
        results, total = await life.store.results(coldest=100)
        assert total <= 1000
        assert await life.store.known() == on_disk(ground)
        assert len(results) >= 3


async def _watch_peak(life, peaks):
    with suppress(asyncio.CancelledError):
        while True:
            peaks.append((await life.store.results(coldest=1))[1])
            await asyncio.sleep(0)


def on_disk(ground):
    cache = ground.folder / "cache"
    return {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()}


async def test_the_result_used_last_stays_however_large_it_is(tmp_path):
    """A clip above the limit by itself is not taken away from who has just paid for it."""
    (tmp_path / "state").mkdir()
    ground = Ground(tmp_path / "state", cache=CachePolicy(min_free_bytes=1, max_bytes=10))
    async with ground.life() as life:
        first = await life.submit("a boat")
        await life.until(State.DONE, prompts=1)
        await life.relay.result_file(first.id, 0)
        second = await life.submit("a kite")
        await life.until(State.DONE, prompts=2)
        await life.relay.result_file(second.id, 0)
        with pytest.raises(ResultGone):
            await life.relay.result_file(first.id, 0)


@pytest.mark.parametrize("seed", range(8))
async def test_after_any_kill_index_and_disk_agree(tmp_path, seed):
    """Killed at any moment, with evictions going on: after the next start each file is in the index and whole."""
    (tmp_path / "state").mkdir()
    chance = random.Random(seed)
    ground = Ground(tmp_path / "state", window=3, cache=CachePolicy(min_free_bytes=1, max_bytes=1500))
    ground.provider.run_seconds = 2.0
    for number in range(6):
        async with ground.life() as life:
            for clip in range(4):
                await life.submit(f"clip {number} {clip}")
            for _ in range(chance.randrange(1, 40)):
                await ground.clock.advance(chance.choice((0.1, 0.5, 2.0)))
                if chance.random() < 0.05:
                    break
            await _some_turns(chance.randrange(200))
            ground.kill()
        async with ground.life() as life:
            await ground.clock.settle()
            downloading = [task.id for task in await life.tasks() if task.state is State.DOWNLOADING]
            await life.until(State.DONE, prompts=4 * (number + 1))
            assert await life.store.known() == on_disk(ground), downloading
            for result in (await life.store.results(coldest=100))[0]:
                for file in result.files:
                    assert await life.files.whole(file, read=True)
    assert len(ground.provider.creates) == 24


async def _some_turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.process
def test_a_result_that_is_evicted_while_it_is_sent_arrives_whole(tmp_path):
    """The answer that has begun goes on to its end, byte by byte right; the next one is 410."""
    with simulator(tmp_path, "--run-seconds", "0.2", "--clip-bytes", "20000000") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path) as running:
            task = running.until(running.submit("a boat").json()["taskId"], "done")
            (file,) = task["result"]["files"]
            digest = hashlib.sha256()
            with running.http.stream("GET", file["url"]) as answer:
                pieces = answer.iter_raw(65536)
                digest.update(next(pieces))
                assert running.http.post("/cache/clear").json()["cleared"] == 1
                assert not (running.state / "cache" / file["path"]).exists()
                for piece in pieces:
                    digest.update(piece)
            assert digest.hexdigest() == file["sha256"]
            assert running.http.get(file["url"]).status_code == 410
