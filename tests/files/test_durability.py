"""
A name never stands for bytes that a power cut could take away: the order of what is asked of the system.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from vidrelay.client.beacon import write_private
from vidrelay.core.disk import ResultName
from vidrelay.files.local import LocalFiles


class Asked:
    """
    The system's own fsync and replace, written down. It is the system that is watched here, not code of ours.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._fsync, self._replace = os.fsync, os.replace

    def __enter__(self) -> Self:
        os.fsync, os.replace = self.fsync, self.replace
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync, os.replace = self._fsync, self._replace

    def fsync(self, descriptor: int) -> None:
        """Note which file or folder it is."""
        self._fsync(descriptor)
        self.calls.append(("sync", os.fstat(descriptor).st_ino))

    def replace(self, source: Any, target: Any, **kwargs: Any) -> None:
        """Note the new name."""
        self._replace(source, target, **kwargs)
        self.calls.append(("name", Path(target)))


@pytest.fixture
def asked() -> Iterator[Asked]:
    """
    Watch the system for one test.
    """
    with Asked() as watching:
        yield watching


async def test_a_result_is_durable_before_it_has_its_name_and_its_name_is_durable_after(asked, tmp_path) -> None:
    """Bytes, then name, then the folders that hold the name."""
    part = await LocalFiles(tmp_path / "cache").part(ResultName(fingerprint="ab12" * 16, task_id="tsk_1", index=0))
    asked.calls.clear()  # the new folders' own
    await part.write(b"clip")
    await part.commit(extension="mp4", media_type="video/mp4")
    (path,) = (tmp_path / "cache").rglob("*.mp4")
    folders = [("sync", folder.stat().st_ino) for folder in (path.parent, path.parent.parent)]
    assert asked.calls == [("sync", path.stat().st_ino), ("name", path), *folders]


def test_a_small_file_is_durable_before_it_has_its_name(asked, tmp_path) -> None:
    """relay.json and keep.json are the old one or the new one, never half of either."""
    write_private(tmp_path / "relay.json", "{}")
    path = tmp_path / "relay.json"
    assert asked.calls == [("sync", path.stat().st_ino), ("name", path), ("sync", tmp_path.stat().st_ino)]
