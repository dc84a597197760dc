"""
SQLite's own way to the disk, made to fail or watched from inside: a VFS around the system's, by ctypes.

What fails here fails where a disk fails, under the real SQLite: a write is refused, comes short, or cannot be made
durable. Needs no root and no file system of its own. Each database file is known by its name.
"""

import _sqlite3
import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass

FULL, IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE = 13, 10 | 3 << 8, 10 | 4 << 8, 10 | 6 << 8


@dataclass(frozen=True, slots=True)
class Op:
    """
    One thing that SQLite asks of a file: `kind` is `write`, `sync`, `truncate` or `delete`.
    """

    kind: str
    path: str
    offset: int = 0
    data: bytes = b""


Verdict = int | tuple[int, int] | None
"""None: as asked. A result code: fails with it. A pair: so many bytes are written, then it fails with the code."""


class _File(Structure):
    pass


class _Methods(Structure):
    pass


class _Vfs(Structure):
    pass


# Names are passed on as the pointers they are: SQLite keeps them, and looks for parameters behind their end.
_OPEN = CFUNCTYPE(c_int, POINTER(_Vfs), c_void_p, POINTER(_File), c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, POINTER(_Vfs), c_void_p, c_int)
_CLOSE = CFUNCTYPE(c_int, POINTER(_File))
_WRITE = CFUNCTYPE(c_int, POINTER(_File), c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, POINTER(_File), c_int64)
_SYNC = CFUNCTYPE(c_int, POINTER(_File), c_int)

_File._fields_ = [("methods", POINTER(_Methods))]
_Methods._fields_ = [
    ("version", c_int),
    ("close", _CLOSE),
    ("read", c_void_p),
    ("write", _WRITE),
    ("truncate", _TRUNCATE),
    ("sync", _SYNC),
    *((f"other_{number}", c_void_p) for number in range(13)),
]
_Vfs._fields_ = [
    ("version", c_int),
    ("file_size", c_int),
    ("max_path", c_int),
    ("next", c_void_p),
    ("name", c_char_p),
    ("data", c_void_p),
    ("open", _OPEN),
    ("delete", _DELETE),
    *((f"other_{number}", c_void_p) for number in range(14)),
]


class _Disk:
    """
    The VFS, registered once in a process and made the default one while it is in use.
    """

    def __init__(self) -> None:
        # The library that the sqlite3 module itself uses, whichever that is.
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        self._library.sqlite3_vfs_register.argtypes = (POINTER(_Vfs), c_int)
        self.judge: Callable[[Op], Verdict] = lambda _: None
        self._below = self._library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._below.contents)
        self._vfs.next, self._vfs.name = None, b"vidrelay-faulty"
        self._vfs.open, self._vfs.delete = _OPEN(self._open), _DELETE(self._delete)
        self._tables: dict[int, tuple[_Methods, _Methods]] = {}
        self._paths: dict[int, str] = {}
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 0)

    def use(self, judge: Callable[[Op], Verdict]) -> None:
        self.judge = judge
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)

    def leave(self) -> None:
        self.judge = lambda _: None
        self._library.sqlite3_vfs_register(self._below, 1)

    def _open(self, _: object, name: int | None, file: "ctypes._Pointer[_File]", flags: int, out: object) -> int:
        code = self._below.contents.open(self._below, name, file, flags, out)
        if code == 0 and name is not None:
            address = ctypes.addressof(file.contents)
            self._paths[address] = _text(name)
            file.contents.methods = ctypes.pointer(self._table(file.contents.methods))
        return int(code)

    def _table(self, below: "ctypes._Pointer[_Methods]") -> _Methods:
        address = ctypes.addressof(below.contents)
        if address not in self._tables:
            ours = _Methods.from_buffer_copy(below.contents)
            theirs = _Methods.from_buffer_copy(below.contents)
            ours.close = _CLOSE(lambda file: self._close(theirs, file))
            ours.write = _WRITE(lambda *call: self._write(theirs, *call))
            ours.truncate = _TRUNCATE(lambda *call: self._truncate(theirs, *call))
            ours.sync = _SYNC(lambda *call: self._sync(theirs, *call))
            self._tables[address] = ours, theirs
        return self._tables[address][0]

    def _path(self, file: "ctypes._Pointer[_File]") -> str:
        return self._paths[ctypes.addressof(file.contents)]

    def _delete(self, _: object, name: int, sync: int) -> int:
        verdict = self.judge(Op("delete", _text(name)))
        return verdict if isinstance(verdict, int) else int(self._below.contents.delete(self._below, name, sync))

    def _close(self, below: _Methods, file: "ctypes._Pointer[_File]") -> int:
        self._paths.pop(ctypes.addressof(file.contents), None)
        return int(below.close(file))

    def _write(self, below: _Methods, file: "ctypes._Pointer[_File]", data: int, count: int, offset: int) -> int:
        verdict = self.judge(Op("write", self._path(file), offset, ctypes.string_at(data, count)))
        if isinstance(verdict, tuple):
            done, verdict = verdict
            below.write(file, data, min(done, count), offset)
        return verdict if verdict is not None else int(below.write(file, data, count, offset))

    def _truncate(self, below: _Methods, file: "ctypes._Pointer[_File]", size: int) -> int:
        verdict = self.judge(Op("truncate", self._path(file), size))
        return verdict if isinstance(verdict, int) else int(below.truncate(file, size))

    def _sync(self, below: _Methods, file: "ctypes._Pointer[_File]", flags: int) -> int:
        verdict = self.judge(Op("sync", self._path(file)))
        return verdict if isinstance(verdict, int) else int(below.sync(file, flags))


def _text(name: int) -> str:
    return os.fsdecode(ctypes.string_at(name))


_disk: _Disk | None = None


@contextmanager
def disk(judge: Callable[[Op], Verdict]) -> Iterator[None]:
    """
    Let every connection that is opened meanwhile do its disk work as `judge` says, until the block ends.

    `judge` is called in whatever thread works, before the work is done; it must not raise.
    """
    global _disk  # noqa: PLW0603 SQLite keeps the pointers as long as the process lives
    _disk = _disk or _Disk()
    _disk.use(judge)
    try:
        yield
    finally:
        _disk.leave()
