"""
Follows tasks before the user's eyes: a live line each on a terminal, plain lines elsewhere.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from vidrelay.cli.terminal import console, say, shortened, span
from vidrelay.cli.words import left, percent, stage
from vidrelay.clock import SystemClock
from vidrelay.core.clock import Clock
from vidrelay.core.task import State

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from vidrelay.client.calls import Client
    from vidrelay.client.views import TaskView

UNCERTAIN_SECONDS = 20.0
"""How long a task may stay uncertain before a watcher gives up: the first two look-ups fall into it."""

_TOLD_STEP = 0.25


class Display(Protocol):
    """
    Where the standing of tasks is shown. A context manager.
    """

    def __enter__(self) -> Self:
        """
        Begin to show.
        """
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """
        Stop showing.
        """
        ...

    def show(self, task: "TaskView") -> None:
        """
        Show how the task stands now.
        """
        ...


class Quiet:
    """
    Shows nothing.
    """

    def __enter__(self) -> Self:
        """
        Nothing to begin.
        """
        return self

    def __exit__(self, *_: object) -> None:
        """
        Nothing to end.
        """

    def show(self, task: "TaskView") -> None:
        """
        Nothing to show.
        """


class Lines(Quiet):
    """
    One plain line for each change that a person cares about, for logs and pipes.
    """

    def __init__(self, *, named: bool) -> None:
        """
        `named` begins each line with the task's id.
        """
        self._named = named
        self._told: dict[str, tuple[str, float]] = {}

    def show(self, task: "TaskView") -> None:
        """
        Write a line if the stage has changed, or another quarter of the work is done.
        """
        if task.ended and not self._named:
            # How it ended is said by the command itself.
            return
        words, progress = stage(task), task.progress or 0.0
        known, reached = self._told.get(task.id, ("", 0.0))
        if words == known and progress < reached + _TOLD_STEP:
            return
        self._told[task.id] = (words, progress)
        parts = [part for part in (words, percent(task), left(task)) if part]
        say((f"{task.id}  " if self._named else "") + ", ".join(parts))


class Live(Quiet):
    """
    One line for each task, drawn again as it moves.
    """

    def __init__(self, screen: "Console", *, named: bool) -> None:
        """
        `named` adds each task's id and prompt.
        """
        from rich.live import Live as RichLive

        self._named = named
        self._tasks: dict[str, TaskView] = {}
        self._spinners: dict[str, RenderableType] = {}
        self._screen = screen
        self._clock = SystemClock()
        self._began: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        # What can be drawn depends on the moment (the spinner turns), so it is asked for again at each refresh.
        self._live = RichLive(console=screen, get_renderable=self._drawn, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        """
        Take the bottom of the terminal.
        """
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """
        Give it back.
        """
        self._live.stop()

    def show(self, task: "TaskView") -> None:
        """
        Draw the task as it is now; one that has ended leaves its last line behind.
        """
        if task.ended and self._named:
            self._tasks.pop(task.id, None)
            self._live.console.print(f"{task.id}  {stage(task)}  {shortened(task.prompt, 40)}")
            return
        now = self._heard[task.id] = self._clock.monotonic()
        self._began.setdefault(task.id, now)
        self._tasks[task.id] = task

    def _drawn(self) -> "RenderableType":
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        room = max(3, self._screen.height - 2)
        now = self._clock.monotonic()
        for task in list(self._tasks.values())[:room]:
            bar = ProgressBar(total=1.0, completed=task.progress or 0.0, width=24, pulse=task.progress is None)
            waiting = task.state in (State.QUEUED, State.UNCERTAIN)
            cells: list[RenderableType] = [
                self._spinners.setdefault(task.id, Spinner("dots", style="cyan")),
                Text(stage(task), style="yellow" if waiting else "bold"),
                Text("") if waiting else bar,
                Text(percent(task)),
                Text(left(task, since=now - self._heard[task.id]) or span(now - self._began[task.id]), style="dim"),
            ]
            if self._named:
                cells += [Text(task.id, style="dim"), Text(shortened(task.prompt, 30), style="dim")]
            grid.add_row(*cells)
        if len(self._tasks) > room:
            grid.add_row("", Text(f"and {len(self._tasks) - room} more"))
        return grid


def display(*, named: bool = False, quiet: bool = False) -> Display:
    """
    The right display for where stderr goes.
    """
    if quiet:
        return Quiet()
    screen = console()
    return Live(screen, named=named) if screen.is_terminal and not screen.is_dumb_terminal else Lines(named=named)


async def follow(
    client: "Client", tasks: Sequence["TaskView"], show: Callable[["TaskView"], None], *, clock: Clock | None = None
) -> Mapping[str, "TaskView"]:
    """
    Follow tasks until each has ended or stayed uncertain for too long; returns how they stand then, by id.

    Args:
        client: The relay.
        tasks: As they are known now.
        show: Told of every change and of progress.
        clock: None: the machine's own.
    """
    following = _Following(client, tasks, show, clock or SystemClock())
    return await following.run()


class _Following:
    def __init__(
        self, client: "Client", tasks: Sequence["TaskView"], show: Callable[["TaskView"], None], clock: Clock
    ) -> None:
        self._client = client
        self._show = show
        self._clock = clock
        self._known = {task.id: task for task in tasks}
        self._uncertain_since: dict[str, float] = {}
        self._changed = asyncio.Event()

    async def run(self) -> Mapping[str, "TaskView"]:
        for task in list(self._known.values()):
            self._take(task)
        async with asyncio.TaskGroup() as group:
            # Announcements make it lively; looking now and then makes it sure, for an end can fall between two streams.
            listener = group.create_task(self._listen())
            looker = group.create_task(self._look())
            while self._open():
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._changed.wait()
            listener.cancel()
            looker.cancel()
        return self._known

    def _open(self) -> list[str]:
        now = self._clock.monotonic()
        return [
            task.id
            for task in self._known.values()
            if not task.ended and now - self._uncertain_since.get(task.id, now) < UNCERTAIN_SECONDS
        ]

    def _take(self, task: "TaskView") -> None:
        known = self._known.get(task.id)
        if known is None or (known.ended and known.json is not task.json):
            return
        self._known[task.id] = task
        if task.state is State.UNCERTAIN:
            self._uncertain_since.setdefault(task.id, self._clock.monotonic())
        else:
            self._uncertain_since.pop(task.id, None)
        self._show(task)
        self._changed.set()

    async def _listen(self) -> None:
        only = next(iter(self._known)) if len(self._known) == 1 else None
        async for event in self._client.events(task_id=only):
            if event.task.id in self._known:
                self._take(event.task)

    async def _look(self) -> None:
        if len(self._known) == 1:
            await self._hold(next(iter(self._known)))
            return
        while True:
            await self._clock.sleep(5.0)
            # The oldest are likeliest to have ended unseen.
            for task_id in self._open()[:20]:
                self._take(await self._client.task(task_id))

    async def _hold(self, task_id: str) -> None:
        while not self._known[task_id].ended:
            self._take(await self._client.wait(task_id, seconds=25, seen=self._known[task_id].state))
