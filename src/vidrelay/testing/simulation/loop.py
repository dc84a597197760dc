"""
An event loop in virtual time.

Time moves only when nothing can run, and then straight to the next timer. What a real loop gives to threads runs as a
handle of its own, so no thread exists and every run is the same. Each handle belongs to a process (a context variable
that tasks and callbacks inherit), and a process can be killed between any two handles: nothing of it ever runs again,
no `finally`, no `except`.
"""

import asyncio
import ctypes
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack
from weakref import WeakKeyDictionary

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = 1000.0
SPINS = 300_000
"""So many handles at one instant mean that something runs in circles."""

_GRAVEYARD: list[object] = []
# Not even the end of the interpreter frees it.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_GRAVEYARD))


class Killed(BaseException):
    """
    Unwinds what a process was doing when it was killed; nothing it does on the way has any effect.
    """


class Process:
    """
    Everything that dies together.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.tasks: list[_Task] = []
        self.context = copy_context()
        self.context.run(_PROCESS.set, self)

    def run(self, call: Callable[[], T]) -> T:
        """
        Call as a part of this process.
        """
        return self.context.run(call)


_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class _Task(asyncio.Task[Any]):
    """
    A task that is hashed by its number: a set of tasks has the same order in every run.
    """

    number: int

    def __new__(cls, *_: Any, loop: "VirtualLoop", **__: Any) -> Self:
        task = super().__new__(cls)
        task.number = loop.next_number()
        return task

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """
    Runs handles one by one.

    `latency` draws the seconds that a piece of thread's work waits before it is done; `work` does it. `surprises` are
    the errors that came out of callbacks and of tasks nobody looked at.
    """

    # What BaseEventLoop keeps; typeshed does not tell.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self.latency: Callable[[], float] = lambda: 0.0
        self.late_cancel: Callable[[], bool] = lambda: True
        self.work: Callable[[Callable[[], Any]], Any] = lambda call: call()
        self.surprises: list[str] = []
        self.count = 0
        self._virtual = EPOCH
        self._numbers = 0
        self._spun = 0
        self._halted = False
        self._lanes: WeakKeyDictionary[Executor, deque[Callable[[], None]]] = WeakKeyDictionary()
        self.set_task_factory(_make)
        self.set_exception_handler(self._note)

    # What asyncio asks for

    def time(self) -> float:
        """
        Virtual seconds.
        """
        return self._virtual

    def next_number(self) -> int:
        """
        A number for the next task.
        """
        self._numbers += 1
        return self._numbers

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """
        The same as `call_soon`: there are no threads.
        """
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # typeshed has a coroutine's type here
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """
        Do the work in a handle of its own, later; an executor that is named does one after the other.
        """
        _alive()
        future: asyncio.Future[T] = self.create_future()
        start = partial(self._start, executor, partial(func, *args), future)
        if executor is None:
            start()
            return future
        lane = self._lanes.setdefault(executor, deque())
        lane.append(start)
        if len(lane) == 1:
            start()
        return future

    def _start(self, executor: Executor | None, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        seconds = self.latency()
        if seconds > 0:
            self.call_later(seconds, self._do, executor, call, future)
        else:
            self.call_soon(self._do, executor, call, future)

    def _do(self, executor: Executor | None, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        # A thread that has begun cannot be called back; whether it had is chance.
        if not (future.cancelled() and self.late_cancel()):
            settle: Callable[[], None]
            try:
                result = self.work(call)
            except Killed:
                return
            except Exception as error:
                settle = partial(_settle, future, None, error)
            else:
                settle = partial(_settle, future, result, None)
            self.call_soon(settle)
        if executor is not None:
            lane = self._lanes[executor]
            lane.popleft()
            if lane:
                lane[0]()

    # Driving

    def start(self, process: Process, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """
        Make a task of the process.
        """
        return process.run(partial(self.create_task, coroutine))

    def run(self, *, seconds: float = 0.0, handles: int | None = None) -> None:
        """
        Run until so many seconds have passed and nothing is left to do then, or so many handles have run, or a kill.
        """
        end = self._virtual + seconds
        asyncio._set_running_loop(self)
        try:
            while handles is None or handles > 0:
                handle = self._next(end)
                if handle is None:
                    self._virtual = max(self._virtual, end)
                    return
                process = handle._context.get(_PROCESS)  # type: ignore[attr-defined]
                if process is not None and not process.alive:
                    continue
                self.count += 1
                handle._run()
                if self._halted:
                    self._halted = False
                    return
                if handles is not None:
                    handles -= 1
        finally:
            asyncio._set_running_loop(None)

    def _next(self, end: float) -> asyncio.Handle | None:
        while True:
            while self._ready:
                handle = self._ready.popleft()
                if not handle._cancelled:
                    self._spun += 1
                    if self._spun > SPINS:
                        raise AssertionError(f"something runs in circles: {handle!r}")
                    return handle
            while self._scheduled and self._scheduled[0]._cancelled:
                self._drop()
            if not self._scheduled or self._scheduled[0].when() > end:
                return None
            self._virtual = max(self._virtual, self._scheduled[0].when())
            self._spun = 0
            while self._scheduled and self._scheduled[0].when() <= self._virtual:
                timer = self._drop()
                self._ready.append(timer)

    def _drop(self) -> asyncio.TimerHandle:
        timer = heappop(self._scheduled)
        if timer._cancelled:
            self._timer_cancelled_count -= 1
        timer._scheduled = False  # type: ignore[attr-defined]
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._timer_cancelled_count += 1

    _timer_cancelled_count: int

    def kill(self, process: Process) -> None:
        """
        Let nothing of the process run any more, and stop after the handle that runs now, if one does.
        """
        process.alive = False
        self._halted = asyncio._get_running_loop() is self

    def bury(self, process: Process) -> None:
        """
        Keep the tasks of an ended process for ever: Python would run what they have left to do when it frees them.
        asyncio forgets them, for the end of every other loop looks through all that it knows.
        """
        for task in process.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            asyncio._unregister_task(task)
        _GRAVEYARD.append(process.tasks)

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        process = _PROCESS.get()
        if process is None or process.alive:
            self.surprises.append(f"{context.get('message')}: {context.get('exception')!r}")


def _alive() -> None:
    process = _PROCESS.get()
    if process is not None and not process.alive:
        raise Killed


def _make(loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None) -> "asyncio.Task[Any]":
    task = _Task(coroutine, loop=loop, context=context)  # type: ignore[arg-type]
    process = _PROCESS.get() if context is None else context.get(_PROCESS)
    if process is not None:
        process.tasks.append(task)
    return task


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
