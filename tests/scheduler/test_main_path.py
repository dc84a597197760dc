"""
From a request to a file, and what that costs in calls and commits.
"""

from vidrelay.core.task import RemoteState, State


async def test_a_clip_goes_from_prompt_to_a_whole_file(bench):
    """A submitted task runs, is polled, fetched and done, with its file on disk."""
    async with bench.running():
        task = await bench.submit("a boat")
        done = await bench.until(task.id, State.DONE)
        path, file = await bench.relay.result_file(task.id, 0)
    assert path.read_bytes()[4:8] == b"ftyp"
    assert (file.size_bytes, file.media_type) == (path.stat().st_size, "video/mp4")
    assert done.remote_id == "job-1"
    assert len(bench.provider.creates) == 1


async def test_the_providers_state_is_saved_when_it_changes(bench):
    """A job that waits in the provider's queue and then works is shown as both."""
    bench.provider.workers = 0
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3)
        assert (await bench.relay.get(task.id)).remote_state is RemoteState.WAITING
        bench.provider.workers = 1
        await bench.clock.advance(5)
        assert (await bench.store.get(task.id)).remote_state is RemoteState.WORKING


async def test_five_minutes_of_work_cost_at_most_25_polls_and_10_commits(bench):
    """The default pace polls a five-minute task at most 25 times, and polling commits nothing."""
    bench.provider.run_seconds = 300
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(200)
        before = (await bench.store.counters())["stateWrites"]
        await bench.clock.advance(60)
        assert (await bench.store.counters())["stateWrites"] == before
        await bench.until(task.id, State.DONE)
        counters = await bench.store.counters()
    assert len(bench.provider.polls_of("job-1")) <= 25
    assert counters["stateWrites"] <= 10
    assert counters["polls"] == len(bench.provider.polls_of("job-1"))


async def test_the_segments_add_up_to_the_total(bench):
    """Wait, submit, queue, execute and download of a simple life sum to its total."""
    async with bench.running():
        task = await bench.submit()
        done = await bench.until(task.id, State.DONE)
    timings = done.timings()
    parts = [timings.wait, timings.submit, timings.queue, timings.execute, timings.download]
    assert None not in parts
    assert abs(sum(parts) - timings.total) < 1e-6


async def test_a_failed_job_fails_the_task_with_the_providers_words(bench):
    """The provider's failure ends the task and frees its place."""
    bench.provider.failing.add("bad")
    async with bench.running():
        task = await bench.submit("bad")
        failed = await bench.until(task.id, State.FAILED)
        assert failed.error.code == "remote_failed"
        assert bench.relay.accounts()[0].windows[0].running == 0


async def test_stats_tell_what_was_done_and_where_time_went(bench):
    """The figures count the create, the twin and the clip, and give medians by model."""
    async with bench.running():
        task = await bench.submit()
        await bench.submit()
        await bench.until(task.id, State.DONE)
        stats = await bench.relay.stats()
    assert {name: stats.counters[name] for name in ("submits", "deduped", "remoteCreates", "done")} == {
        "submits": 2,
        "deduped": 1,
        "remoteCreates": 1,
        "done": 1,
    }
    assert stats.saved_clips == 1
    assert stats.segments["toy-1"]["execute"].median > 0


async def test_the_providers_estimate_brings_the_news_sooner(bench):
    """A provider that tells how long it still takes is asked just after that, with no more polls than otherwise."""
    bench.provider.run_seconds = 60
    async with bench.running():
        first = await bench.submit("without")
        without = await bench.until(first.id, State.DONE)
        bench.provider.tells_eta = True
        second = await bench.submit("with")
        told = await bench.until(second.id, State.DONE)
    assert told.timings().total < without.timings().total
    assert len(bench.provider.polls_of("job-2")) <= len(bench.provider.polls_of("job-1"))
