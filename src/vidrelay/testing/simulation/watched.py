"""
The relay's own ports, watched: each call passes points where the process may die, and may meet a disk that fails.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, BinaryIO, Protocol, TypeVar

from vidrelay.core.disk import Files, PartFile, ResultName
from vidrelay.core.errors import DiskFull, StoreBusy, StoreError
from vidrelay.core.lifecycle import Event
from vidrelay.core.ports import Admission
from vidrelay.core.task import FileRef, Task
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.simulation.faults import Faults

T = TypeVar("T")


class Watcher(Protocol):
    """
    What the watched ports need of the life they belong to.
    """

    faults: Faults
    committing: list[str]

    async def reach(self, point: str) -> None:
        """
        Pass a point; a relay that is to die there goes no further.
        """
        ...

    def committed(self, task: Task) -> None:
        """
        A commit has changed this task, and the relay is about to hear of it.
        """
        ...

    def limit_next_work(self, size_bytes: int) -> None:
        """
        Let the next piece of a thread's work write no file beyond so many bytes.
        """
        ...


class WatchedStore:
    """
    Fills ports Store, AccountBook and ResultIndex with the real store.
    """

    def __init__(self, store: SqliteStore, life: Watcher) -> None:
        self._store = store
        self._life = life
        self._listener: Callable[[Task], None] = lambda _: None
        store.on_commit = self._tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def on_commit(self) -> Callable[[Task], None]:
        """
        Who is told of commits.
        """
        return self._listener

    @on_commit.setter
    def on_commit(self, listener: Callable[[Task], None]) -> None:
        self._listener = listener

    def _tell(self, task: Task) -> None:
        self._life.committed(task)
        self._listener(task)

    async def add(self, *args: Any, **words: Any) -> Admission:
        """
        Answer a submit.
        """
        return await self._change("add", self._store.add(*args, **words))

    async def take_place(self, **words: Any) -> Task | None:
        """
        Give the next queued task a place.
        """
        return await self._change("take_place", self._store.take_place(**words))

    async def save(self, task: Task, event: Event, **words: Any) -> Task:
        """
        Save a task that `advance` has moved.
        """
        return await self._change(f"save.{type(event).__name__}", self._store.save(task, event, **words))

    async def set_pause(self, *args: Any, **words: Any) -> None:
        """
        Keep, or lift, an account's pause.
        """
        await self._change("set_pause", self._store.set_pause(*args, **words))

    async def forget(self, *args: Any, **words: Any) -> None:
        """
        Take a task's result out of the index.
        """
        await self._change("forget", self._store.forget(*args, **words))

    async def live(self) -> list[Task]:
        """
        Every unended task.
        """
        found = await self._store.live()
        await self._life.reach("start.live")
        return found

    async def _change(self, name: str, change: "Awaitable[T]") -> T:
        await self._life.reach(f"{name}.enter")
        trouble = self._trouble()
        if trouble is not None:
            change.close()  # type: ignore[attr-defined]  # a coroutine that has not begun
            raise trouble
        self._life.committing.append(name)
        try:
            result = await change
        finally:
            self._life.committing.remove(name)
        await self._life.reach(f"{name}.left")
        return result

    def _trouble(self) -> Exception | None:
        faults = self._life.faults
        if faults.hit("disk.full_store"):
            return DiskFull("there is no room on the disk for the database")
        if faults.hit("disk.busy_store"):
            return StoreBusy()
        if faults.hit("disk.error_store"):
            return StoreError("the database could not do its part: disk I/O error")
        return None


class WatchedFiles:
    """
    Fills port Files with the real cache directory.
    """

    def __init__(self, files: Files, life: Watcher) -> None:
        self._files = files
        self._life = life

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def part(self, name: ResultName) -> PartFile:
        """
        Begin a result.
        """
        part = await self._files.part(name)
        await self._life.reach("part.made")
        return WatchedPart(part, self._life)

    async def delete(self, files: Sequence[FileRef]) -> None:
        """
        Delete the files.
        """
        await self._files.delete(files)
        await self._life.reach("delete.left")

    def free_bytes(self) -> int:
        """
        Free room on the disk.
        """
        return 0 if self._life.faults.hit("disk.no_room") else 1024**4


class WatchedPart:
    """
    Fills port PartFile with a real one.
    """

    def __init__(self, part: PartFile, life: Watcher) -> None:
        self._part = part
        self._life = life

    @property
    def size_bytes(self) -> int:
        """
        How many bytes have been written.
        """
        return self._part.size_bytes

    async def write(self, chunk: bytes) -> None:
        """
        Append the bytes.
        """
        if chunk and self._life.faults.hit("disk.limit_file"):
            reach = self._life.faults.between("disk.limit_file", 0.0, len(chunk) - 1.0)
            self._life.limit_next_work(self._part.size_bytes + int(reach))
        await self._part.write(chunk)
        await self._life.reach("part.written")

    async def inspect(self, look: Callable[[BinaryIO], T]) -> T:
        """
        Let `look` read what has been written.
        """
        return await self._part.inspect(look)

    async def commit(self, *, extension: str, media_type: str) -> FileRef:
        """
        Give the file its name.
        """
        await self._life.reach("part.commit.enter")
        file = await self._part.commit(extension=extension, media_type=media_type)
        await self._life.reach("part.commit.left")
        return file

    async def discard(self) -> None:
        """
        Delete what has been written.
        """
        await self._part.discard()
