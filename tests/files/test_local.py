"""
A result's name exists only for a whole file, and nothing outside the cache is ever touched.
"""
# ruff: noqa: ASYNC240 small files of the test's own

import asyncio
import hashlib
import os
import stat
from pathlib import Path

import pytest

from vidrelay.core.disk import ResultName
from vidrelay.core.errors import DiskFull, RelayUnavailable
from vidrelay.core.task import FileRef
from vidrelay.files.local import LocalFiles, require_folder
from vidrelay.testing.records import make_file
from vidrelay.testing.simulation.disk import longest_file, watching

FINGERPRINT = "ab12" * 16
NAME = ResultName(fingerprint=FINGERPRINT, task_id="tsk_1", index=0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def files(root: Path) -> LocalFiles:
    return LocalFiles(root)


async def save(files: LocalFiles, content: bytes = b"whole", name: ResultName = NAME) -> FileRef:
    part = await files.part(name)
    await part.write(content)
    return await part.commit(extension="mp4", media_type="video/mp4")


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


async def test_a_saved_result_is_described_as_it_lies_on_the_disk(files: LocalFiles, root: Path) -> None:
    """
    The reference has path, length, hash and type of the bytes that were written in pieces.
    """
    content = os.urandom(300_000)
    part = await files.part(NAME)
    for start in range(0, len(content), 100_000):
        await part.write(content[start : start + 100_000])
    assert part.size_bytes == len(content)
    file = await part.commit(extension="mp4", media_type="video/mp4")
    assert file == FileRef(
        index=0,
        path=f"{FINGERPRINT}/tsk_1-0.mp4",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        media_type="video/mp4",
    )
    assert files.location(file).read_bytes() == content
    assert await files.whole(file)


async def test_a_name_does_not_exist_before_the_file_is_whole(files: LocalFiles, root: Path) -> None:
    """
    Until the commit there is a `.part` alone, and after it the result's name alone.
    """
    part = await files.part(NAME)
    await part.write(b"half")
    assert names(root) == {f"{FINGERPRINT}/tsk_1-0.part"}
    await part.commit(extension="mp4", media_type="video/mp4")
    assert names(root) == {f"{FINGERPRINT}/tsk_1-0.mp4"}


async def test_nobody_else_may_read_what_is_written(files: LocalFiles, root: Path) -> None:
    """
    Under a umask of 0, folders are 0700 and files 0600, before and after the commit.
    """
    before = os.umask(0)
    try:
        part = await files.part(NAME)
        await part.write(b"x")
        modes = {stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
        file = await part.commit(extension="mp4", media_type="video/mp4")
    finally:
        os.umask(before)
    assert modes == {0o700, 0o600}
    assert stat.S_IMODE(files.location(file).stat().st_mode) == 0o600


async def test_a_discarded_part_leaves_nothing(files: LocalFiles, root: Path) -> None:
    """
    Discarding, even twice, removes the part and its empty folder.
    """
    part = await files.part(NAME)
    await part.write(b"x")
    await part.discard()
    await part.discard()
    assert list(root.iterdir()) == []


async def test_discarding_after_the_commit_keeps_the_file(files: LocalFiles) -> None:
    """
    A discard that comes after the commit does not touch the saved file.
    """
    part = await files.part(NAME)
    await part.write(b"whole")
    file = await part.commit(extension="mp4", media_type="video/mp4")
    await part.discard()
    assert await files.whole(file)


async def test_what_was_written_can_be_looked_at_and_then_gone_on_with(files: LocalFiles) -> None:
    """
    Inspecting a part does not disturb what is written to it next.
    """
    part = await files.part(NAME)
    await part.write(b"first")
    assert await part.inspect(lambda file: file.read(3)) == b"fir"
    await part.write(b"second")
    file = await part.commit(extension="mp4", media_type="video/mp4")
    assert files.location(file).read_bytes() == b"firstsecond"


async def test_a_leftover_part_is_replaced(files: LocalFiles, root: Path) -> None:
    """
    A part that a crash left is overwritten from its start, and none of it remains.
    """
    folder = root / FINGERPRINT
    folder.mkdir(parents=True)
    (folder / "tsk_1-0.part").write_bytes(b"leftover of a crash, longer than the new one")
    assert files.location(await save(files)).read_bytes() == b"whole"


async def test_a_link_in_the_place_of_a_part_is_not_followed(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    """
    Saving over a planted link leaves the file that it points to as it was.
    """
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (root / FINGERPRINT).mkdir(parents=True)
    (root / FINGERPRINT / "tsk_1-0.part").symlink_to(victim)
    await save(files)
    assert victim.read_bytes() == b"precious"


async def test_a_link_in_the_place_of_a_folder_is_replaced(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    """
    A link where a result's folder belongs makes way for one, and nothing is written behind it.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root.mkdir()
    (root / FINGERPRINT).symlink_to(elsewhere)
    assert await files.whole(await save(files))
    assert list(elsewhere.iterdir()) == []


async def test_a_link_in_the_place_of_the_cache_is_refused(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    """
    A link where the whole cache belongs fails the save as a full disk, and nothing is written behind it.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root.symlink_to(elsewhere)
    with pytest.raises(DiskFull):
        await save(files)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("task_id", ["../x", "..\\x", "C:x", "", ".", "a.", "a/b", "a\0", "x" * 5000, "ä", "-a", "a b"])
async def test_a_name_that_is_no_plain_one_is_refused(files: LocalFiles, root: Path, task_id: str) -> None:
    """
    Names with paths, odd characters, endless length or a negative index make no file at all.
    """
    for name in (
        ResultName(fingerprint=FINGERPRINT, task_id=task_id, index=0),
        ResultName(fingerprint=task_id, task_id="tsk_1", index=0),
        ResultName(fingerprint=FINGERPRINT, task_id="tsk_1", index=-1),
    ):
        with pytest.raises(ValueError, match="result"):
            await files.part(name)
    assert not root.exists()


@pytest.mark.parametrize("extension", ["", "part", "mp4/../../x", ".mp4", "MP4", "a" * 20])
async def test_an_extension_that_is_none_is_refused(files: LocalFiles, extension: str) -> None:
    """
    An extension that is empty, ours, a path, in capitals or long is refused at the commit.
    """
    part = await files.part(NAME)
    with pytest.raises(ValueError, match="extension"):
        await part.commit(extension=extension, media_type="video/mp4")
    await part.discard()


@pytest.mark.parametrize(
    "path", ["../x-0.mp4", "/etc/passwd", f"{FINGERPRINT}/../../x-0.mp4", FINGERPRINT, "", "a/b/c"]
)
def test_a_reference_that_leads_out_of_the_cache_is_refused(files: LocalFiles, path: str) -> None:
    """
    A stored path that is absolute, climbs or is no result's name has no location.
    """
    file = FileRef(index=0, path=path, size_bytes=1, sha256="", media_type="video/mp4")
    with pytest.raises(ValueError, match="cache"):
        files.location(file)


async def test_a_full_disk_is_told_and_the_part_is_gone(files: LocalFiles, root: Path) -> None:
    """
    A write for which there is no room raises DiskFull and removes what was written.
    """
    part = await files.part(NAME)
    await part.write(b"x" * 50_000)
    with longest_file(100_000), pytest.raises(DiskFull):
        await part.write(b"x" * 100_000)
    assert names(root) == set()


async def test_a_root_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """
    A cache whose folder cannot be created raises DiskFull.
    """
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskFull):
        await LocalFiles(tmp_path / "file" / "cache").part(NAME)


async def test_a_file_is_whole_only_with_its_length_and_as_a_regular_file(
    files: LocalFiles, root: Path, tmp_path: Path
) -> None:
    """
    A file that is shorter, gone or replaced by a link is not whole.
    """
    file = await save(files)
    path = files.location(file)
    path.write_bytes(b"shrt")
    assert not await files.whole(file)
    path.unlink()
    assert not await files.whole(file)
    (tmp_path / "other").write_bytes(b"whole")
    path.symlink_to(tmp_path / "other")
    assert not await files.whole(file)


async def test_a_deleted_file_stays_readable_to_its_reader(files: LocalFiles, root: Path) -> None:
    """
    Deleting, even twice in one call, leaves an open reader its bytes and the cache empty.
    """
    file = await save(files)
    with files.location(file).open("rb") as reader:
        await files.delete([file, file])
        assert reader.read() == b"whole"
    assert list(root.iterdir()) == []


async def test_the_sweep_deletes_unknown_files_of_our_pattern_only(
    files: LocalFiles, root: Path, tmp_path: Path
) -> None:
    """
    Known files, parts being written and foreign names stay, while our leftovers go.
    """
    kept = await save(files)
    writing = await files.part(ResultName(fingerprint=FINGERPRINT, task_id="tsk_2", index=0))
    folder = root / FINGERPRINT
    (folder / "tsk_3-0.mp4").write_bytes(b"unknown")
    (folder / "tsk_4-0.part").write_bytes(b"leftover")
    (folder / "notes.txt").write_bytes(b"not ours")
    (root / "README").write_bytes(b"not ours")
    (root / "x").mkdir()
    (root / "x" / "tsk_5-0.mp4").write_bytes(b"not ours")
    empty = root / ("cd34" * 16)
    empty.mkdir()
    (empty / "tsk_6-0.part").write_bytes(b"leftover")
    assert await files.sweep(frozenset({kept.path})) == 3
    assert names(root) == {
        kept.path,
        f"{FINGERPRINT}/tsk_2-0.part",
        f"{FINGERPRINT}/notes.txt",
        "README",
        "x/tsk_5-0.mp4",
    }
    assert not empty.exists()
    await writing.discard()


async def test_the_sweep_of_a_later_life_keeps_what_the_index_knows(root: Path) -> None:
    """
    A new LocalFiles on an old cache deletes a result nobody knows and keeps the one that is known.
    """
    earlier = LocalFiles(root)
    kept = await save(earlier)
    await save(earlier, name=ResultName(fingerprint=FINGERPRINT, task_id="tsk_9", index=0))
    assert await LocalFiles(root).sweep(frozenset({kept.path})) == 1
    assert names(root) == {kept.path}


async def test_the_sweep_goes_by_names(root: Path) -> None:
    """
    What a sweep deletes first is not left to the file system, so that one which fails fails alike everywhere.
    """
    (root / FINGERPRINT).mkdir(parents=True)
    for task_id in ("tsk_2", "tsk_1", "tsk_3"):
        (root / FINGERPRINT / f"{task_id}-0.mp4").touch()
    told: list[tuple[str, str]] = []
    with watching(lambda event, path, _: told.append((event, Path(path).name))):
        await LocalFiles(root).sweep(frozenset())
    assert [name for event, name in told if event == "os.remove"] == ["tsk_1-0.mp4", "tsk_2-0.mp4", "tsk_3-0.mp4"]


async def test_the_sweep_follows_no_link(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    """
    The sweep removes a link that lies in a result's place, and nothing outside the cache.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tsk_1-0.mp4").write_bytes(b"precious")
    (root / FINGERPRINT).mkdir(parents=True)
    (root / FINGERPRINT / "tsk_2-0.mp4").symlink_to(outside / "tsk_1-0.mp4")
    (root / ("cd34" * 16)).symlink_to(outside)
    assert await files.sweep(frozenset()) == 1
    assert (outside / "tsk_1-0.mp4").read_bytes() == b"precious"


async def test_deleting_a_result_follows_no_link(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    """
    Where a result's folder was replaced by a link, what it points to is not the relay's to delete.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "task-0.mp4").write_bytes(b"precious")
    root.mkdir(parents=True, exist_ok=True)
    (root / FINGERPRINT).symlink_to(outside)
    await files.delete([make_file(task_id="task", path=f"{FINGERPRINT}/task-0.mp4")])
    assert (outside / "task-0.mp4").read_bytes() == b"precious"


async def test_a_sweep_without_a_cache_finds_nothing(files: LocalFiles) -> None:
    """
    Before the cache's folder exists a sweep deletes nothing and raises nothing.
    """
    assert await files.sweep(frozenset()) == 0


async def test_free_room_is_told_even_before_the_cache_exists(files: LocalFiles) -> None:
    """
    Free bytes are told though the cache's folder is not there yet.
    """
    assert files.free_bytes() > 0


def plant(root: Path, what: str) -> None:
    (root.parent / "elsewhere").mkdir()
    if what == "file":
        root.write_bytes(b"")
    else:
        root.symlink_to(root.parent / ("elsewhere" if what == "link" else "nowhere"))


@pytest.mark.parametrize("what", ["file", "link", "dangling link"])
async def test_in_the_place_of_the_cache_is_no_room(files: LocalFiles, root: Path, what: str) -> None:
    """
    Where a link or a file is in the cache's place nothing could be saved, so nothing that is paid for may be begun.
    """
    plant(root, what)
    assert files.free_bytes() == 0
    root.unlink()
    assert files.free_bytes() > 0
    await save(files)
    assert files.free_bytes() > 0


@pytest.mark.parametrize("what", ["file", "link", "dangling link"])
def test_what_is_no_directory_is_refused_by_its_name(root: Path, what: str) -> None:
    """
    A link or a file in a directory's place is named, with what to do; none, and a real one, are well.
    """
    plant(root, what)
    with pytest.raises(RelayUnavailable, match="cache is a link or a file") as refused:
        require_folder(root)
    assert "Move it away" in str(refused.value.hint)
    root.unlink()
    require_folder(root)
    root.mkdir()
    require_folder(root)


@pytest.mark.parametrize("turns", range(12))
async def test_a_write_that_is_cancelled_is_still_whole_or_not_there(files: LocalFiles, root: Path, turns: int) -> None:
    """
    Wherever a write is cancelled, the part has all of it or none, and knows which.
    """
    part = await files.part(NAME)
    writing = asyncio.create_task(part.write(b"x" * 4_000_000))
    for _ in range(turns):
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert part.size_bytes in (0, 4_000_000)
    assert (root / FINGERPRINT / "tsk_1-0.part").stat().st_size == part.size_bytes
    await part.discard()


@pytest.mark.parametrize("turns", range(6))
async def test_beginning_a_part_can_be_cancelled_without_a_leftover(files: LocalFiles, root: Path, turns: int) -> None:
    """
    Wherever the start of a part is cancelled, no file is left.
    """
    beginning = asyncio.create_task(files.part(NAME))
    for _ in range(turns):
        await asyncio.sleep(0)
    beginning.cancel()
    outcome = (await asyncio.gather(beginning, return_exceptions=True))[0]
    if not isinstance(outcome, asyncio.CancelledError):
        await outcome.discard()
    assert not root.exists() or names(root) == set()


async def test_a_part_that_somebody_altered_is_not_gone_on_with(files: LocalFiles, root: Path) -> None:
    """
    A part of another content than was written fails the next write and is removed.
    """
    part = await files.part(NAME)
    await part.write(b"first")
    (root / FINGERPRINT / "tsk_1-0.part").write_bytes(b"other bytes")
    with pytest.raises(DiskFull):
        await part.write(b"second")
    assert names(root) == set()
