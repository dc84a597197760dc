"""
What a task's standing is called before people.
"""

from vidrelay.cli.terminal import shortened, shown, span
from vidrelay.client.views import TaskView
from vidrelay.core.task import BlockReason, CancelOutcome, RemoteState, State

_BLOCKED = {
    BlockReason.RATE: "the provider asks to wait",
    BlockReason.BALANCE: "the account is out of balance; top it up, then: vidrelay accounts --resume {account}",
    BlockReason.AUTH: "the provider refuses the key of {account}, or no account has that name; mend it, "
    "then: vidrelay accounts --resume {account}",
    BlockReason.DAILY_LIMIT: "the daily limit is reached",
    BlockReason.DISK: "the disk is full",
    BlockReason.NETWORK: "the provider cannot be reached, or does not answer as it should; tried again",
}

_CANCEL = {
    CancelOutcome.STOPPED: "stopped, at the provider too",
    CancelOutcome.TOO_LATE: "too late, it had ended",
    CancelOutcome.UNSUPPORTED: "stopped here; the provider cannot stop it, so it may run on there",
    CancelOutcome.LOCAL: "stopped here; the provider was not asked",
    CancelOutcome.PENDING: "noted; not settled yet",
}


def stage(task: TaskView) -> str:
    """
    Where the task stands: its stage, its place in line, and what holds it up.
    """
    held = task.blocked.reason if task.blocked else None
    if held in _BLOCKED:
        return _BLOCKED[held].format(account=shown(task.account)) + _more(task)
    match task.state:
        case State.QUEUED:
            return "next in line" if not task.ahead else f"in line, {task.ahead} ahead"
        case State.SUBMITTING:
            return "handing over"
        case State.UNCERTAIN:
            return "unclear whether the provider took it; looking"
        case State.RUNNING if task.remote_state is RemoteState.WAITING:
            place = "" if task.queue_position is None else f", place {task.queue_position}"
            return f"in the provider's line{place}"
        case State.RUNNING:
            return "generating"
        case State.DOWNLOADING:
            return "fetching"
        case State.FAILED if task.error:
            return f"failed: {shortened(task.error.detail or task.error.title, 300)}"
        case State.EXPIRED if task.error:
            return f"expired: {shortened(task.error.detail or task.error.title, 300)}"
        case State.CANCELLED if task.cancel:
            return f"cancelled: {_CANCEL[task.cancel]}"
        case _:
            return str(task.state)


def _more(task: TaskView) -> str:
    """
    Until when the task is held up, and what the provider said of it.
    """
    held = task.blocked
    if held is None:
        return ""
    word = "at" if held.reason == BlockReason.NETWORK else "until"
    until = f" {word} {held.until:%H:%M:%S} UTC" if held.until else ""
    return until + (f" ({shortened(held.detail, 300)})" if held.detail else "")


def cancelled(task: TaskView) -> str:
    """
    What a wish to cancel came to.
    """
    return _CANCEL[task.cancel] if task.cancel else "not cancelled"


def left(task: TaskView, *, since: float = 0.0) -> str:
    """
    The time left, or nothing where it is not known; `since`: seconds since the relay told this.
    """
    if task.eta is None or task.ended:
        return ""
    seconds, low, high = (max(0.0, part - since) for part in (task.eta.seconds, task.eta.low, task.eta.high))
    if high <= 0:
        return "any moment now"
    if high - low > 1:
        return f"about {span(seconds)} left ({span(low)} to {span(high)})"
    return f"about {span(seconds)} left"


def percent(task: TaskView) -> str:
    """
    How far it is, or nothing where that is not told.
    """
    return "" if task.progress is None else f"{task.progress * 100:.0f} %"


def ending(task: TaskView) -> str:
    """
    One sentence for how the task stands at the end.
    """
    if task.state is State.DONE:
        took = f" in {span(task.timings.total)}" if task.timings.total is not None else ""
        cost = f", {shown(task.cost)}" if task.cost else ""
        return f"done{took}{cost}"
    if task.state is State.UNCERTAIN:
        return (
            "uncertain: the request may have reached the provider, and may be charged. It is not sent again.\n"
            f"  look again:   vidrelay watch {task.id}\n"
            f"  it was taken: vidrelay resolve {task.id} --adopt REMOTE_ID\n"
            f"  send again:   vidrelay resolve {task.id} --retry\n"
            f"  give it up:   vidrelay resolve {task.id} --abandon"
        )
    return stage(task)


def come_back(task_id: str) -> str:
    """
    How to come back to a task that goes on.
    """
    return (
        "The task goes on.\n"
        f"  watch it: vidrelay watch {task_id}\n"
        f"  save it:  vidrelay result {task_id} -o FILE\n"
        f"  stop it:  vidrelay cancel {task_id}"
    )
