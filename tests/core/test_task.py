"""
What a task's record tells about itself.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vidrelay.core.task import ENDED, LIVE, RemoteTimes, Request, State, Task, Timings

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SKEW = timedelta(hours=3)
"""How far the provider's clock is ahead of ours."""


def at(second: float) -> datetime:
    return NOW + timedelta(seconds=second)


def there(second: float) -> datetime:
    return at(second) + SKEW


def new_task(state: State = State.RUNNING, **changes: object) -> Task:
    task = Task(
        id="t1",
        account="main",
        provider="openai",
        window="*",
        model_version=None,
        request=Request(prompt="a cat"),
        parameters={},
        fingerprint="f" * 64,
        created_at=NOW,
        updated_at=NOW,
        state=state,
    )
    return replace(task, **changes)


def done(times: RemoteTimes = RemoteTimes(), **changes: object) -> Task:  # noqa: B008 frozen
    """
    A task that waited 1 s, was accepted at 3, seen working at 10, ready at 40, and saved at 45.
    """
    task = new_task(
        State.DONE,
        started_at=at(1),
        accepted_at=at(3),
        working_at=at(10),
        ready_at=at(40),
        finished_at=at(45),
        remote_times=times,
    )
    return replace(task, **changes)


def test_nothing_is_told_of_what_has_not_happened() -> None:
    """
    A task that has just been queued has no timings at all.
    """
    assert new_task(State.QUEUED).timings() == Timings()


def test_a_provider_that_tells_nothing_is_measured_by_what_was_seen() -> None:
    """
    Without told times the segments lie between the moments that we saw ourselves.
    """
    assert done().timings() == Timings(wait=1, submit=2, queue=7, execute=30, return_=None, download=5, total=45)


def test_a_provider_that_tells_all_is_believed_whatever_its_clock_shows() -> None:
    """
    Told times count by their distances, so that a provider's clock hours ahead makes no difference.
    """
    told = RemoteTimes(created_at=there(3), started_at=there(8), completed_at=there(38))
    assert done(told).timings() == Timings(wait=1, submit=2, queue=5, execute=30, return_=2, download=5, total=45)


def test_told_times_count_for_nothing_without_the_moment_of_creation() -> None:
    """
    Without the told creation the provider's clock cannot be set against ours, and what we saw counts.
    """
    told = RemoteTimes(started_at=there(8), completed_at=there(38))
    assert done(told).timings() == done().timings()


def test_told_times_count_for_nothing_before_the_task_is_accepted() -> None:
    """
    Told times of a task that was never accepted give no timings.
    """
    told = RemoteTimes(created_at=there(3), completed_at=there(38))
    assert new_task(State.UNCERTAIN, remote_times=told).timings() == Timings()


def test_a_creation_without_more_tells_nothing_more() -> None:
    """
    A told creation alone changes none of the timings.
    """
    assert done(RemoteTimes(created_at=there(3))).timings() == done().timings()


def test_a_completion_in_whole_seconds_is_not_after_we_learned_of_it() -> None:
    """
    A told completion later than we saw it is held to that moment: nothing was returned in negative time.
    """
    told = RemoteTimes(created_at=there(3), started_at=there(8), completed_at=there(41))
    timings = done(told).timings()
    assert (timings.execute, timings.return_) == (32, 0)


def test_a_completion_can_be_told_before_it_is_seen() -> None:
    """
    Queue and execution are known once the completion is told, though we have not seen the result.
    """
    told = RemoteTimes(created_at=there(3), started_at=there(8), completed_at=there(38))
    timings = new_task(accepted_at=at(3), remote_times=told).timings()
    assert (timings.queue, timings.execute, timings.return_) == (5, 30, None)


def test_a_measured_run_is_taken_as_told_and_the_rest_was_queue() -> None:
    """
    A run that the provider measured is the execution, and the remaining remote time the queue.
    """
    timings = done(RemoteTimes(created_at=there(3), completed_at=there(38), execute_seconds=20.0)).timings()
    assert (timings.queue, timings.execute) == (15, 20)


def test_a_measured_run_with_a_told_start_leaves_the_queue_as_told() -> None:
    """
    Where the start is told too, the queue ends there, whatever the measured run.
    """
    told = RemoteTimes(created_at=there(3), started_at=there(8), completed_at=there(38), execute_seconds=20.0)
    timings = done(told).timings()
    assert (timings.queue, timings.execute) == (5, 20)


def test_a_measured_run_longer_than_the_whole_leaves_no_queue() -> None:
    """
    A measured run longer than the remote time leaves a queue of zero, not a negative one.
    """
    assert done(RemoteTimes(execute_seconds=100.0)).timings().queue == 0


def test_a_measured_run_of_no_length_is_a_measure() -> None:
    """
    A measured run of zero seconds is taken as told, and not as untold.
    """
    timings = done(RemoteTimes(execute_seconds=0.0)).timings()
    assert (timings.queue, timings.execute) == (37, 0)


def test_a_measured_run_tells_of_no_queue_before_the_end_is_known() -> None:
    """
    Before the end is known a measured run gives the execution, and no queue.
    """
    timings = new_task(accepted_at=at(3), remote_times=RemoteTimes(execute_seconds=20.0)).timings()
    assert (timings.queue, timings.execute) == (None, 20)


def test_a_task_never_seen_working_tells_no_halves() -> None:
    """
    Where no start of work is known, queue and execution are both left untold.
    """
    timings = done(working_at=None).timings()
    assert (timings.queue, timings.execute) == (None, None)


@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        (done(RemoteTimes(created_at=there(3), completed_at=there(38))), 35),
        (done(), 37),
        (done(working_at=None), 37),
        (done(accepted_at=at(50), working_at=None), 0),
        (new_task(State.RUNNING, accepted_at=at(3)), None),
    ],
    ids=["told", "learned", "never seen at work", "clock set back", "not ready"],
)
def test_remote_work_lasts_from_acceptance_to_completion(task: Task, seconds: float | None) -> None:
    """
    Remote seconds run from acceptance to the completion, told or else learned, and are never negative.
    """
    assert task.remote_seconds() == seconds


def test_a_clock_that_was_set_back_makes_no_negative_segment() -> None:
    """
    Segments whose end lies before their beginning are zero.
    """
    timings = done(started_at=at(-60), finished_at=at(30)).timings()
    assert (timings.wait, timings.download) == (0, 0)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_only_a_done_task_was_downloaded(state: State) -> None:
    """
    A task that failed or was cancelled has a total and no download segment.
    """
    timings = done(state=state).timings()
    assert (timings.download, timings.total) == (None, 45)


@pytest.mark.parametrize("state", State)
def test_a_task_has_ended_or_lives(state: State) -> None:
    """
    Every state is either one of the ended or one of the live, and `ended` says which.
    """
    assert new_task(state).ended is (state in ENDED) is (state not in LIVE)


@pytest.mark.parametrize("state", State)
def test_submitting_and_running_tasks_take_a_place(state: State) -> None:
    """
    Without a place kept for longer, a task takes one exactly while submitting or running.
    """
    assert new_task(state).holds_place(NOW) is (state in (State.SUBMITTING, State.RUNNING))


@pytest.mark.parametrize("state", [State.UNCERTAIN, State.CANCELLED, State.EXPIRED])
def test_a_job_that_may_still_run_takes_a_place_until_it_cannot(state: State) -> None:
    """
    `place_until` keeps a place up to that instant, also for tasks that have ended for us.
    """
    task = new_task(state, place_until=at(10))
    assert task.holds_place(at(9.9))
    assert not task.holds_place(at(10))
