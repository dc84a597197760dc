"""
The one thread that reads, on a connection that can change nothing.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from vidrelay.core.errors import StoreError
from vidrelay.store.failures import failure
from vidrelay.store.statements import Session

T = TypeVar("T")


class Reader:
    """
    Runs reads on its connection, which it closes at the end.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vidrelay-store-reader")
        self._closed = False

    async def run(self, read: Callable[[Session], T]) -> T:
        """
        Run a read; all its statements see the database at one moment, with everything that was committed before.

        Raises:
            StoreError: The database failed, or is closed.
        """
        if self._closed:
            raise StoreError("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._at_one_moment, read)

    async def aclose(self) -> None:
        """
        Let waiting reads finish and close the connection.
        """
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown()

    def _at_one_moment(self, read: Callable[[Session], T]) -> T:
        try:
            self._connection.execute("BEGIN")
            try:
                return read(Session(self._connection))
            finally:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise failure(error) from error
