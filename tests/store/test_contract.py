"""
Ports Store, AccountBook and ResultIndex, held against every implementation that the fixture `store` knows.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from vidrelay.core.adapter import Quota, Scope
from vidrelay.core.errors import DuplicateRemote, IdempotencyConflict, StaleTask, UnknownAsset, UnknownTask
from vidrelay.core.lifecycle import (
    Abandoned,
    Accepted,
    Cancelled,
    CancelRequested,
    Deferred,
    Failed,
    Found,
    Lost,
    Ready,
    Saved,
    Started,
    StillRunning,
    advance,
)
from vidrelay.core.ports import How, Pause, RemoteCopy, ToldLimits, ToldQuota
from vidrelay.core.task import (
    ENDED,
    LIVE,
    Asset,
    CancelOutcome,
    Money,
    Priority,
    Reference,
    RemoteFile,
    RemoteState,
    RemoteTimes,
    State,
)
from vidrelay.store.rows import Codec
from vidrelay.testing.clock import START
from vidrelay.testing.records import PROBLEM, events_to, make_file, make_request, make_task, moved
from vidrelay.testing.stored import add, bring, rule

MINUTE = timedelta(minutes=1)


async def place(store, *, limit=1, window="main", now=START, key="key"):
    return await store.take_place(account="main", window=window, limit=limit, submission_key=key, now=now)


async def save(store, task, event, *, at=None):
    return await store.save(moved(task, event, at=at), event, expected_version=task.version)


# Records --------------------------------------------------------------------------------------------------------------


async def test_new_task_is_kept_whole(store):
    """
    A task comes back as it was given, with its place in line and its entry in the log.
    """
    request = make_request(
        "two 雨 lanterns, a broken \ud83d too",
        references=(Reference(asset="sha256:1", role="first"), Reference(url="https://a.test/x.png")),
        extra={"seed": 2**60, "nested": {"a": [1.5, None, True]}},
        metadata={"k": "v"},
        duration=5.0,
        priority=Priority.BATCH,
    )
    task = make_task(
        request=request,
        app="studio",
        cost=Money(amount=Decimal("0.350"), currency="USD"),
        created_at=datetime(2026, 11, 30, 12, 0, 0, 123457, tzinfo=UTC),
    )
    admission = await store.add(task, rule())
    kept = await store.get(task.id)
    assert admission.how is How.CREATED
    assert kept == admission.task == replace(task, seq=kept.seq, event_id=kept.event_id)
    assert kept.seq > 0
    assert kept.event_id > 0


async def test_moved_task_is_kept_whole(store):
    """
    Everything that a task gains on its way is kept.
    """
    times = RemoteTimes(created_at=START - MINUTE, started_at=START, completed_at=START + MINUTE, execute_seconds=3.25)
    outputs = (RemoteFile(url="https://a.test/1"), RemoteFile(url="https://a.test/2", needs_key=True))
    outputs += (
        RemoteFile(url="https://a.test/3", needs_key=True, inside="/steps/0/data", otherwise="https://b.test/"),
    )
    task = await bring(store, make_task(), State.RUNNING)
    task = await save(store, task, CancelRequested())
    task = await save(store, task, StillRunning(remote_state=RemoteState.WORKING, times=times), at=START + MINUTE)
    task = await save(store, task, Ready(outputs=outputs, times=times))
    task = await save(store, task, Deferred(detail="slow", problem=PROBLEM))
    assert await store.get(task.id) == task
    done = await save(store, task, Saved(files=(make_file(0), make_file(1))))
    assert await store.get(task.id) == done
    assert done.outputs == outputs
    assert done.remote_times == times


def test_an_output_is_kept_as_before_where_nothing_is_new():
    """
    A row of a relay that knew no files inside an answer is read, and one that has none is written as it was.
    """
    codec, told = Codec(RemoteFile), {"url": "https://a.test/1", "needs_key": True}
    output = RemoteFile(url="https://a.test/1", needs_key=True)
    assert codec.decode(told) == output
    assert codec.encode(output) == told


@pytest.mark.parametrize("state", State)
async def test_every_state_is_kept(store, state):
    """
    A task can be brought to every state and is found in it.
    """
    task = await bring(store, make_task(), state)
    assert (await store.get(task.id)).state is state
    assert await store.get(task.id) == task


async def test_unknown_task(store):
    """
    An id that no task has is an error that names it.
    """
    with pytest.raises(UnknownTask, match="nobody"):
        await store.get("nobody")


async def test_id_belongs_to_one_task(store):
    """
    A second task of the same id is refused, and its submit is not counted.
    """
    task = make_task()
    await add(store, task)
    with pytest.raises(Exception, match=r"tasks\.id"):
        await store.add(replace(task, fingerprint="other"), rule())
    assert (await store.counters())["submits"] == 1


# Submits: twins -------------------------------------------------------------------------------------------------------


async def test_thousand_identical_submits_make_one_task(store):
    """
    Of a thousand identical submits at once one makes the task and the rest join it.
    """
    tasks = [make_task(fingerprint="same") for _ in range(1000)]
    admissions = await asyncio.gather(*(store.add(task, rule()) for task in tasks))
    assert [admission.how for admission in admissions].count(How.CREATED) == 1
    assert {admission.task.id for admission in admissions} == {tasks[0].id}
    assert (await store.get(tasks[0].id)).joins == 999
    counters = await store.counters()
    assert (counters["submits"], counters["deduped"]) == (1000, 999)


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_unended_task_is_a_twin_however_old(store, state):
    """
    A submit joins an unended task of its fingerprint, whatever its age.
    """
    twin = await bring(store, make_task(fingerprint="fp"), state)
    admission = await store.add(make_task(fingerprint="fp"), rule(twins_since=START + MINUTE))
    assert (admission.how, admission.task) == (How.JOINED, replace(twin, joins=1))


async def test_without_join_live_only_the_window_counts(store):
    """
    With `join_live` off, a live task is a twin only if it was made inside the window.
    """
    await add(store, make_task(fingerprint="fp"))
    late = await store.add(make_task(fingerprint="fp"), rule(join_live=False, twins_since=START + MINUTE))
    assert late.how is How.CREATED
    again = await store.add(make_task(fingerprint="fp"), rule(join_live=False))
    assert (again.how, again.task.id) == (How.JOINED, late.task.id)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.EXPIRED])
async def test_task_that_ended_without_a_result_is_no_twin(store, state):
    """
    What failed, was cancelled or expired is made anew.
    """
    await bring(store, make_task(fingerprint="fp"), state)
    assert (await store.add(make_task(fingerprint="fp"), rule())).how is How.CREATED


async def test_task_with_a_wish_to_cancel_is_no_twin(store):
    """
    Nobody joins a task that is about to be stopped.
    """
    task = await bring(store, make_task(fingerprint="fp"), State.RUNNING)
    await save(store, task, CancelRequested())
    assert (await store.add(make_task(fingerprint="fp"), rule())).how is How.CREATED


async def test_newest_twin_answers(store):
    """
    Of several twins the newest answers.
    """
    await add(store, make_task(fingerprint="fp"))
    newer = await store.add(make_task(fingerprint="fp", forced=True), rule())
    assert newer.how is How.CREATED
    assert (await store.add(make_task(fingerprint="fp"), rule())).task.id == newer.task.id


async def test_done_task_in_the_window_is_a_twin_while_its_result_is_here(store):
    """
    A done task inside the window is joined where the cache's answers are too old.
    """
    no_cache = rule(cached_since=START + MINUTE)
    await bring(store, make_task(fingerprint="fp"), State.DONE)
    assert (await store.add(make_task(fingerprint="fp"), no_cache)).how is How.JOINED
    later = replace(no_cache, twins_since=START + MINUTE)
    assert (await store.add(make_task(fingerprint="fp"), later)).how is How.CREATED


async def test_evicted_done_task_is_no_twin(store):
    """
    A done task inside the window without its result is made anew.
    """
    task = await bring(store, make_task(fingerprint="fp"), State.DONE)
    await store.forget(task.id)
    assert (await store.add(make_task(fingerprint="fp"), rule())).how is How.CREATED


async def test_join_is_told_and_kept_through_later_saves(store):
    """
    A join reaches the listener, and a save by somebody who has not heard of it does not undo it.
    """
    told = []
    store.on_commit = told.append
    (task,) = await add(store, make_task(fingerprint="fp"))
    await store.add(make_task(fingerprint="fp"), rule())
    assert told == [task, replace(task, joins=1)]
    started = await save(store, task, Started(submission_key="k"))
    assert started.joins == 1
    assert (await store.get(task.id)).joins == 1


# Submits: forced, cached, resent --------------------------------------------------------------------------------------


async def test_forced_submit_makes_a_task_beside_twin_and_cache(store):
    """
    A forced submit is answered by nothing earlier.
    """
    await bring(store, make_task(fingerprint="fp"), State.DONE)
    await add(store, make_task(fingerprint="fp", forced=True))
    assert (await store.add(make_task(fingerprint="fp", forced=True), rule())).how is How.CREATED


async def test_cached_result_answers_and_is_marked_as_used(store):
    """
    The newest result answers before any twin, counts as a cache hit, and is no longer the coldest.
    """
    first = await bring(store, make_task(fingerprint="fp"), State.DONE)
    other = await bring(store, make_task(fingerprint="fq"), State.DONE)
    later = START + 5 * MINUTE
    admission = await store.add(make_task(fingerprint="fp", created_at=later), rule())
    assert (admission.how, admission.task) == (How.CACHED, first)
    coldest, _ = await store.results(coldest=2)
    assert [(result.task_id, result.used_at) for result in coldest] == [(other.id, START), (first.id, later)]
    counters = await store.counters()
    assert (counters["cacheHits"], counters.get("deduped")) == (1, None)


async def test_newest_result_answers(store):
    """
    Of two versions of a result the newer one is the cache's answer.
    """
    await bring(store, make_task(fingerprint="fp"), State.DONE)
    newer = await bring(store, make_task(fingerprint="fp", forced=True, created_at=START + MINUTE), State.DONE)
    assert (await store.add(make_task(fingerprint="fp"), rule())).task.id == newer.id


async def test_old_result_does_not_answer(store):
    """
    A result from before `cached_since` is made anew.
    """
    await bring(store, make_task(fingerprint="fp"), State.DONE)
    late = rule(cached_since=START + MINUTE, twins_since=START + MINUTE)
    assert (await store.add(make_task(fingerprint="fp"), late)).how is How.CREATED


async def test_resend_of_a_forced_submit_joins_its_first_try(store):
    """
    A submit that says it is a resend joins the newest task, forced or not, also where live ones are not joined.
    """
    (first,) = await add(store, make_task(fingerprint="fp", forced=True))
    resend = rule(resend=True, join_live=False, twins_since=START + MINUTE)
    admission = await store.add(make_task(fingerprint="fp", forced=True), resend)
    assert (admission.how, admission.task.id) == (How.JOINED, first.id)


async def test_forced_resend_is_not_answered_from_an_older_result(store):
    """
    A forced resend whose first try never arrived makes its task, whatever the cache holds.
    """
    await bring(store, make_task(fingerprint="fp"), State.DONE)
    resend = rule(resend=True, twins_since=START + MINUTE)
    assert (await store.add(make_task(fingerprint="fp", forced=True), resend)).how is How.CREATED


async def test_forced_submit_joins_the_forced_task_whose_answer_was_cut_off(store):
    """
    A forced task made in the last moments of an earlier life is the first try of the next forced submit, and of that
    one alone: its SDK may be sending it again without saying so.
    """
    (first,) = await add(store, make_task(fingerprint="fp", forced=True))
    again = rule(cut_off=(START, START + MINUTE))
    joined = await store.add(make_task(fingerprint="fp", forced=True, created_at=START + MINUTE), again)
    assert (joined.how, joined.task.id) == (How.JOINED, first.id)
    another = await store.add(make_task(fingerprint="fp", forced=True, created_at=START + MINUTE), again)
    assert another.how is How.CREATED


@pytest.mark.parametrize(
    ("earlier", "cut_off"),
    [
        ({"forced": True}, (START + MINUTE, START + 2 * MINUTE)),
        ({"forced": True}, (START - MINUTE, START)),
        ({"forced": False}, (START, START + MINUTE)),
        ({"forced": True, "app": "another"}, (START, START + MINUTE)),
        ({"forced": True, "fingerprint": "other"}, (START, START + MINUTE)),
    ],
    ids=["answered", "of this life", "not forced", "another app", "another wish"],
)
async def test_forced_submit_joins_no_other_task(store, earlier, cut_off):
    """
    Whoever asks for another version gets one, unless it can be the very same submit.
    """
    await add(store, make_task(**{"fingerprint": "fp", **earlier}))
    answer = await store.add(make_task(fingerprint="fp", forced=True), rule(cut_off=cut_off))
    assert answer.how is How.CREATED


# Submits: names that clients give -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", sorted(State))
async def test_client_key_gives_its_task_however_late(store, state):
    """
    The same client key gets the same task, in whatever state it is, and counts as deduped.
    """
    keyed = rule(client_key="k")
    first = await store.add(make_task(fingerprint="fp"), keyed)
    task = first.task
    for event in events_to(state, task):
        task = await save(store, task, event)
    again = await store.add(make_task(fingerprint="fp"), keyed)
    assert (again.how, again.task) == (How.REPEATED, task)
    assert (await store.counters())["deduped"] == 1


@pytest.mark.parametrize("other", [{"fingerprint": "other"}, {"forced": True}])
async def test_client_key_of_another_request_is_a_conflict(store, other):
    """
    A client key under another fingerprint or another `force_refresh` is refused, and nothing changes.
    """
    await store.add(make_task(fingerprint="fp"), rule(client_key="k"))
    before = await store.counters()
    with pytest.raises(IdempotencyConflict):
        await store.add(make_task(**({"fingerprint": "fp"} | other)), rule(client_key="k"))
    assert await store.counters() == before
    assert len(await store.live()) == 1


async def test_client_key_stands_for_the_twin_that_answered(store):
    """
    A key whose first submit joined a twin stands for that twin.
    """
    (twin,) = await add(store, make_task(fingerprint="fp"))
    await store.add(make_task(fingerprint="fp"), rule(client_key="k"))
    await save(store, twin, CancelRequested())
    again = await store.add(make_task(fingerprint="fp"), rule(client_key="k"))
    assert (again.how, again.task.id) == (How.REPEATED, twin.id)


async def test_request_id_joins_its_first_try_though_forced_and_late(store):
    """
    A repeated request id joins the task of its first try, forced or not, long after the window.
    """
    late = rule(request_id="r", twins_since=START + MINUTE, cached_since=START + MINUTE)
    first = await bring(store, make_task(fingerprint="fp", forced=True), State.SUBMITTING)
    await store.add(make_task(fingerprint="fp"), replace(late, join_live=True))
    task = await save(store, first, Accepted(remote_id="r1"))
    task = await save(store, task, Ready(outputs=()))
    await save(store, task, Saved(files=(make_file(),)))
    again = await store.add(make_task(fingerprint="fp", forced=True), late)
    assert (again.how, again.task.id, again.task.joins) == (How.JOINED, first.id, 2)


async def test_request_id_never_conflicts(store):
    """
    A request id under another fingerprint makes its own task and stands for that one from then on.
    """
    await store.add(make_task(fingerprint="fp"), rule(request_id="r"))
    other = await store.add(make_task(fingerprint="fq", forced=True), rule(request_id="r"))
    assert other.how is How.CREATED
    again = await store.add(make_task(fingerprint="fq", forced=True), rule(request_id="r"))
    assert (again.how, again.task.id) == (How.JOINED, other.task.id)


async def test_request_id_of_a_failed_task_makes_a_new_one(store):
    """
    A client that uses one request id for everything can still try again after a failure.
    """
    first = await store.add(make_task(fingerprint="fp"), rule(request_id="r"))
    await save(store, first.task, CancelRequested())
    assert (await store.add(make_task(fingerprint="fp"), rule(request_id="r"))).how is How.CREATED


# Windows --------------------------------------------------------------------------------------------------------------


async def test_place_goes_to_the_first_in_line(store):
    """
    Interactive tasks go first, then batch, each first in, first out.
    """
    batch, first, second = await add(
        store, make_task(priority=Priority.BATCH), make_task(), make_task(created_at=START - MINUTE)
    )
    taken = [await place(store, limit=9, key=f"k{n}") for n in range(4)]
    assert [task.id if task else None for task in taken] == [first.id, second.id, batch.id, None]
    assert taken[0].state is State.SUBMITTING
    assert (taken[0].submission_key, taken[0].attempts, taken[0].started_at) == ("k0", 1, START)
    assert (await store.counters())["createAttempts"] == 3


async def test_windows_have_lines_of_their_own(store):
    """
    A full window does not hold up another, nor another account's window of the same name.
    """
    await add(store, make_task(), make_task())
    other, foreign = await add(store, make_task(window="second"), make_task(account="else"))
    assert await place(store) is not None
    assert await place(store) is None
    assert (await place(store, window="second")).id == other.id
    assert (await store.get(foreign.id)).state is State.QUEUED


async def test_task_that_comes_back_to_the_line_keeps_its_place(store):
    """
    A deferred create is next in line again.
    """
    first, _ = await add(store, make_task(), make_task())
    task = await place(store)
    await save(store, task, Deferred(detail="busy"))
    assert (await place(store)).id == first.id


async def test_task_that_is_sent_again_keeps_its_key(store):
    """
    The key of the first try goes with every later one, or a provider could not know them for the same.
    """
    await add(store, make_task())
    task = await place(store, key="first")
    await save(store, task, Deferred(detail="busy"))
    assert (await place(store, key="second")).submission_key == "first"


@pytest.mark.parametrize(
    ("state", "held"), [(state, state in (State.SUBMITTING, State.RUNNING)) for state in sorted(State)]
)
async def test_submitting_and_running_tasks_take_places(store, state, held):
    """
    Only submitting and running tasks take a place by their state.
    """
    await bring(store, make_task(), state)
    assert await store.places(account="main", window="main", now=START + MINUTE) == (int(held), None)


async def test_place_held_by_time_is_given_back(store):
    """
    Uncertain and cancelled tasks whose remote job may run on hold a place until their time is over.
    """
    lost = await bring(store, make_task(), State.SUBMITTING)
    await save(store, lost, Lost(problem=PROBLEM, place_until=START + 2 * MINUTE))
    running = await bring(store, make_task(), State.RUNNING)
    gone = await save(store, running, CancelRequested())
    await save(store, gone, Cancelled(outcome=CancelOutcome.UNSUPPORTED, place_until=START + MINUTE))
    await add(store, make_task())
    assert await store.places(account="main", window="main", now=START) == (2, START + MINUTE)
    assert await place(store, limit=2) is None
    assert await store.places(account="main", window="main", now=START + MINUTE) == (1, START + 2 * MINUTE)
    assert await place(store, limit=2, now=START + MINUTE) is not None


async def test_places_are_never_given_twice(store):
    """
    However many ask at once, no more tasks are sent than there are places.
    """
    await add(store, *(make_task() for _ in range(10)))
    taken = await asyncio.gather(*(place(store, limit=3, key=f"k{n}") for n in range(10)))
    assert sum(task is not None for task in taken) == 3


async def test_nothing_to_take_commits_nothing(store):
    """
    Looking for a place costs no transaction where there is no task or no room.
    """
    await add(store, make_task(), make_task())
    await place(store)
    before = (await store.counters())["stateWrites"]
    assert await place(store) is None
    assert await place(store, window="empty") is None
    assert (await store.counters())["stateWrites"] == before


# Saves ----------------------------------------------------------------------------------------------------------------


async def test_save_of_a_stale_task_changes_nothing(store):
    """
    Of two who move the same version one wins; the other is told, and what he wrote is nowhere.
    """
    (task,) = await add(store, make_task())
    won = await save(store, task, Started(submission_key="a"))
    with pytest.raises(StaleTask):
        await save(store, task, CancelRequested())
    assert await store.get(task.id) == won
    assert len(await store.log(after=0, limit=10)) == 2
    assert "cancelled" not in await store.counters()


async def test_save_of_an_unknown_task(store):
    """
    A task that was never added cannot be saved.
    """
    with pytest.raises(UnknownTask):
        await save(store, make_task(), Started(submission_key="a"))


async def test_listener_hears_every_change_before_the_caller(store):
    """
    Each change is told in commit order, durable already, before its caller goes on.
    """
    told = []
    store.on_commit = told.append
    task = await bring(store, make_task(), State.DONE)
    assert [heard.state for heard in told] == [
        State.QUEUED,
        State.SUBMITTING,
        State.RUNNING,
        State.DOWNLOADING,
        State.DONE,
    ]
    assert told[-1] == task
    assert [heard.event_id for heard in told] == sorted({heard.event_id for heard in told})


async def test_remote_job_belongs_to_one_task(store):
    """
    A second task cannot take over a remote job, on the same account.
    """
    await bring(store, make_task(), State.RUNNING, remote_id="job")
    await bring(store, make_task(account="else"), State.RUNNING, remote_id="job")
    lost = await bring(store, make_task(), State.UNCERTAIN)
    with pytest.raises(DuplicateRemote):
        await save(store, lost, Found(remote_id="job"))
    assert (await store.get(lost.id)).state is State.UNCERTAIN


async def test_remote_job_of_a_task_without_result_can_be_taken_over(store):
    """
    A job whose task ended without its result may be taken over by another.
    """
    await bring(store, make_task(), State.FAILED, remote_id="job")
    lost = await bring(store, make_task(), State.UNCERTAIN)
    assert (await save(store, lost, Found(remote_id="job"))).remote_id == "job"


async def test_remote_ids_of_an_account(store):
    """
    A look-up knows which jobs are taken: this account's, of tasks made since then.
    """
    await bring(store, make_task(created_at=START - MINUTE), State.RUNNING, remote_id="old")
    await bring(store, make_task(), State.RUNNING, remote_id="a")
    await bring(store, make_task(), State.FAILED, remote_id="b")
    await bring(store, make_task(account="else"), State.RUNNING, remote_id="c")
    assert await store.remote_ids(account="main", since=START) == {"a", "b"}


# Lists ----------------------------------------------------------------------------------------------------------------


async def test_live_tasks_come_oldest_first(store):
    """
    Every unended task is found at start, in the order of the line.
    """
    tasks = [await bring(store, make_task(window=f"w{9 - n}"), state) for n, state in enumerate(sorted(State))]
    assert await store.live() == [task for task in tasks if task.state not in ENDED]


async def test_pages_go_back_in_time(store):
    """
    Pages are newest first and follow each other without a gap.
    """
    tasks = await add(store, *(make_task(account="main" if n % 2 else "else") for n in range(7)))
    newest = await store.page(states=None, account=None, before=None, limit=3)
    following = await store.page(states=None, account=None, before=newest[-1].seq, limit=9)
    assert newest + following == tasks[::-1]
    assert await store.page(states=None, account="main", before=None, limit=9) == tasks[1::2][::-1]


async def test_pages_by_state(store):
    """
    A page can be of some states and of one account.
    """
    tasks = [
        await bring(store, make_task(account=account), state)
        for account in ("main", "else")
        for state in (State.DONE, State.FAILED, State.QUEUED, State.DONE)
    ]
    wanted = frozenset({State.DONE, State.FAILED})
    everywhere = [task for task in reversed(tasks) if task.state in wanted]
    assert await store.page(states=wanted, account=None, before=None, limit=4) == everywhere[:4]
    here = [task for task in everywhere if task.account == "main"]
    assert await store.page(states=wanted, account="main", before=None, limit=9) == here
    assert await store.page(states=frozenset(), account=None, before=None, limit=9) == []


async def test_durations_by_the_providers_clock_or_ours(store):
    """
    Durations end with the provider's completion where it tells that, else with our learning of it; newest first.
    """
    second = timedelta(seconds=1)
    for completed in (None, START + 30 * second):
        task = await bring(store, make_task(), State.RUNNING)
        times = RemoteTimes(created_at=START, started_at=START + 10 * second, completed_at=completed)
        task = await save(store, task, StillRunning(remote_state=RemoteState.WORKING, times=times))
        task = await save(store, task, Ready(outputs=()), at=START + 40 * second)
        await save(store, task, Saved(files=(make_file(),)))
    await bring(store, make_task(model_version="model-b"), State.DONE)
    await bring(store, make_task(model_version=None), State.DONE)
    await bring(store, make_task(), State.FAILED)
    assert await store.durations(account="main", model="model-a", limit=10) == [30.0, 40.0]
    assert await store.durations(account="main", model="model-a", limit=1) == [30.0]
    assert await store.durations(account="main", model=None, limit=10) == [0.0]


# The event log --------------------------------------------------------------------------------------------------------


async def test_log_replays_tasks_as_they_stood(store):
    """
    The log gives back exactly what the listener was told, in the same order.
    """
    told = []
    store.on_commit = told.append
    first = await bring(store, make_task(), State.DONE)
    second = await bring(store, make_task(), State.UNCERTAIN)
    await save(store, second, Abandoned())
    assert await store.log(after=0, limit=100) == told
    assert await store.log(after=told[2].event_id, limit=2) == told[3:5]
    assert await store.log(after=first.event_id, limit=100, task_id=first.id) == []
    assert [task.state for task in await store.log(after=0, limit=100, task_id=second.id)] == [
        State.QUEUED,
        State.SUBMITTING,
        State.UNCERTAIN,
        State.CANCELLED,
    ]


async def test_log_position_that_does_not_exist(store):
    """
    A position above the newest entry is unknown here; the beginning of an empty log is known.
    """
    assert await store.log(after=0, limit=10) == []
    assert await store.log(after=1, limit=10) is None
    (task,) = await add(store, make_task())
    assert await store.log(after=task.event_id, limit=10) == []
    assert await store.log(after=task.event_id + 1, limit=10) is None
    assert await store.log(after=-1, limit=10) is None


# Counters -------------------------------------------------------------------------------------------------------------


async def test_counters_follow_the_transitions(store):
    """
    Every counter that a transition stands for is counted with it.
    """
    for state in State:
        await bring(store, make_task(), state)
    counters = await store.counters()
    del counters["stateWrites"]
    assert {name: value for name, value in counters.items() if value} == {
        "submits": 9,
        "remoteCreates": 5,
        "uncertain": 1,
        "done": 1,
        "failed": 1,
        "cancelled": 1,
        "expired": 1,
        "bytesDownloaded": 1000,
    }


async def test_found_create_counts_as_a_remote_create(store):
    """
    A create whose answer was lost is counted when it is found.
    """
    lost = await bring(store, make_task(), State.UNCERTAIN)
    assert "remoteCreates" not in await store.counters()
    await save(store, lost, Found(remote_id="job"))
    assert (await store.counters())["remoteCreates"] == 1


async def test_five_minute_task_commits_at_most_ten_transactions(store):
    """
    A task's whole life, pauses of its account and eviction of its result included, is at most ten commits.
    """
    (task,) = await add(store, make_task())
    task = await place(store)
    task = await save(store, task, Accepted(remote_id="job", remote_state=RemoteState.WAITING))
    for _ in range(25):
        store.count(polls=1)
    task = await save(store, task, StillRunning(remote_state=RemoteState.WORKING))
    task = await save(store, task, Ready(outputs=()))
    task = await save(store, task, Saved(files=(make_file(),)))
    await store.forget(task.id)
    assert (await store.counters())["stateWrites"] == 7
    assert (await store.counters())["polls"] == 25


# Accounts and pictures ------------------------------------------------------------------------------------------------


async def test_pauses_are_kept_replaced_and_lifted(store):
    """
    An account has one pause of each scope, or none; they come and go apart from each other.
    """
    forever = Pause(scope=Scope.CALLS, reason="auth", detail="bad key", until=None)
    awhile = Pause(scope=Scope.CREATES, reason="rate", detail="slow down", began_at=START, until=START)
    empty = Pause(scope=Scope.CREATES, reason="balance", detail="no money", began_at=None, until=START)
    await store.set_pause("a", Scope.CREATES, awhile)
    await store.set_pause("b", Scope.CREATES, awhile)
    await store.set_pause("a", Scope.CREATES, empty)
    await store.set_pause("a", Scope.CALLS, forever)
    assert await store.pauses() == [("a", forever), ("a", empty), ("b", awhile)]
    await store.set_pause("a", Scope.CALLS, None)
    await store.set_pause("nobody", Scope.CALLS, None)
    assert await store.pauses() == [("a", empty), ("b", awhile)]


async def test_a_copy_at_a_provider_is_kept_replaced_and_dropped(store):
    """
    One reference stands for a picture at an account's provider; dropping another leaves it where it is.
    """
    first = RemoteCopy(account="a", asset="sha256:1", reference="ssupload:?id=1", made_at=START)
    second = replace(first, reference="ssupload:?id=2", made_at=START + MINUTE)
    others = replace(first, account="b")
    for copy in (first, others, second):
        await store.keep_copy(copy, life=timedelta(days=1))
    await store.drop_copy(first)
    assert await store.copy("a", "sha256:1") == second
    await store.drop_copy(second)
    assert await store.copy("a", "sha256:1") is None
    assert await store.copy("b", "sha256:1") == others
    assert await store.copy("b", "sha256:2") is None


async def test_copies_that_a_provider_keeps_no_more_are_forgotten_when_a_new_one_is_kept(store):
    """Those of the same account alone: another's may live longer."""
    old = RemoteCopy(account="a", asset="sha256:1", reference="old", made_at=START)
    others = RemoteCopy(account="b", asset="sha256:1", reference="others", made_at=START)
    young = RemoteCopy(account="a", asset="sha256:2", reference="young", made_at=START + MINUTE)
    new = RemoteCopy(account="a", asset="sha256:3", reference="new", made_at=START + 2 * MINUTE)
    for copy in (old, others, young, new):
        await store.keep_copy(copy, life=MINUTE)
    assert await store.copy("a", "sha256:1") is None
    assert await store.copy("b", "sha256:1") == others
    assert await store.copy("a", "sha256:2") == young
    assert await store.copy("a", "sha256:3") == new


async def test_what_providers_told_last_of_what_is_left_is_kept(store):
    """One word for each account, the newest, with when it was said."""
    old = ToldQuota(account="b", quota=Quota(left=7, unit="credits"), told_at=START)
    new = ToldQuota(
        account="b", quota=Quota(left=6.5, unit="credits", resets_at=START + MINUTE), told_at=START + MINUTE
    )
    other = ToldQuota(account="a", quota=Quota(left=-1.25, unit="USD"), told_at=START)
    for told in (old, new, other):
        await store.keep_quota(told)
    assert await store.quotas() == [other, new]


async def test_the_limits_that_providers_told_last_are_kept(store):
    """
    The newest word of each account's provider counts.
    """
    old = ToldLimits(account="b", limits={"*": 1}, told_at=START)
    new = ToldLimits(account="b", limits={"*": 3, "model-b": 2}, told_at=START + MINUTE)
    other = ToldLimits(account="a", limits={}, told_at=START)
    for told in (old, new, other):
        await store.keep_limits(told)
    assert await store.limits() == [other, new]


async def test_asset_is_kept_as_it_first_came(store):
    """
    What is known of a picture stays; one that is not known is an error.
    """
    asset = Asset(id="sha256:1", pixels="p1:1", width=2, height=3, size_bytes=4, media_type="image/png")
    await store.add_asset(asset)
    await store.add_asset(replace(asset, width=9))
    assert await store.asset("sha256:1") == asset
    with pytest.raises(UnknownAsset, match="sha256:2"):
        await store.asset("sha256:2")


# The cache's index ----------------------------------------------------------------------------------------------------


async def test_saved_task_enters_the_index(store):
    """
    A result is in the index with its files, bytes and instants from the moment its task is done.
    """
    task = await bring(store, make_task(), State.DONE, files=2)
    (result,), total = await store.results(coldest=9)
    assert (result.task_id, result.fingerprint, result.files) == (task.id, task.fingerprint, task.files)
    assert (result.size_bytes, total) == (2000, 2000)
    assert result.saved_at == result.used_at == START
    assert await store.known() == {file.path for file in task.files}


async def test_results_by_age_and_by_use(store):
    """
    Eviction finds the results used longest ago, and those saved before an instant, oldest first.
    """
    tasks = [await bring(store, make_task(created_at=START + n * MINUTE), State.DONE) for n in range(4)]
    coldest, total = await store.results(coldest=2)
    assert [result.task_id for result in coldest] == [tasks[0].id, tasks[1].id]
    everything, _ = await store.results()
    assert [result.task_id for result in everything] == [task.id for task in tasks]
    assert total == 4000
    old = await store.older_than(START + 3 * MINUTE, limit=2)
    assert [result.task_id for result in old] == [tasks[0].id, tasks[1].id]


async def test_forgotten_result_leaves_its_task_done(store):
    """
    Eviction changes the index alone.
    """
    task = await bring(store, make_task(), State.DONE)
    await store.forget(task.id)
    assert await store.results(coldest=9) == ([], 0)
    assert await store.known() == frozenset()
    assert await store.get(task.id) == task


async def test_a_place_that_outlives_its_task_is_held_until_it_is_given_back(store):
    """
    A cancelled task whose remote job may run on holds its place by time, and gives it back when that is over.
    """
    task = await bring(store, make_task(), State.RUNNING)
    until = task.updated_at + timedelta(minutes=30)
    event = Cancelled(outcome=CancelOutcome.UNSUPPORTED, place_until=until)
    cancelled = await store.save(advance(task, event, task.updated_at), event, expected_version=task.version)
    now = task.updated_at + timedelta(minutes=1)
    assert await store.outlived() == [cancelled]
    assert await store.places(account=task.account, window=task.window, now=now) == (1, until)
    heard = []
    store.on_commit = heard.append
    await store.hold(task.id, None)
    assert await store.outlived() == []
    assert await store.places(account=task.account, window=task.window, now=now) == (0, None)
    released = await store.get(task.id)
    assert (released.state, released.version, released.place_until) == (State.CANCELLED, cancelled.version, None)
    assert heard == [released]


async def test_a_place_held_by_time_can_be_held_till_another_instant(store):
    """
    Where the wall clock was set, what is stored is mended without a step of the task; other tasks have no such place.
    """
    task = await bring(store, make_task(), State.UNCERTAIN)
    until = START + timedelta(minutes=30)
    heard = []
    store.on_commit = heard.append
    await store.hold(task.id, until)
    held = await store.get(task.id)
    assert (held.place_until, held.version, held.event_id) == (until, task.version, task.event_id)
    assert heard == [held]
    assert await store.places(account=task.account, window=task.window, now=START) == (1, until)
    running = await bring(store, make_task(), State.RUNNING)
    for instant in (until, None):
        await store.hold(running.id, instant)
        assert await store.get(running.id) == running


async def test_a_create_that_was_answered_with_a_failed_job_counts_and_keeps_its_id(store):
    """
    The provider accepted the call, so the figures say so, and the job can be traced there.
    """
    task = await bring(store, make_task(), State.SUBMITTING)
    event = Failed(problem=PROBLEM, remote_id="job-1")
    failed = await store.save(advance(task, event, task.updated_at), event, expected_version=task.version)
    assert failed.remote_id == "job-1"
    assert (await store.counters())["remoteCreates"] == 1
