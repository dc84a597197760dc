"""
The state table, and what every path through it keeps.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from vidrelay.core.errors import IllegalTransition
from vidrelay.core.lifecycle import (
    TRANSITIONS,
    Abandoned,
    Absent,
    Accepted,
    Answered,
    Cancelled,
    CancelRequested,
    CancelTooLate,
    DeadlinePassed,
    Deferred,
    Event,
    Failed,
    Found,
    Lost,
    Ready,
    ResubmitRequested,
    Saved,
    Started,
    StillRunning,
    Vanished,
    advance,
)
from vidrelay.core.task import (
    ENDED,
    LIVE,
    CancelOutcome,
    FileRef,
    Problem,
    RemoteFile,
    RemoteState,
    RemoteTimes,
    Request,
    State,
    Task,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=30)
PROBLEM = Problem(code="broken", title="Broken", detail="It broke.")
OUTPUT = RemoteFile(url="https://cdn.example/clip.mp4")
FILE = FileRef(index=0, path="aa/t-0.mp4", size_bytes=9, sha256="00", media_type="video/mp4")

ONE_OF_EACH: dict[type[Event], Event] = {
    type(event): event
    for event in (
        Started(submission_key="k"),
        Accepted(remote_id="r1"),
        Answered(remote_id="r1", outputs=(OUTPUT,)),
        Deferred(detail="busy"),
        Failed(problem=PROBLEM),
        Lost(problem=PROBLEM, place_until=LATER),
        Found(remote_id="r1"),
        Absent(),
        ResubmitRequested(),
        Abandoned(),
        StillRunning(),
        Ready(outputs=(OUTPUT,)),
        Vanished(problem=PROBLEM),
        DeadlinePassed(problem=PROBLEM, place_until=LATER),
        CancelRequested(),
        Cancelled(outcome=CancelOutcome.STOPPED),
        CancelTooLate(),
        Saved(files=(FILE,)),
    )
}

STEPS = [(state, event) for state in State for event in ONE_OF_EACH]

LEAVES = {
    State.QUEUED: {State.SUBMITTING, State.CANCELLED, State.FAILED},
    State.SUBMITTING: {State.RUNNING, State.QUEUED, State.UNCERTAIN, State.FAILED},
    State.UNCERTAIN: {State.RUNNING, State.QUEUED, State.FAILED, State.CANCELLED},
    State.RUNNING: {State.DOWNLOADING, State.FAILED, State.CANCELLED, State.EXPIRED},
    State.DOWNLOADING: {State.DONE, State.FAILED, State.CANCELLED},
    **{state: set() for state in ENDED},
}
"""
The contract's section 2, said once more by hand.
"""


def new_task(state: State = State.QUEUED, **changes: object) -> Task:
    task = Task(
        id="t1",
        account="main",
        provider="openai",
        window="*",
        model_version="m",
        request=Request(prompt="a cat"),
        parameters={"prompt": "a cat"},
        fingerprint="f" * 64,
        created_at=NOW,
        updated_at=NOW,
    )
    return replace(task, state=state, **changes)


def after(*events: Event, task: Task | None = None) -> Task:
    """
    The task after these events, one second apart.
    """
    task = task or new_task()
    for event in events:
        task = advance(task, event, task.updated_at + timedelta(seconds=1))
    return task


# The table ------------------------------------------------------------------------------------------------------------


def test_there_is_a_sample_of_every_event() -> None:
    """
    The samples that these tests run through leave out no event.
    """
    assert set(ONE_OF_EACH) == set(get_args(Event))


@pytest.mark.parametrize(("state", "kind"), STEPS, ids=lambda part: getattr(part, "__name__", str(part)))
def test_every_event_does_in_every_state_what_the_table_says(state: State, kind: type[Event]) -> None:
    """
    An event leads to the state in the table; what is not there is an illegal transition.
    """
    task = new_task(state)
    following = TRANSITIONS[state].get(kind)
    if following is None:
        with pytest.raises(IllegalTransition, match=kind.__name__):
            advance(task, ONE_OF_EACH[kind], LATER)
    else:
        assert advance(task, ONE_OF_EACH[kind], LATER).state is following


@pytest.mark.parametrize("state", State)
def test_the_table_leads_where_the_contract_says(state: State) -> None:
    """
    From each state the table leads to the states that the contract names, and to no other.
    """
    assert set(TRANSITIONS[state].values()) - {state} == LEAVES[state]


def test_every_state_can_be_reached() -> None:
    """
    Following the table from queued comes to every state.
    """
    reached, ahead = set[State](), [State.QUEUED]
    while ahead:
        state = ahead.pop()
        if state not in reached:
            reached.add(state)
            ahead += TRANSITIONS[state].values()
    assert reached == set(State)


def test_every_live_state_can_end() -> None:
    """
    From every live state some single event leads to an ended one.
    """
    for state in LIVE:
        assert set(TRANSITIONS[state].values()) & ENDED


@pytest.mark.parametrize("state", sorted(ENDED))
def test_an_ended_task_takes_no_event(state: State) -> None:
    """
    The table has no event for a state that is final.
    """
    assert TRANSITIONS[state] == {}


# What events carry ----------------------------------------------------------------------------------------------------


def test_the_key_of_a_create_is_stored_with_its_start() -> None:
    """
    `Started` stores the submission key, counts the attempt and keeps when it began.
    """
    task = after(Started(submission_key="once"))
    assert (task.submission_key, task.attempts, task.started_at) == ("once", 1, task.updated_at)


def test_each_start_is_an_attempt() -> None:
    """
    A create that is begun again after a deferral counts as the second attempt.
    """
    assert after(Started(submission_key="a"), Deferred(detail="busy"), Started(submission_key="b")).attempts == 2


def test_an_accepted_task_keeps_what_the_provider_told() -> None:
    """
    `Accepted` keeps the remote id, state and times; waiting there is not yet working.
    """
    times = RemoteTimes(created_at=NOW)
    task = after(Started(submission_key="k"), Accepted(remote_id="r1", remote_state=RemoteState.WAITING, times=times))
    assert (task.remote_id, task.remote_state, task.remote_times) == ("r1", RemoteState.WAITING, times)
    assert (task.accepted_at, task.working_at) == (task.updated_at, None)


def test_an_answered_create_is_running_with_its_result_at_hand() -> None:
    """
    `Answered` runs with its outputs, accepted and working from the same instant.
    """
    task = after(Started(submission_key="k"), Answered(remote_id="r1", outputs=(OUTPUT,)))
    assert (task.state, task.outputs, task.remote_id) == (State.RUNNING, (OUTPUT,), "r1")
    assert task.working_at == task.accepted_at == task.updated_at


def test_the_first_sight_of_work_is_kept() -> None:
    """
    Later polls that see the task working do not move the moment it was first seen so.
    """
    working = StillRunning(remote_state=RemoteState.WORKING)
    first = after(Started(submission_key="k"), Accepted(remote_id="r1"), working)
    assert after(working, task=first).working_at == first.updated_at


def test_a_remote_state_never_goes_backwards() -> None:
    """
    A poll that tells waiting after working leaves the remote state at working.
    """
    task = after(
        Started(submission_key="k"),
        Accepted(remote_id="r1", remote_state=RemoteState.WORKING),
        StillRunning(remote_state=RemoteState.WAITING),
    )
    assert task.remote_state is RemoteState.WORKING


def test_a_poll_that_tells_no_remote_state_forgets_none() -> None:
    """
    A poll without a remote state leaves the last known one.
    """
    task = after(
        Started(submission_key="k"), Accepted(remote_id="r1", remote_state=RemoteState.WAITING), StillRunning()
    )
    assert task.remote_state is RemoteState.WAITING


def test_told_times_are_gathered_over_polls() -> None:
    """
    Times that events tell one after another are put together, and none is lost.
    """
    made, begun, ended = (NOW + timedelta(seconds=second) for second in (1, 2, 3))
    task = after(
        Started(submission_key="k"),
        Accepted(remote_id="r1", times=RemoteTimes(created_at=made)),
        StillRunning(times=RemoteTimes(started_at=begun, execute_seconds=0.0)),
        Ready(outputs=(OUTPUT,), times=RemoteTimes(completed_at=ended)),
    )
    assert task.remote_times == RemoteTimes(created_at=made, started_at=begun, completed_at=ended, execute_seconds=0.0)


def test_a_fresh_address_does_not_move_the_moment_of_completion() -> None:
    """
    A second `Ready` replaces the outputs and leaves `ready_at` where it was.
    """
    ready = after(Started(submission_key="k"), Accepted(remote_id="r1"), Ready(outputs=(OUTPUT,)))
    fresh = RemoteFile(url="https://cdn.example/fresh.mp4")
    renewed = after(Ready(outputs=(fresh,)), task=ready)
    assert (renewed.outputs, renewed.ready_at) == ((fresh,), ready.ready_at)


def test_a_done_task_has_its_files_and_no_error() -> None:
    """
    `Saved` ends the task with its files and clears the problem of an earlier deferral.
    """
    task = after(
        Started(submission_key="k"),
        Accepted(remote_id="r1"),
        Ready(outputs=(OUTPUT,)),
        Deferred(detail="refused", problem=PROBLEM),
        Saved(files=(FILE,)),
    )
    assert (task.state, task.files, task.error) == (State.DONE, (FILE,), None)


def test_a_deferral_can_tell_what_to_mend() -> None:
    """
    A deferral back to queued keeps the problem that it carries.
    """
    task = after(Started(submission_key="k"), Deferred(detail="no balance", problem=PROBLEM))
    assert (task.state, task.error) == (State.QUEUED, PROBLEM)


@pytest.mark.parametrize("ending", [Failed(problem=PROBLEM), Vanished(problem=PROBLEM)])
def test_a_task_that_failed_says_why_and_holds_no_place(ending: Event) -> None:
    """
    A failed or vanished job leaves its problem on the task and frees its place.
    """
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), ending)
    assert (task.state, task.error, task.holds_place(NOW)) == (State.FAILED, PROBLEM, False)


# Uncertain ------------------------------------------------------------------------------------------------------------

LOST = (Started(submission_key="k"), Lost(problem=PROBLEM, place_until=LATER))


def test_a_lost_create_keeps_its_place_for_a_while_and_says_what_it_may_have_cost() -> None:
    """
    `Lost` keeps the place until the told instant and the problem on the task.
    """
    task = after(*LOST)
    assert (task.state, task.error) == (State.UNCERTAIN, PROBLEM)
    assert task.holds_place(LATER - timedelta(seconds=1))
    assert not task.holds_place(LATER)


def test_what_a_lost_create_may_have_cost_stays_said_while_it_is_looked_for() -> None:
    """
    A deferred look-up does not clear the problem of the lost create.
    """
    assert after(*LOST, Deferred(detail="the list was empty")).error == PROBLEM


def test_a_found_task_runs_without_an_error() -> None:
    """
    `Found` gives the remote id, clears problem and kept place, and the task runs.
    """
    task = after(*LOST, Found(remote_id="r1", remote_state=RemoteState.WORKING))
    assert (task.state, task.remote_id, task.error, task.place_until) == (State.RUNNING, "r1", None, None)


@pytest.mark.parametrize(
    ("told", "accepted"),
    [(None, 2), (NOW + timedelta(seconds=1.5), 1.5), (NOW - timedelta(hours=1), 1), (NOW + timedelta(hours=1), 2)],
    ids=["untold", "told", "before it was sent", "after it was found"],
)
def test_a_found_task_was_accepted_when_its_provider_made_it(told: datetime | None, accepted: float) -> None:
    """
    The told creation is taken as acceptance, held between the sending and the finding.
    """
    lost = after(Started(submission_key="k"))
    lost = advance(lost, LOST[1], NOW + timedelta(seconds=1))
    found = advance(lost, Found(remote_id="r1", times=RemoteTimes(created_at=told)), NOW + timedelta(seconds=2))
    assert found.accepted_at == NOW + timedelta(seconds=accepted)


def test_a_job_that_was_adopted_without_a_start_was_accepted_after_the_task_was_made() -> None:
    """
    Without a start, acceptance is never told earlier than the task's creation.
    """
    task = new_task(State.UNCERTAIN)
    found = advance(task, Found(remote_id="r1", times=RemoteTimes(created_at=NOW - timedelta(days=1))), LATER)
    assert found.accepted_at == NOW


@pytest.mark.parametrize("settled", [Absent(), ResubmitRequested()])
def test_a_create_to_be_sent_again_waits_in_line_and_holds_no_place(settled: Event) -> None:
    """
    A create known absent, or to be sent again, is queued with neither problem nor place.
    """
    task = after(*LOST, settled)
    assert (task.state, task.error, task.place_until) == (State.QUEUED, None, None)


@pytest.mark.parametrize("ending", [CancelRequested(), Abandoned()])
def test_an_uncertain_task_given_up_keeps_its_place_since_its_job_may_run(ending: Event) -> None:
    """
    Giving up an uncertain task cancels it here, and its place stays taken.
    """
    task = after(*LOST, ending)
    assert (task.state, task.cancel, task.cancel_wanted) == (State.CANCELLED, CancelOutcome.LOCAL, True)
    assert task.holds_place(NOW)


# Cancelling -----------------------------------------------------------------------------------------------------------


def test_a_queued_task_is_cancelled_on_the_spot() -> None:
    """
    A wish to cancel ends a queued task at once, with the outcome that nothing was sent.
    """
    task = after(CancelRequested())
    assert (task.state, task.cancel) == (State.CANCELLED, CancelOutcome.LOCAL)


@pytest.mark.parametrize("back", [Deferred(detail="busy"), Absent(), ResubmitRequested()])
def test_a_task_that_comes_back_to_queued_with_a_wish_to_cancel_is_cancelled(back: Event) -> None:
    """
    A wish to cancel that is pending is carried out as soon as the task would be queued again.
    """
    state = State.SUBMITTING if isinstance(back, Deferred) else State.UNCERTAIN
    task = advance(new_task(state, cancel_wanted=True, cancel=CancelOutcome.PENDING), back, LATER)
    assert (task.state, task.cancel, task.finished_at) == (State.CANCELLED, CancelOutcome.LOCAL, LATER)


def test_a_wish_to_cancel_outlives_a_lost_create() -> None:
    """
    A wish made while submitting is still pending after the create was lost and found.
    """
    task = after(Started(submission_key="k"), CancelRequested(), LOST[1], Found(remote_id="r1"))
    assert (task.state, task.cancel_wanted, task.cancel) == (State.RUNNING, True, CancelOutcome.PENDING)


def test_a_running_task_is_cancelled_when_its_provider_was_asked() -> None:
    """
    A running task stays so until its provider was asked, and then ends and frees its place.
    """
    asked = after(Started(submission_key="k"), Accepted(remote_id="r1"), CancelRequested())
    assert (asked.state, asked.cancel) == (State.RUNNING, CancelOutcome.PENDING)
    stopped = after(Cancelled(outcome=CancelOutcome.STOPPED), task=asked)
    assert (stopped.state, stopped.cancel, stopped.holds_place(NOW)) == (
        State.CANCELLED,
        CancelOutcome.STOPPED,
        False,
    )


def test_a_job_that_cannot_be_stopped_keeps_its_place() -> None:
    """
    A cancelled task whose provider cannot stop the job keeps its place for the told time.
    """
    ending = Cancelled(outcome=CancelOutcome.UNSUPPORTED, place_until=LATER)
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), CancelRequested(), ending)
    assert task.holds_place(LATER - timedelta(seconds=1))


def test_an_expired_job_keeps_its_place() -> None:
    """
    A task past its deadline is expired with its problem, and its place is kept.
    """
    ending = DeadlinePassed(problem=PROBLEM, place_until=LATER)
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), ending)
    assert (task.state, task.error, task.place_until) == (State.EXPIRED, PROBLEM, LATER)


def test_a_wish_that_came_too_late_lets_the_task_go_on() -> None:
    """
    When the provider says it is too late to cancel, the task runs on with that outcome.
    """
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), CancelRequested(), CancelTooLate())
    assert (task.state, task.cancel, task.cancel_wanted) == (State.RUNNING, CancelOutcome.TOO_LATE, True)


def test_a_task_that_was_to_be_stopped_unless_begun_is_wanted_again() -> None:
    """
    Where it had begun, the wish is over: equal requests may join the task.
    """
    wished = (Started(submission_key="k"), Accepted(remote_id="r1"), CancelRequested())
    task = after(*wished, CancelTooLate(begun=True))
    assert (task.state, task.cancel, task.cancel_wanted) == (State.RUNNING, CancelOutcome.TOO_LATE, False)


@pytest.mark.parametrize(
    "ending",
    [
        Ready(outputs=(OUTPUT,)),
        Failed(problem=PROBLEM),
        Vanished(problem=PROBLEM),
        DeadlinePassed(problem=PROBLEM, place_until=LATER),
    ],
)
def test_a_wish_that_the_end_overtook_was_too_late(ending: Event) -> None:
    """
    A job that ends while the wish to cancel is pending gives that wish the outcome too late.
    """
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), CancelRequested(), ending)
    assert task.cancel is CancelOutcome.TOO_LATE


def test_a_download_can_be_cancelled_though_the_work_is_paid() -> None:
    """
    Cancelling while downloading ends the task, with the outcome that it was too late to save money.
    """
    task = after(Started(submission_key="k"), Accepted(remote_id="r1"), Ready(outputs=(OUTPUT,)), CancelRequested())
    assert (task.state, task.cancel) == (State.CANCELLED, CancelOutcome.TOO_LATE)


# Every path -----------------------------------------------------------------------------------------------------------

remote_ids = st.sampled_from(["r1", "r2", "r3"])
remote_states = st.sampled_from([None, *RemoteState])
instants = st.one_of(st.none(), st.integers(-3600, 3600).map(lambda second: NOW + timedelta(seconds=second)))
times = st.builds(
    RemoteTimes,
    created_at=instants,
    started_at=instants,
    completed_at=instants,
    execute_seconds=st.one_of(st.none(), st.floats(0, 1e6)),
)
until = st.integers(-60, 7200).map(lambda second: NOW + timedelta(seconds=second))
SOME_OF_EACH: dict[type[Event], st.SearchStrategy[Event]] = {
    **{kind: st.just(event) for kind, event in ONE_OF_EACH.items()},
    Accepted: st.builds(Accepted, remote_id=remote_ids, remote_state=remote_states, times=times),
    Answered: st.builds(Answered, remote_id=remote_ids, outputs=st.just((OUTPUT,)), times=times),
    Deferred: st.builds(Deferred, detail=st.just("later"), problem=st.sampled_from([None, PROBLEM])),
    Lost: st.builds(Lost, problem=st.just(PROBLEM), place_until=until),
    Found: st.builds(Found, remote_id=remote_ids, remote_state=remote_states, times=times),
    StillRunning: st.builds(StillRunning, remote_state=remote_states, times=times),
    Ready: st.builds(Ready, outputs=st.just((OUTPUT,)), times=times),
    DeadlinePassed: st.builds(DeadlinePassed, problem=st.just(PROBLEM), place_until=until),
    Cancelled: st.builds(Cancelled, outcome=st.sampled_from(CancelOutcome), place_until=st.none() | until),
}


class Life(RuleBasedStateMachine):
    """
    Any events in any order, under a clock that may jump either way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.task = new_task()
        self.before = self.task
        self.now = NOW

    @rule(seconds=st.integers(-3600, 3600))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(data=st.data())
    def something_fitting_happens(self, data: st.DataObject) -> None:
        """
        Most random events fit nowhere; this one does, so that the paths are long.
        """
        fitting = [kind for kind in SOME_OF_EACH if kind in TRANSITIONS[self.task.state]]
        if fitting:
            self.happen(data.draw(SOME_OF_EACH[data.draw(st.sampled_from(fitting))]))

    @rule(event=st.one_of(*SOME_OF_EACH.values()))
    def something_happens(self, event: Event) -> None:
        self.happen(event)

    def happen(self, event: Event) -> None:
        self.before = self.task
        legal = type(event) in TRANSITIONS[self.task.state]
        try:
            self.task = advance(self.task, event, self.now)
        except IllegalTransition:
            assert not legal
        else:
            assert legal
            assert (self.task.version, self.task.updated_at) == (self.before.version + 1, self.now)

    @invariant()
    def final_stays_final(self) -> None:
        if self.before.ended:
            assert self.task == self.before

    @invariant()
    def finished_at_is_set_exactly_when_ended(self) -> None:
        assert (self.task.finished_at is not None) == self.task.ended

    @invariant()
    def what_the_provider_has_carries_its_id(self) -> None:
        if self.task.state in (State.RUNNING, State.DOWNLOADING, State.DONE, State.EXPIRED):
            assert self.task.remote_id
            assert self.task.accepted_at

    @invariant()
    def a_remote_id_never_changes(self) -> None:
        assert self.before.remote_id in (None, self.task.remote_id)

    @invariant()
    def a_create_has_a_stored_intent(self) -> None:
        if self.task.state in (State.SUBMITTING, State.UNCERTAIN, State.RUNNING):
            assert self.task.submission_key
            assert self.task.started_at

    @invariant()
    def a_failure_says_why(self) -> None:
        if self.task.state in (State.FAILED, State.EXPIRED, State.UNCERTAIN):
            assert self.task.error

    @invariant()
    def a_wish_to_cancel_is_never_lost(self) -> None:
        assert self.task.cancel_wanted >= self.before.cancel_wanted
        assert not (self.task.cancel_wanted and self.task.state is State.QUEUED)

    @invariant()
    def an_ended_task_leaves_no_wish_pending(self) -> None:
        if self.task.ended:
            assert self.task.cancel is not CancelOutcome.PENDING

    @invariant()
    def a_done_task_has_files(self) -> None:
        assert bool(self.task.files) == (self.task.state is State.DONE)

    @invariant()
    def a_task_in_line_holds_no_place(self) -> None:
        if self.task.state is State.QUEUED:
            assert not self.task.holds_place(datetime.min.replace(tzinfo=UTC))

    @invariant()
    def no_segment_is_negative(self) -> None:
        told = self.task.timings()
        for seconds in (told.wait, told.submit, told.queue, told.execute, told.return_, told.download, told.total):
            assert seconds is None or seconds >= 0


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
