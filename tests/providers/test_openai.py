"""
The adapter of the OpenAI Videos shape, held against recorded and broken replies.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vidrelay.core.adapter import Dedupe, NotThere, Refused, Scope, Search, Trouble, Undecided, Unknown
from vidrelay.core.errors import ConfigError, InvalidRequest
from vidrelay.core.lifecycle import Accepted, Answered, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import Form, HttpReply
from vidrelay.core.task import Asset, CancelOutcome, Reference, RemoteFile, RemoteState, Request, Task
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openai.adapter import OpenAiAdapter, make
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.records import make_task

BASE = "https://video.example/v1"
VLLM_ID = "video_gen_0123456789abcdef0123456789abcdef"
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
SENT_AT = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
QUEUED: dict[str, Any] = {
    "id": "video_68f0",
    "object": "video",
    "model": "sora-2",
    "status": "queued",
    "progress": 0,
    "created_at": 1790000000,
    "completed_at": None,
    "expires_at": None,
    "prompt": "a paper boat in rain",
    "seconds": "4",
    "size": "1280x720",
    "remixed_from_video_id": None,
    "error": None,
}
WORKING = QUEUED | {"status": "in_progress", "progress": 42}
COMPLETED = QUEUED | {
    "status": "completed",
    "progress": 100,
    "completed_at": 1790000095,
    "expires_at": 1790003695,
}
FAILED = QUEUED | {"status": "failed", "error": {"code": "server_error", "message": "It broke."}}
PARAMETERS = {"prompt": "a paper boat in rain", "model": "sora-2", "seconds": "4", "size": "1280x720"}


def make_adapter(dialect: str = "auto", key: str | None = "sk-canary", base_url: str = BASE) -> OpenAiAdapter:
    return make(AdapterSettings(now=lambda: SENT_AT, key=key, base_url=base_url, dialect=dialect))


def task_of(remote_id: str | None = "video_68f0", **parameters: Any) -> Task:
    return make_task(remote_id=remote_id, parameters=PARAMETERS | parameters)


def make_asset(number: int = 1, media_type: str = "image/png") -> Asset:
    return Asset(
        id=f"sha256:{number:064x}", pixels=f"p1:{number}", width=64, height=64, size_bytes=99, media_type=media_type
    )


def submitted(answer: HttpReply, dialect: str = "auto") -> Any:
    return converse(make_adapter(dialect).submit(task_of(None)), answer)[1]


def polled(answer: HttpReply, dialect: str = "auto", remote_id: str = "video_68f0") -> Any:
    return converse(make_adapter(dialect).poll(task_of(remote_id)), answer)[1]


def search(*, owned: frozenset[str] = frozenset(), sent_at: datetime = SENT_AT) -> Search:
    lost_at = sent_at + timedelta(seconds=30)
    # Of the half minute since, this life of the relay has seen nothing.
    return Search(sent_at=sent_at, lost_at=lost_at, elapsed=0.0, lost_ago=30.0, owned=owned)


def listing(*jobs: Mapping[str, Any], has_more: bool = False) -> HttpReply:
    return reply({"object": "list", "data": list(jobs), "has_more": has_more})


# Saying a request -----------------------------------------------------------------------------------------------------


def test_a_whole_request_is_said() -> None:
    """Every uniform field has its word, and extra ones go along untouched."""
    request = Request(
        prompt=" as  typed ",
        model_version="m",
        duration=5.0,
        resolution="720p",
        aspect_ratio="16:9",
        seed=7,
        negative_prompt="blur",
        extra={"guidance_scale": 5.5, "lora": {"name": "x"}},
    )
    prepared = make_adapter().prepare(request, {})
    assert prepared.parameters == {
        "prompt": " as  typed ",
        "model": "m",
        "seconds": "5",
        "size": "1280x720",
        "seed": 7,
        "negative_prompt": "blur",
        "guidance_scale": 5.5,
        "lora": {"name": "x"},
    }
    assert (prepared.model, prepared.seconds) == ("m", 5.0)


def test_what_is_not_given_is_left_to_the_server() -> None:
    """A prompt alone is sent alone."""
    assert make_adapter().prepare(Request(prompt="a"), {}).parameters == {"prompt": "a"}


@pytest.mark.parametrize(
    ("aspect_ratio", "resolution", "size"),
    [
        ("16:9", "720p", "1280x720"),
        ("9:16", "720p", "720x1280"),
        ("1:1", "720p", "720x720"),
        ("16:9", "1080p", "1920x1080"),
        ("16:9", "480p", "854x480"),
        ("21:9", "1080P", "2520x1080"),
        ("4:3", None, "960x720"),
        (None, "4k", "3840x2160"),
        (None, "1024x1792", "1024x1792"),
        ("9:16", "720x1280", "720x1280"),
    ],
)
def test_ratio_and_resolution_make_a_size(aspect_ratio: str | None, resolution: str | None, size: str) -> None:
    """The resolution is the shorter edge, sizes are even, and pixels are taken as they are."""
    request = Request(prompt="a", aspect_ratio=aspect_ratio, resolution=resolution)
    assert make_adapter().prepare(request, {}).parameters["size"] == size


@pytest.mark.parametrize(
    ("fields", "named", "dialect"),
    [
        ({"style_preset": "anime"}, "stylePreset", "auto"),
        ({"seed": 1}, "seed", "openai"),
        ({"negative_prompt": "x"}, "negativePrompt", "openai"),
        ({"duration": 2.5}, "duration", "vllm-omni"),
        ({"duration": 0}, "duration", "auto"),
        ({"duration": float("nan")}, "duration", "auto"),
        ({"resolution": "huge"}, "resolution", "auto"),
        ({"resolution": "0p"}, "resolution", "auto"),
        ({"aspect_ratio": "16/9"}, "aspectRatio", "auto"),
        ({"aspect_ratio": "100:1"}, "aspectRatio", "auto"),
        ({"aspect_ratio": "1:1", "resolution": "1280x720"}, "aspectRatio", "auto"),
        ({"extra": {"prompt": "b"}}, "extra.prompt", "auto"),
        ({"extra": {"input_reference": {"$asset": "sha256:1"}}}, "extra.input_reference", "auto"),
        ({"prompt": "a" * 32_001}, "prompt", "auto"),
        ({"references": (Reference(url="https://a.example/x.png", role="last_frame"),)}, "references[0].role", "auto"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], named: str, dialect: str) -> None:
    """A field that the dialect has no words for is refused, naming it."""
    with pytest.raises(InvalidRequest) as refused:
        make_adapter(dialect).prepare(Request(**({"prompt": "a"} | fields)), {})
    assert refused.value.field == named


def test_one_picture_is_the_input_reference() -> None:
    """A picture stands in the parameters by its asset."""
    asset = make_asset()
    request = Request(prompt="a", references=(Reference(asset="sha256:original"),))
    prepared = make_adapter().prepare(request, {"sha256:original": asset})
    assert prepared.parameters["input_reference"] == {"$asset": asset.id, "mediaType": "image/png"}


def test_several_pictures_go_to_vllm_omni_alone() -> None:
    """vLLM-Omni takes several pictures; elsewhere a second one is refused."""
    assets = {"a": make_asset(1), "b": make_asset(2, "image/jpeg")}
    request = Request(prompt="a", references=(Reference(asset="a"), Reference(asset="b")))
    parameters = make_adapter("vllm-omni").prepare(request, assets).parameters
    (sent,), _ = converse(
        make_adapter("vllm-omni").submit(replace(task_of(None), parameters=parameters)), reply(QUEUED)
    )
    assert isinstance(sent.body, Form)
    assert [(file.name, file.asset, file.filename) for file in sent.body.files] == [
        ("input_references", assets["a"].id, "reference-1.png"),
        ("input_references", assets["b"].id, "reference-2.jpg"),
    ]
    with pytest.raises(InvalidRequest, match="Only one"):
        make_adapter("sglang").prepare(request, assets)


@pytest.mark.parametrize(
    ("dialect", "field"),
    [
        ("auto", ("input_reference[image_url]", "https://a.example/x.png")),
        ("vllm-omni", ("image_reference", '{"image_url": "https://a.example/x.png"}')),
    ],
)
def test_a_pictures_address_goes_where_the_dialect_reads_it(dialect: str, field: tuple[str, str]) -> None:
    """An address is passed on as text, in the dialect's own field."""
    adapter = make_adapter(dialect)
    request = Request(prompt="a", references=(Reference(url="https://a.example/x.png"),))
    task = replace(task_of(None), parameters=adapter.prepare(request, {}).parameters)
    (sent,), _ = converse(adapter.submit(task), reply(QUEUED))
    assert isinstance(sent.body, Form)
    assert field in sent.body.fields


# The create call ------------------------------------------------------------------------------------------------------


def test_the_create_is_one_marked_request_with_the_key() -> None:
    """One POST, marked as the one that costs money, with the account's key and the words as typed."""
    (sent,), _ = converse(make_adapter().submit(task_of(None, seed=7, flag=True, nothing=None)), reply(QUEUED))
    assert (sent.method, sent.url, sent.creates) == ("POST", f"{BASE}/videos", True)
    assert sent.headers["Authorization"] == "Bearer sk-canary"
    assert sent.body == Form(fields=(*PARAMETERS.items(), ("seed", "7"), ("flag", "true")))


def test_json_is_sent_where_the_server_reads_it() -> None:
    """Without a picture, OpenAI and SGLang get JSON; seconds stay text."""
    (sent,), _ = converse(make_adapter("sglang", key=None).submit(task_of(None)), reply(QUEUED))
    assert sent.headers == {"Accept": "application/json", "Content-Type": "application/json"}
    assert isinstance(sent.body, bytes)
    assert json.loads(sent.body) == PARAMETERS


def test_an_accepted_create_has_its_id_and_time() -> None:
    """A job object makes the task running, and tells when it was made."""
    accepted = submitted(reply(QUEUED))
    assert isinstance(accepted, Accepted)
    assert (accepted.remote_id, accepted.remote_state) == ("video_68f0", RemoteState.WAITING)
    assert accepted.times.created_at == datetime.fromtimestamp(1790000000, UTC)


def test_a_create_may_be_answered_with_the_result() -> None:
    """A job that is completed at once is answered."""
    answered = submitted(reply(COMPLETED))
    assert isinstance(answered, Answered)
    assert answered.outputs == (RemoteFile(url=f"{BASE}/videos/video_68f0/content", needs_key=True),)


def test_a_create_may_be_answered_with_a_failure() -> None:
    """A job that failed at once is failed."""
    assert isinstance(submitted(reply(FAILED)), Failed)


@pytest.mark.parametrize("remote_id", [None, 7, "", "..", "a/b", "../../x", "a?b", "a#b", "a b", "x" * 513, "ä", "a\n"])
def test_a_2xx_without_a_usable_id_settles_nothing(remote_id: Any) -> None:
    """Without an id that can be used it is not known what was made."""
    assert isinstance(submitted(reply(QUEUED | {"id": remote_id})), Unknown)


def test_an_id_that_cannot_be_used_is_told() -> None:
    """What the provider said is all that a person has to find the job by; it is made fit to show."""
    unknown = submitted(reply(QUEUED | {"id": "../x\x1b[2J sk-canary"}))
    assert unknown == Unknown(detail="the provider answered 200 without an id that can be used: ../x\\u001b[2J [key]")


@pytest.mark.parametrize("status", [301, 302, 307, 308, 408, 409, 418, 425, 499, 500, 502, 503, 504, 529])
def test_an_unclear_answer_settles_nothing(status: int) -> None:
    """Redirects, 408, 409, 5xx and whatever nobody has classified may have made a job."""
    assert isinstance(submitted(reply({"error": {"message": "sorry"}}, status=status)), Unknown)


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422])
def test_a_4xx_that_says_why_is_final(status: int) -> None:
    """A rejection with a reason ends the task with that reason."""
    failed = submitted(reply({"detail": "size is wrong"}, status=status))
    assert isinstance(failed, Failed)
    assert failed.problem.code == "rejected"
    assert "size is wrong" in failed.problem.detail


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_a_4xx_that_says_nothing_settles_nothing(status: int) -> None:
    """A page of some proxy is no rejection by the provider."""
    assert isinstance(submitted(reply(b"<html>Bad Request</html>", status=status)), Unknown)


@pytest.mark.parametrize(
    ("status", "error", "scope", "reason"),
    [
        (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, Scope.CALLS, "auth"),
        (403, {"detail": "Forbidden"}, Scope.CALLS, "auth"),
        (402, {"detail": "pay"}, Scope.CREATES, "balance"),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, Scope.CREATES, "balance"),
        (429, {"error": {"message": "x", "code": "concurrency_limit_exceeded"}}, Scope.CREATES, "window"),
        (429, {"detail": "Too many videos are running for this key."}, Scope.CREATES, "window"),
        (429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, Scope.CALLS, "rate"),
        (429, {"detail": "Too many requests"}, Scope.CALLS, "rate"),
        (429, None, Scope.CALLS, "rate"),
    ],
)
def test_a_refusal_pauses_the_account(status: int, error: Any, scope: Scope, reason: str) -> None:
    """A bad key, no balance, too many running, too many requests: surely not made, worth another try."""
    refused = submitted(reply(error, status=status))
    assert isinstance(refused, Refused)
    assert (refused.scope, refused.reason) == (scope, reason)


@pytest.mark.parametrize("status", [400, 403])
def test_a_refusal_by_policy_is_final(status: int) -> None:
    """What the policy refuses fails the task and does not pause the account."""
    failed = submitted(reply({"error": {"message": "no", "code": "moderation_blocked"}}, status=status))
    assert isinstance(failed, Failed)
    assert failed.problem.code == "moderated"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Mon, 21 Sep 2026 14:14:00 GMT", "date": "Mon, 21 Sep 2026 14:13:20 GMT"}, 40.0),
        ({"retry-after": "Mon, 21 Sep 2026 14:14:00 GMT"}, None),
        ({"retry-after": "Mon, 21 Sep 2026 14:14:00 GMT", "date": "yesterday"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "²"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_told_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    """Retry-After counts as seconds, or as a date by the reply's own clock."""
    assert submitted(reply({"detail": "slow"}, status=429, headers=headers)).retry_after == seconds


# How it is doing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("queued", RemoteState.WAITING),
        ("pending", RemoteState.WAITING),
        ("in_progress", RemoteState.WORKING),
        ("processing", RemoteState.WORKING),
        ("dreaming", None),
        ("", None),
    ],
)
def test_an_unended_word_is_still_running(status: str, state: RemoteState | None) -> None:
    """Known words tell waiting from working; an unknown one is still running."""
    running = polled(reply(WORKING | {"status": status}))
    assert isinstance(running, StillRunning)
    assert (running.remote_state, running.progress) == (state, 0.42)


@pytest.mark.parametrize(
    ("progress", "read"), [(0, 0.0), (99.5, 0.995), (250, 1.0), (-3, 0.0), ("42", None), (True, None), (None, None)]
)
def test_progress_is_a_share(progress: Any, read: float | None) -> None:
    """0 to 100 becomes 0 to 1; anything but a number is no progress."""
    assert polled(reply(WORKING | {"progress": progress})).progress == read


def test_vllm_omnis_zero_says_nothing() -> None:
    """A server that knows only 0 and 100 is not believed at 0."""
    running = polled(reply(WORKING | {"id": VLLM_ID, "progress": 0}), remote_id=VLLM_ID)
    assert running.progress is None


def test_a_completed_job_is_ready_with_its_times() -> None:
    """The content endpoint is the output, with the key; the provider's times are read."""
    ready = polled(reply(COMPLETED | {"inference_time_s": 81.5}))
    assert isinstance(ready, Ready)
    assert ready.outputs == (RemoteFile(url=f"{BASE}/videos/video_68f0/content", needs_key=True),)
    assert ready.times.completed_at == datetime.fromtimestamp(1790000095, UTC)
    assert ready.times.execute_seconds == 81.5


@pytest.mark.parametrize(
    ("job", "outputs"),
    [
        ({"url": None}, [("/content", True)]),
        ({"num_outputs": 2}, [("/content?variant=0", True), ("/content?variant=1", True)]),
        ({"url": "https://bucket.example/a.mp4"}, [("https://bucket.example/a.mp4", False)]),
        (
            {"urls": ["https://b.example/0.mp4", "https://b.example/1.mp4"], "url": "https://b.example/0.mp4"},
            [("https://b.example/0.mp4", False), ("https://b.example/1.mp4", False)],
        ),
        ({"url": "file:///etc/passwd"}, [("/content", True)]),
        ({"urls": [7]}, [("/content", True)]),
    ],
)
def test_sglangs_outputs(job: dict[str, Any], outputs: list[tuple[str, bool]]) -> None:
    """SGLang numbers its outputs, or names where it has put them; such addresses get no key."""
    ready = polled(reply(COMPLETED | {"id": UUID} | job), remote_id=UUID)
    base = f"{BASE}/videos/{UUID}"
    assert ready.outputs == tuple(
        RemoteFile(url=url if ":" in url else base + url, needs_key=needs_key) for url, needs_key in outputs
    )


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (FAILED, "remote_failed"),
        (FAILED | {"error": {"code": "moderation_blocked", "message": "no"}}, "moderated"),
        (FAILED | {"error": None}, "remote_failed"),
        (FAILED | {"error": "text"}, "remote_failed"),
        (FAILED | {"id": None}, "remote_failed"),
        (FAILED | {"status": "cancelled"}, "remote_cancelled"),
        (FAILED | {"status": "deleted"}, "remote_cancelled"),
        (FAILED | {"status": "expired"}, "remote_expired"),
    ],
)
def test_an_ended_job_says_why(job: dict[str, Any], code: str) -> None:
    """Each way to end without a result has its code."""
    failed = polled(reply(job))
    assert isinstance(failed, Failed)
    assert failed.problem.code == code


@pytest.mark.parametrize("status", [400, 404, 422, 500, 503])
def test_vllm_omni_tells_of_a_failed_job_with_an_error_code(status: int) -> None:
    """The whole job in an error's body is the job's end, not the server's fault."""
    job = FAILED | {"id": VLLM_ID, "error": {"code": status, "message": "CUDA out of memory"}}
    failed = polled(reply(job, status=status), remote_id=VLLM_ID)
    assert isinstance(failed, Failed)
    assert "CUDA out of memory" in failed.problem.detail


def test_an_error_that_only_looks_like_a_job_is_trouble() -> None:
    """A gateway's own error object with another id does not end the job."""
    assert isinstance(polled(reply({"id": "req_1", "status": "failed"}, status=500)), Trouble)


@pytest.mark.parametrize("status", [404, 410])
def test_an_unknown_job_is_not_there(status: int) -> None:
    """404 says that the provider does not know the job."""
    assert isinstance(polled(reply({"detail": "not found"}, status=status)), NotThere)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply({"detail": "x"}, status=401), Refused),
        (reply({"detail": "x"}, status=403), Refused),
        (reply({"detail": "too many running"}, status=429), Refused),
        (reply({"detail": "x"}, status=402), Trouble),
        (reply({"detail": "x"}, status=409), Trouble),
        (reply({"detail": "x"}, status=500), Trouble),
        (reply(b"<html>not found</html>", status=404), Trouble),
        (reply(b"404 page not found\n", status=404), Trouble),
        (reply({"error": {"message": "Invalid URL (GET /videos/video_68f0)", "code": ""}}, status=404), Trouble),
        (reply(b"<html>hello</html>"), Trouble),
        (reply(b""), Trouble),
        (reply([QUEUED]), Trouble),
        (reply(QUEUED | {"status": ["queued"]}), Trouble),
        (reply(b"[" * 100_000), Trouble),
        (reply(b'{"status": "queued", "x": ' + b"[" * 80 + b"]" * 80 + b"}"), Trouble),
        (reply(b'{"status": "queued", "progress": NaN}'), Trouble),
        (reply(b'\xff\xfe{"status": "queued"}'), Trouble),
    ],
)
def test_a_poll_that_cannot_be_read_never_ends_the_task(answer: HttpReply, kind: type) -> None:
    """Whatever is wrong with a poll's answer, the task is asked for again."""
    outcome = polled(answer)
    assert isinstance(outcome, kind)
    if isinstance(outcome, Refused):
        assert outcome.scope is Scope.CALLS


@pytest.mark.parametrize("job", [QUEUED, COMPLETED, FAILED])
def test_a_reply_cut_at_any_byte_is_trouble(job: dict[str, Any]) -> None:
    """A job object that breaks off is asked for again, wherever it breaks off."""
    whole = json.dumps(job).encode()
    for end in range(len(whole)):
        assert isinstance(polled(reply(whole[:end])), Trouble)
        assert isinstance(submitted(reply(whole[:end])), Unknown)


def test_an_id_that_is_none_makes_no_address() -> None:
    """A remote id that breaks the pattern never becomes part of a URL."""
    requests, outcome = converse(make_adapter().poll(task_of("../files")))
    assert requests == []
    assert isinstance(outcome, NotThere)


# A lost create --------------------------------------------------------------------------------------------------------


def found(*answers: HttpReply, sought: Search | None = None, **parameters: Any) -> Any:
    return converse(make_adapter().find(task_of(None, **parameters), sought or search()), *answers)[1]


def test_the_one_job_that_is_like_it_is_found() -> None:
    """One job with the same words, made when the create was sent, is the lost one."""
    other = QUEUED | {"id": "video_other", "prompt": "something else"}
    outcome = found(listing(WORKING, other))
    assert isinstance(outcome, Found)
    assert (outcome.remote_id, outcome.remote_state) == ("video_68f0", RemoteState.WORKING)


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "a paper boat"},
        {"prompt": None},
        {"model": "sora-2-pro"},
        {"seconds": "8"},
        {"size": "720x1280"},
        {"created_at": 1790000000 - 121},
        {"created_at": 1790000000 + 151},
        {"created_at": None},
        {"id": "../x"},
        {"id": 7},
    ],
)
def test_a_job_that_differs_is_not_taken(change: dict[str, Any]) -> None:
    """Another prompt, model, length, size or time is another job."""
    assert isinstance(found(listing(QUEUED | change)), Undecided)


def dated(shift: float, *jobs: Mapping[str, Any]) -> HttpReply:
    """
    A list that the provider's clock, `shift` seconds ahead of ours, says it sent a minute after the create was sent.
    """
    date = (SENT_AT + timedelta(seconds=60 + shift)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    return reply({"data": list(jobs), "has_more": False}, headers={"date": date})


@pytest.mark.parametrize("shift", [-86400, -100, 0, 100, 86400])
@pytest.mark.parametrize(("late", "kind"), [(-4, Undecided), (-3, Found), (0, Found), (150, Found), (151, Undecided)])
def test_a_job_of_before_the_create_is_somebody_elses(shift: int, late: int, kind: type) -> None:
    """Where the list's Date shows how far apart the clocks are, 3 s and no more are allowed before the sending."""
    assert isinstance(found(dated(shift, QUEUED | {"created_at": 1790000000 + shift + late})), kind)


def test_the_first_page_tells_the_time() -> None:
    """Later pages are asked for later, so their Date would show too much."""
    newer = QUEUED | {"id": "video_new", "prompt": "x", "created_at": 1790009999}
    first = replace(dated(0, newer), body=listing(newer, has_more=True).body)
    assert isinstance(found(first, dated(60, QUEUED)), Found)


@pytest.mark.parametrize("date", ["", "yesterday", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_date_that_shows_nothing_is_passed_over(date: str) -> None:
    """What is no date, or ends time, is as none: then two minutes either way are allowed."""
    job = QUEUED | {"created_at": 1790000000 - 120}
    assert isinstance(found(reply({"data": [job]}, headers={"date": date})), Found)


@pytest.mark.parametrize("seconds", [4, 4.0, "4.0"])
def test_another_spelling_of_the_length_is_the_same(seconds: Any) -> None:
    """Servers may answer the seconds as a number."""
    assert isinstance(found(listing(QUEUED | {"seconds": seconds})), Found)


def test_what_the_server_chose_is_not_compared() -> None:
    """A size that was not sent may be any."""
    assert isinstance(found(listing(QUEUED), size=None), Found)


def test_a_job_of_another_task_is_not_taken() -> None:
    """A job that a task of ours owns is not the lost one."""
    assert isinstance(found(listing(QUEUED), sought=search(owned=frozenset({"video_68f0"}))), Undecided)


def test_two_alike_are_left_to_a_person() -> None:
    """Of two jobs that are both like it, neither is taken, and both are named."""
    outcome = found(listing(QUEUED, QUEUED | {"id": "video_twin"}))
    assert outcome == Undecided(
        detail="2 jobs in the provider's list look like it", candidates=("video_68f0", "video_twin")
    )


def test_absence_proves_nothing() -> None:
    """An empty list leaves it open: local servers forget, and lists lag."""
    assert isinstance(found(listing()), Undecided)
    assert make_adapter().traits.dedupe is Dedupe.LIST


def test_the_list_is_read_page_by_page_to_the_time_of_the_create() -> None:
    """Newest first, on until a page reaches back before the create."""
    newer = QUEUED | {"id": "video_new=+", "prompt": "x", "created_at": 1790009999}
    older = QUEUED | {"id": "video_old", "created_at": 1780000000}
    requests, outcome = converse(
        make_adapter().find(task_of(None), search()),
        listing(newer, has_more=True),
        listing(QUEUED, older, has_more=True),
    )
    assert isinstance(outcome, Found)
    assert [request.url for request in requests] == [
        f"{BASE}/videos?order=desc&limit=100",
        f"{BASE}/videos?order=desc&limit=100&after=video_new%3D%2B",
    ]


def test_a_list_without_end_decides_nothing() -> None:
    """A match in a list that could not be read to its end may not be the only one."""
    newer = QUEUED | {"id": "video_new", "prompt": "x", "created_at": 1790009999}
    outcome = found(*[listing(QUEUED, newer, has_more=True)] * 5)
    assert outcome.candidates == ("video_68f0",)
    assert isinstance(outcome, Undecided)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply({"detail": "x"}, status=401), Refused),
        (reply({"detail": "x"}, status=500), Trouble),
        (reply({"data": {}}), Trouble),
        (reply(b"<html>"), Trouble),
        (listing({"id": "x"}, QUEUED), Found),
    ],
)
def test_a_list_that_cannot_be_read_is_asked_for_again(answer: HttpReply, kind: type) -> None:
    """Trouble with the list leaves the task uncertain."""
    assert isinstance(found(answer), kind)


# Cancel and download --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "remote_id"), [("auto", "video_68f0"), ("auto", UUID), ("sglang", UUID)])
def test_where_delete_does_not_stop_nothing_is_sent(dialect: str, remote_id: str) -> None:
    """OpenAI cannot stop a job and SGLang's DELETE only forgets it, so neither is asked."""
    requests, outcome = converse(make_adapter(dialect).cancel(task_of(remote_id)))
    assert requests == []
    assert outcome == Cancelled(outcome=CancelOutcome.UNSUPPORTED)


@pytest.mark.parametrize(("status", "stopped"), [(200, True), (409, True), (404, False)])
def test_vllm_omni_is_asked_to_stop(status: int, stopped: bool) -> None:
    """DELETE aborts a running job there; 409 says that the abort is under way."""
    running = reply(WORKING | {"id": VLLM_ID})
    requests, outcome = converse(make_adapter().cancel(task_of(VLLM_ID)), running, reply({}, status=status))
    assert [request.method for request in requests] == ["GET", "DELETE"]
    assert isinstance(outcome, Cancelled if stopped else Trouble)


def test_a_job_that_is_not_there_is_not_called_finished() -> None:
    """An earlier DELETE may have stopped it: that is not too late to cancel, and is left to the polls."""
    requests, outcome = converse(make_adapter().cancel(task_of(VLLM_ID)), reply({"detail": "not found"}, status=404))
    assert [request.method for request in requests] == ["GET"]
    assert isinstance(outcome, Trouble)


@pytest.mark.parametrize("job", [COMPLETED, FAILED])
def test_a_finished_job_is_not_deleted(job: dict[str, Any]) -> None:
    """DELETE would throw a paid result away, so a finished job is left alone."""
    requests, outcome = converse(make_adapter().cancel(task_of(VLLM_ID)), reply(job | {"id": VLLM_ID}))
    assert [request.method for request in requests] == ["GET"]
    assert isinstance(outcome, CancelTooLate)


@pytest.mark.parametrize(
    ("output", "keyed"),
    [
        (RemoteFile(url=f"{BASE}/videos/x/content", needs_key=True), True),
        (RemoteFile(url=f"{BASE}/videos/x/content"), False),
        (RemoteFile(url="https://elsewhere.example/v1/x", needs_key=True), False),
        (RemoteFile(url=f"{BASE}.evil.example/x", needs_key=True), False),
    ],
)
def test_the_key_goes_to_the_server_alone(output: RemoteFile, keyed: bool) -> None:
    """A download carries the key only to the account's own address."""
    request = make_adapter().download(task_of(), output)
    assert ("Authorization" in request.headers) is keyed
    assert request.url == output.url


def test_no_limits_are_told() -> None:
    """None of these servers tells its window; nothing is sent."""
    assert converse(make_adapter().limits()) == ([], None)


# The account ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "floor", "hosts"),
    [
        ("https://video.example/v1/", 1.0, ("video.example",)),
        ("https://video.example:8443/v1", 1.0, ()),
        ("http://127.0.0.1:8000/v1", 0.0, ()),
        ("http://localhost:8000/v1", 0.0, ()),
        ("http://[::1]:8000/v1", 0.0, ()),
    ],
)
def test_a_server_on_this_machine_may_be_asked_as_often_as_wished(
    base_url: str, floor: float, hosts: tuple[str, ...]
) -> None:
    """Loopback has no poll floor; a named host on the usual port is on the list."""
    traits = make_adapter(base_url=base_url).traits
    assert (traits.poll_floor, traits.hosts) == (floor, hosts)


@pytest.mark.parametrize(("dialect", "base_url"), [("klingon", BASE), ("auto", "video.example"), ("auto", "")])
def test_wrong_settings_are_refused(dialect: str, base_url: str) -> None:
    """No such dialect, or no such address."""
    with pytest.raises(ConfigError):
        make_adapter(dialect, None, base_url)


def test_a_providers_words_are_made_fit_to_show() -> None:
    """An echoed key is blotted out, control characters are escaped, and the length is bounded."""
    said = "key sk-canary\r\n\x1b[31m\u202e" + "x" * 9000
    failed = submitted(reply({"error": {"message": said}}, status=400))
    assert "sk-canary" not in failed.problem.detail
    assert failed.problem.detail.startswith("key [key]  \\u001b[31m\\u202exxx")
    assert len(failed.problem.detail) < 700


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
MUTATED = st.tuples(
    st.sampled_from([QUEUED, WORKING, COMPLETED, FAILED, {"data": [QUEUED]}, {"error": {"message": "x"}}]),
    st.dictionaries(st.sampled_from([*QUEUED, "data", "url", "urls", "num_outputs", "detail", "message"]), JSON),
).map(lambda parts: json.dumps(parts[0] | parts[1]).encode())
REPLIES = st.builds(
    HttpReply,
    status=st.sampled_from([200, 201, 204, 302, 400, 401, 402, 403, 404, 409, 422, 429, 500, 503]),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "date"]),
        st.text(max_size=40) | st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    ),
    body=MUTATED | st.binary(max_size=80),
)


# The first text of all is slow: hypothesis makes its table of characters then.
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(REPLIES, st.sampled_from(["video_68f0", VLLM_ID, UUID]))
def test_no_reply_ever_raises(answer: HttpReply, remote_id: str) -> None:
    """Whatever a provider sends, a conversation ends with an outcome and never names the key."""
    adapter, task = make_adapter(), task_of(remote_id)
    outcomes = [
        converse(conversation, answer, repeat=True)[1]
        for conversation in (
            adapter.submit(task),
            adapter.poll(task),
            adapter.find(task, search()),
            adapter.cancel(task),
        )
    ]
    assert None not in outcomes
    assert "sk-canary" not in repr(outcomes)
