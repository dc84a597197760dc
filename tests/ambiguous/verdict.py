"""
How each task must end, held against the provider's ledger and the log of events in the database.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from ambiguous.cases import Case
from vidrelay.core.adapter import Dedupe
from vidrelay.core.task import State, Task
from vidrelay.testing.simulation.ledger import Create, Job


class Fate(Enum):
    """
    What became of a create call: it was not even tried, it never left, it was cut, it was carried out unheard, or its
    answer came.
    """

    NEVER = "never_tried"
    UNSENT = "unsent"
    NOT_MADE = "not_made"
    MADE = "made_unheard"
    TOLD = "told"


LOST = (Fate.NOT_MADE, Fate.MADE)

AT_ONCE, AGAIN, FOUND, ABSENT, UNCERTAIN = "done", "again_and_done", "found", "absent_and_done", "uncertain"
"""How a task may end: the last waits for a person, the others are done."""

ENDINGS = {
    (): AT_ONCE,
    ("Deferred",): AGAIN,
    ("Lost", "Found"): FOUND,
    ("Lost", "Absent"): ABSENT,
    ("Lost",): UNCERTAIN,
}
"""By the events that tell of a create that was not simply answered."""

TELLING = frozenset({"Deferred", "Lost", "Found", "Absent", "ResubmitRequested", "Failed", "CancelRequested"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    A task at the end, and all there is to know of it.
    """

    task: Task
    fate: Fate
    events: tuple[str, ...]
    creates: tuple[Create, ...]
    jobs: tuple[Job, ...]


def judge(case: Case, tasks: Sequence[Seen]) -> Iterator[tuple[Seen, list[str], str]]:
    """
    For each task of a case what is wrong with it, and how it ended.
    """
    for seen in tasks:
        twin = next((other.fate for other in tasks if other is not seen), None)
        ending = _ending(seen)
        expected = _expected(case, seen.fate, twin)
        wrong = list(_ledger(case, seen, ending))
        if ending not in expected:
            told = f"{seen.task.id} ended as {ending} and not as {' or '.join(sorted(expected)) or 'anything'}"
            wrong.append(f"{told}; its create was {seen.fate.value}, its twin's {twin and twin.value}: {seen.events}")
        yield seen, wrong, ending


def _ending(seen: Seen) -> str:
    # While the account rests a task may be put back in line more than once.
    told = tuple(name for name, _ in groupby(name for name in seen.events if name in TELLING))
    ending = ENDINGS.get(told, f"unheard of: {told}")
    state = State.UNCERTAIN if ending == UNCERTAIN else State.DONE
    return ending if seen.task.state is state else f"{seen.task.state} by {told}"


def _expected(case: Case, fate: Fate, twin: Fate | None) -> set[str]:
    if fate is Fate.NEVER:
        return set()  # every account has room for its tasks
    if fate is Fate.TOLD:
        return {AT_ONCE}
    if fate is Fate.UNSENT or case.protection is Dedupe.REPLAY:
        return {AGAIN}
    if not case.looked_up:
        return {UNCERTAIN}
    if case.protection is Dedupe.LIST and Fate.MADE in (fate, twin) and twin in LOST:
        return {UNCERTAIN}  # which of two equal ones a job is cannot be told
    if fate is Fate.NOT_MADE:
        return {ABSENT} if case.complete else {UNCERTAIN}
    # By our own id it is clear whose a job is; still, a twin that is lost at that time may be reason to wait.
    return {FOUND, UNCERTAIN} if twin in LOST else {FOUND}


def _ledger(case: Case, seen: Seen, ending: str) -> Iterator[str]:
    """
    The invariants by number, from what the provider wrote down.
    """
    task = seen.task
    if len(seen.jobs) > 1:
        yield f"invariant 3: {task.id} was made {len(seen.jobs)} times"
    answered = [create.told for create in seen.creates if create.delivered]
    if answered and task.remote_id != answered[-1]:
        yield f"invariant 5: {task.id} was answered with {answered[-1]} and has {task.remote_id}"
    if task.remote_id is not None and [job.id for job in seen.jobs] != [task.remote_id]:
        yield f"invariant 10: {task.id} has {task.remote_id}, which is not its own job"
    if task.remote_id is None and ending != UNCERTAIN:
        yield f"invariant 5: {task.id} has no remote id"
    allowed = 1 + (ending == ABSENT) + (ending == AGAIN and seen.fate is not Fate.UNSENT)
    if len(seen.creates) > allowed:
        yield f"invariant 16: {task.id} was sent {len(seen.creates)} times, and ended as {ending}"
    if case.protection is not Dedupe.REPLAY and any(create.repeated for create in seen.creates):
        yield f"{task.id} was sent again where no repeated create is told apart"


def must_occur() -> set[tuple[str, str, str]]:
    """
    The ways for a task to end that a sweep must have seen: kind of protection, fate of its create, ending.
    """
    ways = {
        (Fate.UNSENT, AGAIN): ("replay", "reject", "none", *_LOOKED_UP),
        (Fate.TOLD, AT_ONCE): ("replay", "reject", "none", *_LOOKED_UP),
        (Fate.NOT_MADE, AGAIN): ("replay",),
        (Fate.MADE, AGAIN): ("replay",),
        (Fate.NOT_MADE, UNCERTAIN): ("reject", "none", "list", "list_incomplete", "client_id_incomplete"),
        (Fate.MADE, UNCERTAIN): ("reject", "none", *_LOOKED_UP),
        (Fate.NOT_MADE, ABSENT): ("client_id", "list"),
        (Fate.MADE, FOUND): _LOOKED_UP,
    }
    return {(kind, fate.value, ending) for (fate, ending), kinds in ways.items() for kind in kinds}


_LOOKED_UP = ("client_id", "client_id_incomplete", "list", "list_incomplete")
