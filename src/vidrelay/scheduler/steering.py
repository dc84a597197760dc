"""
What people and apps want to become of a task that is there, or of an account that rests.
"""

from vidrelay.core.adapter import Scope
from vidrelay.core.errors import WrongState
from vidrelay.core.lifecycle import Abandoned, CancelRequested, Event, Found, ResubmitRequested
from vidrelay.core.task import CancelOutcome, RemoteState, Resolution, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.adopting import Adopter
from vidrelay.scheduler.looking import Looker
from vidrelay.scheduler.loop import Loop
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.track import NOT_HELD

CANCEL_WAIT_SECONDS = 5.0


class Steering:
    """
    Saves what is wanted as an event, and wakes the loop, which does it.
    """

    def __init__(self, tools: Tools, loop: Loop, looker: Looker) -> None:
        self._tools = tools
        self._loop = loop
        self._looker = looker
        self._adopter = Adopter(tools)

    async def cancel(self, task_id: str, *, unless_begun: bool = False) -> tuple[Task, CancelOutcome]:
        """
        End the task here and, where the provider can, there; returns it with what can be said of the wish by then.
        With `unless_begun` it goes on where its provider cannot stop it any more; a restart of the relay forgets that.

        Raises:
            UnknownTask: There is none.
        """
        task = await self._looker.get(task_id)
        if (track := self._tools.roster.track(task_id)) is not None:
            # Who wants it gone whatever it costs is not outweighed by who does not.
            track.unless_begun = unless_begun and (track.unless_begun or not task.cancel_wanted)
        begun = task.state is State.DOWNLOADING or task.remote_state is RemoteState.WORKING
        is_late = task.ended or (unless_begun and begun)
        moved = None if is_late else await self._tools.saver.try_save(task, CancelRequested(), patient=False)
        if moved is None:
            return await self._looker.get(task_id), CancelOutcome.TOO_LATE
        if moved.ended and task.state in (State.QUEUED, State.DOWNLOADING):
            self._loop.interrupt(task_id)
        self._loop.wake(task_id)
        moved = await self._looker.once(
            moved, lambda now: now.cancel is not CancelOutcome.PENDING or now.ended, seconds=CANCEL_WAIT_SECONDS
        )
        return moved, moved.cancel or CancelOutcome.PENDING

    async def forget(self, task_id: str) -> Task:
        """
        Let a task's result go: what has not ended is cancelled, and the files of what is done are deleted.

        Raises:
            UnknownTask: There is none.
        """
        task = await self._looker.get(task_id)
        if not task.ended:
            task, _ = await self.cancel(task_id)
        if task.state is State.DONE:
            await self._tools.cache.forget(task)
        return task

    async def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> Task:
        """
        Settle an uncertain task as a person says.

        Raises:
            UnknownTask: There is none.
            WrongState: It is not uncertain.
            InvalidRequest: `adopt` names no remote id, one that the provider's ids do not look like, or one that the
                provider says it does not know.
            DuplicateRemote: That remote job belongs to another task.
        """
        task = await self._looker.get(task_id)
        if task.state is not State.UNCERTAIN:
            raise WrongState(f"the task is {task.state}, and only an uncertain one can be resolved")
        event: Event
        match action:
            case Resolution.RETRY:
                event = ResubmitRequested()
            case Resolution.ABANDON:
                event = Abandoned()
            case Resolution.ADOPT:
                event = Found(remote_id=await self._adopter.check(task, remote_id))
        moved = await self._tools.saver.try_save(task, event, patient=False)
        if moved is None:
            raise WrongState("the task is no longer uncertain")
        self._loop.wake(task_id)
        return moved

    async def resume(self, account: Account) -> None:
        """
        Lift an account's pause, and whatever holds single tasks of it.
        """
        tools = self._tools
        account.lift()
        for scope in Scope:
            await tools.book.set_pause(account.name, scope, None)
        for task_id, track in tools.roster.active():
            task = tools.roster.get_driven(task_id)
            if task is not None and task.account == account.name:
                track.held_until = NOT_HELD
                self._loop.wake(task_id)
        self._loop.wake()
