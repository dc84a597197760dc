"""
The pretend provider's gate, line and jobs, on a clock that the test moves.
"""

from typing import Any

import pytest

from vidrelay.core.errors import ConfigError
from vidrelay.simulator.engine import Engine, Job, JobState
from vidrelay.simulator.options import SimulatorOptions
from vidrelay.testing.clock import FakeClock


def make_engine(**options: Any) -> tuple[Engine, FakeClock]:
    clock = FakeClock()
    return Engine(options=SimulatorOptions(**options), clock=clock), clock


def make_job(engine: Engine, prompt: str = "a boat", key: str | None = "k", **fields: str) -> Job:
    return engine.create(key, {"prompt": prompt, **fields})


async def test_a_job_waits_and_then_works_for_the_set_times() -> None:
    """A job stands in line for `queue_seconds` and is worked on for `run_seconds`."""
    engine, clock = make_engine(queue_seconds=1.0, run_seconds=5.0)
    job = make_job(engine)
    states = [job.state]
    for _ in range(3):
        await clock.advance(2.5)
        engine.now()
        states.append(job.state)
    assert states == [JobState.WAITING, JobState.WORKING, JobState.WORKING, JobState.DONE]
    assert (job.started, job.ended) == (1.0, 6.0)


async def test_a_worker_takes_the_next_in_line_at_the_moment_it_is_free() -> None:
    """With one worker, jobs run one after the other without a gap, however late anybody looks."""
    engine, clock = make_engine(queue_seconds=0.0, run_seconds=3.0, workers=1)
    jobs = [make_job(engine) for _ in range(3)]
    await clock.advance(100)
    engine.now()
    assert [(job.started, job.ended) for job in jobs] == [(0.0, 3.0), (3.0, 6.0), (6.0, 9.0)]


def test_an_id_has_the_shape_that_the_words_give_it() -> None:
    """A provider's ids look as they do there, and each is another."""
    engine, _ = make_engine()
    ids = [engine.create("k", {}, shape=lambda drawn: f"{drawn[:8]}-x").id for _ in range(2)]
    assert [(len(one), one[8:]) for one in ids] == [(10, "-x")] * 2
    assert ids[0] != ids[1]


def test_a_waiting_job_knows_how_many_stand_before_it() -> None:
    """The position counts the waiting jobs of every key that came earlier."""
    engine, _ = make_engine(queue_seconds=0.0, run_seconds=3.0, workers=1)
    jobs = [make_job(engine, key=key) for key in ("a", "b", "c")]
    engine.now()
    assert [engine.position(job) for job in jobs] == [None, 0, 1]


def test_the_window_is_counted_by_key() -> None:
    """A create above a key's window is turned away, another key's is not."""
    engine, _ = make_engine(window=1)
    make_job(engine, key="a")
    refused = engine.admit("a", create=True)
    assert refused is not None
    assert refused.why == "busy"
    assert engine.admit("a", create=False) is None
    assert engine.admit("b", create=True) is None


async def test_an_ended_job_gives_its_place_back() -> None:
    """The window is free again when the work is done."""
    engine, clock = make_engine(window=1, queue_seconds=0.0, run_seconds=1.0)
    make_job(engine)
    await clock.advance(1)
    assert engine.admit("k", create=True) is None


async def test_the_rate_says_when_there_is_room_again() -> None:
    """One request more than the rate is turned away with the time until the oldest falls out of the span."""
    engine, clock = make_engine(rate=2, rate_per=60.0)
    assert engine.admit("k", create=False) is None
    await clock.advance(10)
    assert engine.admit("k", create=False) is None
    turned = engine.admit("k", create=False)
    assert turned is not None
    assert (turned.why, turned.retry_after) == ("rate", 50.0)
    await clock.advance(50)
    assert engine.admit("k", create=False) is None


@pytest.mark.parametrize(
    ("prompt", "state"),
    [("a [fail]", JobState.FAILED), ("a [moderated]", JobState.FAILED), ("a [forever]", JobState.WORKING)],
)
async def test_words_in_the_prompt_decide_the_fate(prompt: str, state: JobState) -> None:
    """A prompt may say how its job ends."""
    engine, clock = make_engine()
    job = make_job(engine, prompt)
    await clock.advance(3600)
    engine.now()
    assert job.state is state


async def test_words_in_the_prompt_set_the_times() -> None:
    """A prompt may say how long its job waits and runs."""
    engine, clock = make_engine()
    job = make_job(engine, "a [queue=2] [run=7]")
    await clock.advance(60)
    engine.now()
    assert (job.started, job.ended) == (2.0, 9.0)


async def test_a_model_may_have_its_own_time() -> None:
    """`models` sets the run time by model."""
    engine, clock = make_engine(queue_seconds=0.0, run_seconds=1.0, models="slow=30")
    job = make_job(engine, model="slow")
    await clock.advance(60)
    engine.now()
    assert job.ended == 30.0


def test_the_same_seed_fails_the_same_jobs() -> None:
    """Chance depends on the seed and the job's number alone."""
    fates = [[make_job(make_engine(seed=seed, fail_share=0.5)[0]).why] for seed in range(20)]
    again = [[make_job(make_engine(seed=seed, fail_share=0.5)[0]).why] for seed in range(20)]
    assert fates == again
    assert {why for fate in fates for why in fate} == {None, "generation_failed"}


async def test_the_list_lags_behind() -> None:
    """A new job is not in the list until `list_lag` has passed."""
    engine, clock = make_engine(list_lag=30.0)
    job = make_job(engine)
    assert engine.listed("k") == []
    await clock.advance(30)
    assert engine.listed("k") == [job]


def test_a_restart_forgets_but_the_ledger_does_not() -> None:
    """After a restart the provider knows no job; the ledger still tells that it was made."""
    engine, _ = make_engine()
    job = make_job(engine)
    engine.restart(forget=True)
    assert engine.find("k", job.id) is None
    assert engine.unended("k") == 0
    assert engine.ledger.told()["creates"]["accepted"] == 1


async def test_a_finished_job_is_kept_only_so_long() -> None:
    """`keep_seconds` after its end a job is gone."""
    engine, clock = make_engine(queue_seconds=0.0, run_seconds=1.0, keep_seconds=10.0)
    job = make_job(engine)
    await clock.advance(10.5)
    assert engine.find("k", job.id) is job
    await clock.advance(1)
    assert engine.find("k", job.id) is None


def test_another_key_does_not_see_the_job() -> None:
    """A job belongs to its key."""
    engine, _ = make_engine()
    job = make_job(engine, key="a")
    assert engine.find("b", job.id) is None
    assert engine.listed("b") == []


def test_finish_ends_every_job_now() -> None:
    """`finish` ends waiting and working jobs alike."""
    engine, _ = make_engine(workers=1, queue_seconds=60.0)
    jobs = [make_job(engine, "a [forever]"), make_job(engine)]
    engine.finish()
    assert [job.state for job in jobs] == [JobState.DONE, JobState.DONE]


async def test_a_raised_number_of_workers_counts_from_now() -> None:
    """Room that a change makes is not used in the past."""
    engine, clock = make_engine(workers=1, queue_seconds=0.0, run_seconds=100.0)
    make_job(engine)
    second = make_job(engine)
    await clock.advance(10)
    engine.change({"workers": 2})
    await clock.advance(1)
    engine.now()
    assert second.started == 10.0


@pytest.mark.parametrize("changes", [{"port": 1}, {"nothing": 1}, {"fail_share": 2.0}, {"window": "many"}])
def test_a_wrong_change_changes_nothing(changes: dict[str, Any]) -> None:
    """An unknown, fixed or impossible setting is refused as a whole."""
    engine, _ = make_engine()
    before = engine.options
    with pytest.raises(ConfigError):
        engine.change({"run_seconds": 9.0, **changes})
    assert engine.options is before


def test_the_ledger_keeps_the_most_jobs_at_once() -> None:
    """The ledger tells how many unended jobs each key had at most."""
    engine, _ = make_engine()
    for _ in range(3):
        make_job(engine)
    assert list(engine.ledger.told()["maxAtOnce"].values()) == [3]
