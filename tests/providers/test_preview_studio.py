"""
The studio answers preview calls by rendering in child processes.
"""

import asyncio
import json
import os
import stat
import sys

import pytest

from vidrelay.clock import SystemClock
from vidrelay.core.errors import OutboundRefused
from vidrelay.core.messages import HttpRequest
from vidrelay.providers.preview.studio import Pace, PreviewStudio
from vidrelay.testing.clock import FakeClock

WORDS = {"prompt": "a lighthouse", "aspect_ratio": "16:9", "resolution": "128x72", "duration": 0.5, "fps": 12}
NO_PACE = Pace(queue_seconds=0, min_execute_seconds=0)
JOB = "preview://local/jobs/task-1"

# Stand-ins for the renderer: they tell half of their progress, then write the file, or wait to be killed, or break.
QUICK = "import json,sys; print(json.dumps({'progress':0.5}),flush=True); open(sys.argv[1],'wb').write(b'clip'*1000)"
STUCK = "import json,sys,time; print(json.dumps({'progress':0.5}),flush=True); open(sys.argv[1],'wb'); time.sleep(60)"
BROKEN = "import json; print(json.dumps({'error':'no encoder'})); raise SystemExit(1)"
CRASHED = "import os; os.abort()"


def stand_in(code):
    return (sys.executable, "-S", "-c", code)


@pytest.fixture
async def open_studio(tmp_path):
    studios = []

    def make(clock=None, *, code=QUICK, pace=NO_PACE, slots=2, **how):
        how = {"command": stand_in(code)} | how
        studio = PreviewStudio(
            scratch=tmp_path / "preview",
            asset_path=lambda _: tmp_path / "a.png",
            clock=clock or SystemClock(),
            pace=pace,
            slots=slots,
            **how,
        )
        studios.append(studio)
        return studio

    yield make
    for studio in studios:
        await studio.aclose()


async def call(studio, method, url=JOB, body=None, **headers):
    request = HttpRequest(
        method=method, url=url, body=None if body is None else json.dumps(body).encode(), headers=headers
    )
    async with studio.send(request, timeout=30) as reply:
        return reply.status, reply.headers, await reply.read()


async def told(studio, method="GET", url=JOB, body=None):
    status, _, text = await call(studio, method, url, body)
    return status, json.loads(text)


async def seen(studio, wanted, url=JOB):
    """Ask for the job until it is as wanted."""
    async with asyncio.timeout(20):
        while True:
            _, job = await told(studio, url=url)
            if wanted(job):
                return job
            await asyncio.sleep(0.02)


async def until(studio, status, url=JOB):
    return await seen(studio, lambda job: job.get("status") == status, url)


@pytest.mark.process
async def test_a_job_becomes_a_clip_that_can_be_fetched_once(open_studio, tmp_path):
    """
    A real rendering is fetched as an MP4 of its told length, after which the job is forgotten.
    """
    studio = open_studio(command=None)

    created, _ = await told(studio, "PUT", body=WORDS)
    await until(studio, "done")
    status, headers, clip = await call(studio, "GET", JOB + "/content")
    again, _ = await told(studio)

    assert (created, status, again) == (201, 200, 404)
    assert clip[4:8] == b"ftyp"
    assert headers["content-length"] == str(len(clip))
    assert headers["content-type"] == "video/mp4"
    assert list((tmp_path / "preview").iterdir()) == []


@pytest.mark.process
async def test_the_same_put_again_is_the_same_job_and_another_one_is_refused(open_studio):
    """
    A repeated PUT finds its job, and other words under the same id are a conflict.
    """
    studio = open_studio()

    first, _ = await told(studio, "PUT", body=WORDS)
    same, _ = await told(studio, "PUT", body=WORDS)
    other, _ = await told(studio, "PUT", body=WORDS | {"prompt": "a cat"})

    assert (first, same, other) == (201, 200, 409)


@pytest.mark.process
async def test_its_stages_are_paced_so_that_they_can_be_watched(open_studio):
    """
    A job waits and works for at least its pace, with place, progress and time left told.
    """
    clock = FakeClock()
    studio = open_studio(clock, pace=Pace(queue_seconds=1.5, min_execute_seconds=4))

    await told(studio, "PUT", body=WORDS)
    await clock.advance(1.4)
    _, waiting = await told(studio)
    await clock.advance(0.1)
    _, working = await told(studio)
    await seen(studio, lambda job: job.get("eta_seconds"))
    await clock.advance(1)
    _, later = await told(studio)
    async with asyncio.timeout(20):
        while (await told(studio))[1]["status"] != "done":
            await clock.advance(1)
    _, done = await told(studio)

    assert (waiting["status"], waiting["position"]) == ("queued", 0)
    assert (working["status"], working["progress"]) == ("rendering", 0.0)
    assert (later["progress"], later["eta_seconds"]) == (0.25, 3.0)
    assert done["execute_seconds"] >= 4


@pytest.mark.process
async def test_no_more_jobs_than_slots_are_at_work(open_studio):
    """
    Jobs beyond the slots wait with their places, and the next begins when one is cancelled.
    """
    studio = open_studio(code=STUCK, slots=1)
    second, third = JOB + "-b", JOB + "-c"

    for url in (JOB, second, third):
        await told(studio, "PUT", url, WORDS)
    await until(studio, "rendering")
    waiting = [(await told(studio, url=url))[1] for url in (second, third)]
    await told(studio, "DELETE")
    await until(studio, "rendering", second)

    assert [(job["status"], job["position"]) for job in waiting] == [("queued", 0), ("queued", 1)]


@pytest.mark.process
async def test_a_cancel_kills_the_child_and_deletes_what_it_made(open_studio, tmp_path):
    """
    After a cancel the process, the job and its files are gone.
    """
    pids = tmp_path / "pid"
    studio = open_studio(code=f"import os; open({str(pids)!r},'w').write(str(os.getpid())); {STUCK}")

    await told(studio, "PUT", body=WORDS)
    await seen(studio, lambda job: job.get("eta_seconds") is not None)
    status, _ = await told(studio, "DELETE")

    assert status == 200
    assert (await told(studio))[0] == 404
    assert list((tmp_path / "preview").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.read_text()), 0)


@pytest.mark.process
async def test_a_cancel_after_the_end_is_too_late(open_studio):
    """
    Cancelling a job that is done is a conflict.
    """
    studio = open_studio()

    await told(studio, "PUT", body=WORDS)
    await until(studio, "done")

    assert (await told(studio, "DELETE"))[0] == 409


@pytest.mark.process
@pytest.mark.parametrize(("code", "why"), [(BROKEN, "no encoder"), (CRASHED, "status -6")])
async def test_a_job_that_cannot_be_rendered_says_why_and_is_forgotten(open_studio, code, why):
    """
    A failure tells the renderer's reason once, and the job is unknown after that.
    """
    studio = open_studio(code=code)

    await told(studio, "PUT", body=WORDS)
    failed = await until(studio, "failed")

    assert why in failed["error"]
    assert (await told(studio))[0] == 404


@pytest.mark.process
async def test_a_fetch_goes_on_where_it_broke_off(open_studio):
    """
    A range under the clip's tag gives the rest, also after an answer that was not read.
    """
    studio = open_studio()
    await told(studio, "PUT", body=WORDS)
    await until(studio, "done")
    request = HttpRequest(method="GET", url=JOB + "/content")

    async with studio.send(request, timeout=30) as reply:
        etag = reply.headers["etag"]
    status, headers, rest = await call(studio, "GET", JOB + "/content", Range="bytes=3990-", **{"If-Range": etag})

    assert (status, rest) == (206, b"ipclipclip")
    assert headers["content-range"] == "bytes 3990-3999/4000"
    assert headers["etag"] == etag


@pytest.mark.process
@pytest.mark.parametrize(
    ("headers", "status"), [({"Range": "bytes=4000-"}, 416), ({"Range": "bytes=2-", "If-Range": '"other"'}, 200)]
)
async def test_a_range_that_does_not_fit_is_not_served(open_studio, headers, status):
    """
    A range beyond the end is a 416, and one under another tag gets the whole clip.
    """
    studio = open_studio()
    await told(studio, "PUT", body=WORDS)
    await until(studio, "done")

    assert (await call(studio, "GET", JOB + "/content", **headers))[0] == status


@pytest.mark.process
async def test_a_new_studio_has_forgotten_the_old_ones_jobs_and_deleted_their_clips(open_studio, tmp_path):
    """
    A new life knows no old job and deletes old clips, and no other file.
    """
    old = open_studio()
    await told(old, "PUT", body=WORDS)
    await until(old, "done")
    (tmp_path / "preview" / "note.txt").write_text("not ours")

    new = open_studio()
    forgotten, _ = await told(new)
    left = sorted(entry.name for entry in (tmp_path / "preview").iterdir())
    again, _ = await told(new, "PUT", body=WORDS)

    assert (forgotten, again) == (404, 201)
    assert left == ["note.txt"]


@pytest.mark.process
async def test_closing_ends_every_child(open_studio, tmp_path):
    """
    Closing the studio forgets jobs at work and removes their files.
    """
    studio = open_studio(code=STUCK)
    await told(studio, "PUT", body=WORDS)
    await until(studio, "rendering")

    await studio.aclose()

    assert (await told(studio))[0] == 404
    assert list((tmp_path / "preview").iterdir()) == []


@pytest.mark.process
async def test_keys_in_the_environment_do_not_reach_the_child(open_studio):
    """
    A provider's key in our environment is not in the renderer's.
    """
    environ = {**os.environ, "FAL_KEY": "canary"}
    code = "import json,os; print(json.dumps({'error': str('FAL_KEY' in os.environ)})); exit(1)"
    studio = open_studio(code=code, environ=environ)

    await told(studio, "PUT", body=WORDS)

    assert (await until(studio, "failed"))["error"] == "False"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
async def test_its_directory_is_the_users_alone(open_studio, tmp_path):
    """
    The studio's folder has mode 0700.
    """
    await told(open_studio())

    assert stat.S_IMODE((tmp_path / "preview").stat().st_mode) == 0o700


@pytest.mark.parametrize("body", [[], {}, WORDS | {"resolution": 7}, WORDS | {"references": ["x"]}, "text"])
async def test_words_that_are_none_of_its_own_are_refused(open_studio, body):
    """
    A body that is no proper job is a 422.
    """
    assert (await told(open_studio(), "PUT", body=body))[0] == 422


@pytest.mark.parametrize(
    "url", [JOB + "/../x", "preview://local/jobs/", "preview://local/jobs/a.b", "preview://local/"]
)
async def test_an_odd_address_names_nothing(open_studio, url):
    """
    A PUT to an address that is no job's is a 404.
    """
    assert (await told(open_studio(), "PUT", url, WORDS))[0] == 404


async def test_it_reaches_nothing_but_itself(open_studio):
    """
    An address outside the studio is refused as the gate refuses it.
    """
    with pytest.raises(OutboundRefused):
        await told(open_studio(), url="http://127.0.0.1/")


async def test_it_tells_how_many_jobs_it_does_at_once(open_studio):
    """
    `/limits` answers with the number of slots.
    """
    assert await told(open_studio(slots=3), url="preview://local/limits") == (200, {"slots": 3})
