"""
The client's blocking face, for programs that are not async.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vidrelay.client.calls import WAIT_SECONDS, open_client
from vidrelay.client.views import TaskEvent, TaskView
from vidrelay.core.task import Request, Resolution, State


class BlockingClient:
    """
    Every method of `Client`, waited for. Use it as a context manager; not inside a running event loop.
    """

    def __init__(
        self,
        state_dir: str | Path | None = None,
        *,
        start: bool = True,
        config: str | Path | None = None,
        app: str | None = None,
    ) -> None:
        """
        Takes what `open_client` takes.
        """
        self._opening = open_client(state_dir, start=start, config=config, app=app)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """
        Connect.

        Raises:
            RelayUnavailable: There is no relay, or it does not start.
        """
        try:
            self._client = self._runner.run(self._opening.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """
        Close every connection.
        """
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()

    async def _close(self) -> None:
        await self._opening.__aexit__(None, None, None)

    def health(self) -> Mapping[str, Any]:
        """
        See `Client.health`.
        """
        return self._runner.run(self._client.health())

    def generate(self, request: Request, *, key: str | None = None) -> TaskView:
        """
        See `Client.generate`.
        """
        return self._runner.run(self._client.generate(request, key=key))

    def task(self, task_id: str) -> TaskView:
        """
        See `Client.task`.
        """
        return self._runner.run(self._client.task(task_id))

    def wait(self, task_id: str, *, seconds: int = WAIT_SECONDS, seen: State | None = None) -> TaskView:
        """
        See `Client.wait`.
        """
        return self._runner.run(self._client.wait(task_id, seconds=seconds, seen=seen))

    def ended(self, task_id: str) -> TaskView:
        """
        See `Client.ended`.
        """
        return self._runner.run(self._client.ended(task_id))

    def tasks(
        self,
        *,
        states: Sequence[State] = (),
        account: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> tuple[list[TaskView], str | None]:
        """
        See `Client.tasks`.
        """
        return self._runner.run(self._client.tasks(states=states, account=account, limit=limit, cursor=cursor))

    def events(self, *, task_id: str | None = None, after: str | None = None) -> Iterator[TaskEvent]:
        """
        See `Client.events`.
        """
        stream = self._client.events(task_id=task_id, after=after)

        async def following() -> TaskEvent | None:
            return await anext(stream, None)

        while (event := self._runner.run(following())) is not None:
            yield event

    def cancel(self, task_id: str) -> TaskView:
        """
        See `Client.cancel`.
        """
        return self._runner.run(self._client.cancel(task_id))

    def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> TaskView:
        """
        See `Client.resolve`.
        """
        return self._runner.run(self._client.resolve(task_id, action, remote_id=remote_id))

    def accounts(self) -> list[Mapping[str, Any]]:
        """
        See `Client.accounts`.
        """
        return self._runner.run(self._client.accounts())

    def resume(self, account: str) -> Mapping[str, Any]:
        """
        See `Client.resume`.
        """
        return self._runner.run(self._client.resume(account))

    def check(self, account: str) -> Mapping[str, Any]:
        """
        See `Client.check`.
        """
        return self._runner.run(self._client.check(account))

    def stats(self) -> Mapping[str, Any]:
        """
        See `Client.stats`.
        """
        return self._runner.run(self._client.stats())

    def add_asset(self, path: str | Path) -> str:
        """
        See `Client.add_asset`.
        """
        return self._runner.run(self._client.add_asset(path))

    def cached(self) -> Mapping[str, Any]:
        """
        See `Client.cached`.
        """
        return self._runner.run(self._client.cached())

    def verify_cache(self) -> Mapping[str, Any]:
        """
        See `Client.verify_cache`.
        """
        return self._runner.run(self._client.verify_cache())

    def clear_cache(self) -> Mapping[str, Any]:
        """
        See `Client.clear_cache`.
        """
        return self._runner.run(self._client.clear_cache())

    def save_result(self, task_id: str, path: str | Path, *, index: int = 0) -> Path:
        """
        See `Client.save_result`.
        """
        return self._runner.run(self._client.save_result(task_id, path, index=index))

    def login_code(self) -> str:
        """
        See `Client.login_code`.
        """
        return self._runner.run(self._client.login_code())

    def shutdown(self) -> None:
        """
        See `Client.shutdown`.
        """
        self._runner.run(self._client.shutdown())
