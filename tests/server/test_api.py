import asyncio

import pytest
from fake_relay import LOST, FakeRelay
from loopback import app_of, call_app

from vidrelay.core.lifecycle import Accepted, Started
from vidrelay.core.task import State
from vidrelay.scheduler.face import COUNTERS, Sender
from vidrelay.testing.clock import FakeClock

PNG = b"\x89PNG" + bytes(100)


async def test_a_new_task_is_answered_202_with_its_address(served):
    """
    A first submit is a 202 with the task's address and body, not deduped.
    """
    answer = await served.client.post("/generate", json={"prompt": "a fox"})
    assert answer.status_code == 202
    assert answer.headers["location"] == "/task/t1"
    assert answer.json()["taskId"] == "t1"
    assert answer.json()["deduped"] is False


async def test_a_join_is_answered_200_and_says_so(served):
    """
    The same request while its task is live is a 200 that says deduped, and not from the cache.
    """
    await served.client.post("/generate", json={"prompt": "a fox"})
    answer = await served.client.post("/generate", json={"prompt": "a fox"})
    assert (answer.status_code, answer.json()["deduped"], answer.json()["fromCache"]) == (200, True, False)


async def test_a_cache_hit_is_answered_200_and_says_so(served):
    """
    A request whose result is kept is a 200 that says from the cache, and not deduped.
    """
    served.relay.make("a fox")
    served.relay.finish("t1")
    answer = await served.client.post("/generate", json={"prompt": "a fox"})
    assert (answer.status_code, answer.json()["deduped"], answer.json()["fromCache"]) == (200, False, True)


async def test_flags_of_an_answer_are_false_when_the_task_is_looked_at(served):
    """
    `deduped` belongs to the submit's answer, and is false in a later look.
    """
    await served.client.post("/generate", json={"prompt": "a fox"})
    await served.client.post("/generate", json={"prompt": "a fox"})
    assert (await served.client.get("/task/t1")).json()["deduped"] is False


async def test_the_same_key_and_body_get_the_same_task_as_deduped(served):
    """
    A repeated Idempotency-Key with the same body is a 200 with the first task.
    """
    headers = {"Idempotency-Key": "k 1"}
    await served.client.post("/generate", json={"prompt": "a fox"}, headers=headers)
    answer = await served.client.post("/generate", json={"prompt": "a fox"}, headers=headers)
    assert (answer.status_code, answer.json()["taskId"], answer.json()["deduped"]) == (200, "t1", True)


async def test_the_same_key_with_another_body_is_409(served):
    """
    An Idempotency-Key used for another request is a conflict.
    """
    headers = {"Idempotency-Key": "k1"}
    await served.client.post("/generate", json={"prompt": "a fox"}, headers=headers)
    answer = await served.client.post("/generate", json={"prompt": "a cat"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")


async def test_what_the_app_says_of_itself_reaches_the_relay(served):
    """
    App name, request id and whether it is a resend are passed on from the headers.
    """
    headers = {"X-Vidrelay-App": "editor", "X-Client-Request-Id": "r1", "x-stainless-retry-count": "2"}
    await served.client.post("/generate", json={"prompt": "a fox"}, headers=headers)
    sender = served.relay.submitted[0][1]
    assert sender == Sender(app="editor", request_id="r1", resend=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"idempotency-key", b""),
        (b"idempotency-key", b"x" * 256),
        (b"idempotency-key", "é".encode()),
        (b"x-client-request-id", b"a\tb"),
        (b"x-vidrelay-app", b"x" * 101),
        (b"x-vidrelay-app", b"\xff"),
    ],
)
async def test_a_header_that_cannot_be_kept_is_400_and_makes_nothing(served, name, value):
    """
    An empty, too long or unprintable header of ours is refused and no task made.
    """
    answer = await served.client.post("/generate", json={"prompt": "a fox"}, headers=[(name, value)])
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_header")
    assert not served.relay.tasks


async def test_a_doubled_key_is_400(served):
    """
    Two Idempotency-Key headers are refused, though they be equal.
    """
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    answer = await served.client.post("/generate", json={"prompt": "a fox"}, headers=headers)
    assert answer.json()["code"] == "invalid_header"


@pytest.mark.parametrize("field", ["base_url", "api_base", "headers", "proxy", "callback_url", "promt"])
async def test_an_unknown_field_is_422_naming_it(served, field):
    """
    A field the request does not have, dangerous or misspelt, is named and no task made.
    """
    answer = await served.client.post("/generate", json={"prompt": "a fox", field: "x"})
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not served.relay.tasks


async def test_an_unknown_account_is_422_in_a_request_and_404_in_a_path(served):
    """
    The code is the same, and the status tells a wrong request from a wrong address.
    """
    asked = await served.client.post("/generate", json={"prompt": "a fox", "account": "x"})
    resumed = await served.client.post("/accounts/x/resume")
    assert (asked.status_code, resumed.status_code) == (422, 404)
    assert asked.json()["code"] == resumed.json()["code"] == "unknown_account"
    assert asked.json()["field"] == "account"
    assert "field" not in resumed.json()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/tasks?states=done", "states"),
        ("/tasks?limit=1&State=done", "State"),
        ("/tasks?x", "x"),
        ("/tasks?%0A=1", r"\n"),
        ("/task/t1?wait=0&seem=done", "seem"),
        ("/task/t1/result?Index=1", "Index"),
    ],
)
async def test_an_unknown_parameter_is_named(served, path, field):
    """
    A misspelt filter is a 422 that names it, not an answer to another question.
    """
    served.relay.make()
    answer = await served.client.get(path)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_task_shows_every_field_of_the_contract(served):
    """
    A task over HTTP has the contract's fields and no other, instants in milliseconds.
    """
    served.relay.make()
    task = (await served.client.get("/task/t1")).json()
    assert set(task) == {
        *("taskId", "state", "ahead", "remoteState", "queuePosition", "progress", "eta", "account", "provider"),
        *("modelVersion", "request", "fingerprint", "deduped", "fromCache", "remoteId", "attempts", "createdAt"),
        *("updatedAt", "blocked", "joins", "cost", "cancel", "timings", "result", "error"),
    }
    assert task["createdAt"] == "2026-11-30T12:00:00.123Z"


@pytest.mark.parametrize("name", ["nobody", "a%2Fb", "%00", "%ff", "x" * 300])
async def test_an_unknown_task_is_404(served, name):
    """
    An id without a task, also an escaped, broken or endless one, is a 404.
    """
    answer = await served.client.get(f"/task/{name}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_task")


async def test_waiting_ends_when_the_state_changes(served):
    """
    A long poll is answered with the new state as soon as it comes.
    """
    served.relay.make()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(served.client.get("/task/t1?wait=30"))
        await served.relay.waiting.wait()
        served.relay.move("t1", Started(submission_key="k"))
    assert waiting.result().json()["state"] == "submitting"


async def test_waiting_answers_at_once_where_the_state_differs_from_what_was_seen(served):
    """
    A `seen` state that is not the present one ends the wait before it begins.
    """
    served.relay.make()
    async with asyncio.timeout(2):
        answer = await served.client.get("/task/t1?wait=30&seen=running")
    assert answer.json()["state"] == "queued"


async def test_waiting_for_an_ended_task_answers_at_once(served):
    """
    No wait is held for a task that has ended, though that state was seen.
    """
    served.relay.make()
    served.relay.finish("t1")
    async with asyncio.timeout(2):
        answer = await served.client.get("/task/t1?wait=30&seen=done")
    assert answer.json()["state"] == "done"


async def test_waiting_answers_with_the_same_state_when_the_time_is_over(served):
    """
    A wait without a change ends after its time with the task as it is.
    """
    served.relay.make()
    answer = await served.client.get("/task/t1?wait=0.05")
    assert answer.json()["state"] == "queued"


async def test_waiting_ends_when_the_relay_stops(served):
    """
    A relay that stops answers those who wait with the task as it is.
    """
    served.relay.make()
    async with asyncio.timeout(3), asyncio.TaskGroup() as group:
        waiting = group.create_task(served.client.get("/task/t1?wait=30"))
        await served.relay.waiting.wait()
        served.stop.set()
    assert waiting.result().json()["state"] == "queued"


@pytest.mark.parametrize("query", ["wait=61", "wait=-1", "wait=x", "wait=nan", "wait=1e1", "wait=", "wait=1&wait=2"])
async def test_a_wait_that_is_no_time_up_to_a_minute_is_422(served, query):
    """
    A wait out of range, doubled or in another spelling is refused by its name.
    """
    served.relay.make()
    answer = await served.client.get(f"/task/t1?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, "wait")


async def test_a_state_that_does_not_exist_is_422(served):
    """
    An unknown state in `seen` or `state` is refused by the parameter's name.
    """
    served.relay.make()
    assert (await served.client.get("/task/t1?seen=asleep")).json()["field"] == "seen"
    assert (await served.client.get("/tasks?state=asleep")).json()["field"] == "state"


async def test_cancelling_tells_what_this_wish_came_to(served):
    """
    The first cancel says what it did, and a second one that it came too late.
    """
    served.relay.make()
    first = await served.client.post("/task/t1/cancel")
    again = await served.client.post("/task/t1/cancel")
    assert first.json()["cancel"] == {"outcome": "local"}
    assert (again.status_code, again.json()["cancel"]) == (200, {"outcome": "too_late"})


async def test_a_form_cannot_cancel(served):
    """
    A cancel with a form's body is a 415, and the task stays as it was.
    """
    served.relay.make()
    answer = await served.client.post("/task/t1/cancel", data={"a": "b"})
    assert answer.status_code == 415
    assert served.relay.tasks["t1"].state is State.QUEUED


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ({"action": "retry"}, "queued"),
        ({"action": "adopt", "remoteId": "r9"}, "running"),
        ({"action": "abandon"}, "cancelled"),
    ],
)
async def test_an_uncertain_task_is_settled_as_a_person_says(served, body, state):
    """
    Retry queues an uncertain task, adopt runs it and abandon cancels it.
    """
    served.relay.make()
    served.relay.move("t1", Started(submission_key="k"), LOST)
    answer = await served.client.post("/task/t1/resolve", json=body)
    assert (answer.status_code, answer.json()["state"]) == (200, state)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "action"),
        ({"action": "wait"}, "action"),
        ({"action": ["retry"]}, "action"),
        ({"action": "adopt"}, "remoteId"),
        ({"action": "adopt", "remoteId": ""}, "remoteId"),
        ({"action": "adopt", "remoteId": "a\nb"}, "remoteId"),
        ({"action": "adopt", "remoteId": 5}, "remoteId"),
        ({"action": "retry", "remoteId": "r"}, "remoteId"),
        ({"action": "retry", "x": 1}, "x"),
        ([], None),
    ],
)
async def test_a_resolution_that_makes_no_sense_is_422(served, body, field):
    """
    An unknown action, or one with a wrong remote id, is refused by the field.
    """
    served.relay.make()
    answer = await served.client.post("/task/t1/resolve", json=body)
    assert (answer.status_code, answer.json().get("field")) == (422, field)


async def test_a_task_that_is_not_uncertain_cannot_be_resolved(served):
    """
    Resolving a task in any other state is a 409.
    """
    served.relay.make()
    answer = await served.client.post("/task/t1/resolve", json={"action": "retry"})
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


async def test_pages_lead_through_every_task_once(served):
    """
    Following the cursors gives all tasks, the newest first and none twice.
    """
    for number in range(5):
        served.relay.make(f"prompt {number}")
    names, cursor = [], ""
    while cursor is not None:
        page = (await served.client.get("/tasks", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        names += [task["taskId"] for task in page["tasks"]]
        cursor = page["next"]
    assert names == ["t5", "t4", "t3", "t2", "t1"]


async def test_tasks_can_be_asked_for_by_several_states(served):
    """
    States separated by commas and repeated parameters select the same tasks.
    """
    for number in range(3):
        served.relay.make(f"prompt {number}")
    served.relay.move("t1", Started(submission_key="k"), Accepted(remote_id="r"))
    served.relay.finish("t2")
    comma = await served.client.get("/tasks?state=running,done")
    repeated = await served.client.get("/tasks?state=running&state=done")
    assert [task["taskId"] for task in comma.json()["tasks"]] == ["t2", "t1"]
    assert comma.json() == repeated.json()


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "limit=1_0", "limit=%EF%BC%95", "limit=1&limit=2"]
)
async def test_a_limit_out_of_range_is_422(served, query):
    """
    A limit that is not one plain number from 1 to 500 is refused by its name.
    """
    assert (await served.client.get(f"/tasks?{query}")).json()["field"] == "limit"


@pytest.mark.parametrize("cursor", ["x", "", "!!!", "YmVmb3JlOi0x", "YmVmb3JlOjk5OTk5OTk5OTk5OTk5OTk5OTk5", "%00", "é"])
async def test_a_cursor_that_is_not_ours_is_422(served, cursor):
    """
    A cursor that was not given out by the relay is refused by its name.
    """
    answer = await served.client.get(f"/tasks?cursor={cursor}")
    assert (answer.status_code, answer.json()["field"]) == (422, "cursor")


async def test_a_picture_is_taken_in_and_measured(served):
    """
    A posted picture is answered with its asset id, size and length.
    """
    answer = await served.client.post("/assets", content=PNG, headers={"Content-Type": "image/png"})
    assert answer.json() == {
        "asset": answer.json()["asset"],
        "width": 4,
        "height": 3,
        "bytes": 104,
    }
    assert served.relay.assets == [PNG]


async def test_a_picture_needs_no_content_type_but_no_other_one(served):
    """
    A picture is taken without a type, and under a type that is no picture's it is a 415.
    """
    assert (await served.client.post("/assets", content=PNG)).status_code == 200
    wrong = await served.client.post("/assets", content=PNG, headers={"Content-Type": "text/html"})
    assert (wrong.status_code, wrong.json()["code"]) == (415, "unsupported_media_type")


async def test_bytes_that_are_no_picture_are_415(served):
    """
    Content that is no picture we take is refused as unsupported media.
    """
    answer = await served.client.post("/assets", content=b"GIF89a")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media")


async def test_accounts_tell_their_windows_and_why_they_rest(served):
    """
    An account tells its windows with their use, and the scope, reason and end of its pause.
    """
    account = (await served.client.get("/accounts")).json()["accounts"][0]
    assert account["windows"] == [{"name": "*", "limit": 2, "source": "configured", "running": 1, "queued": 3}]
    assert (account["paused"], account["scope"], account["why"]) == (True, "creates", "balance")
    assert account["until"] == "2026-11-30T12:00:00.123Z"
    told_at = account["quota"].pop("toldAt")
    assert told_at == "2026-11-30T12:00:00.123Z"
    assert account["quota"] == {"left": 7.5, "unit": "USD", "resetsAt": None}


async def test_an_account_tells_where_its_key_was_found(served):
    """
    The place, in words; the key is nowhere.
    """
    account = (await served.client.get("/accounts")).json()["accounts"][0]
    assert account["keyFrom"] == "the file key"


@pytest.mark.parametrize("ok", [True, False, None])
async def test_a_check_of_an_account_says_whether_its_key_is_taken(served, ok):
    """
    Yes, no, or not known; an account that is not there is a path to nothing.
    """
    served.relay.key_is_taken = ok
    answer = await served.client.post("/accounts/main/check")
    assert (answer.status_code, answer.json()) == (200, {"account": "main", "ok": ok, "detail": "7 credits left"})
    unknown = await served.client.post("/accounts/x/check")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_account")


async def test_resuming_an_account_lifts_its_pause(served):
    """
    After a resume the account is told as not paused.
    """
    answer = await served.client.post("/accounts/main/resume")
    assert (answer.status_code, answer.json()["paused"]) == (200, False)


async def test_stats_are_counters_with_what_was_saved_and_the_segments(served):
    """
    Statistics have all counters, zeros included, what was saved and the segments.
    """
    stats = (await served.client.get("/stats")).json()
    assert set(COUNTERS) < set(stats)
    assert (stats["submits"], stats["cacheHits"]) == (3, 0)
    assert stats["saved"] == {"clips": 2, "money": []}
    assert stats["segments"] == {"model-a": {"execute": {"median": 1.5, "p90": 3.0}}}


async def test_health_tells_the_version(served):
    """
    `/health` answers ok and the version that runs.
    """
    answer = await served.client.get("/health")
    assert answer.json() == {"status": "ok", "version": "1.2.3"}


async def test_metrics_are_prometheus_text(served):
    """
    Counters, live tasks and window limits come in Prometheus' text form.
    """
    served.relay.make()
    answer = await served.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert "vidrelay_remote_creates_total 1" in lines
    assert 'vidrelay_live_tasks{state="queued"} 1' in lines
    assert 'vidrelay_window_limit{account="main",window="*"} 2' in lines


async def test_shutdown_is_answered_before_it_happens(served):
    """
    POST of `/shutdown` is a 202, and the relay is told to stop once.
    """
    answer = await served.client.post("/shutdown")
    assert (answer.status_code, answer.json()) == (202, {"status": "stopping"})
    assert served.shutdowns == [True]


async def test_looking_at_shutdown_does_not_shut_down(served):
    """
    GET of `/shutdown` is a 405 that names POST, and the relay runs on.
    """
    answer = await served.client.get("/shutdown")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert served.shutdowns == []


async def test_a_stopping_relay_takes_nothing_new(relay: FakeRelay):
    """
    A submit while the relay stops is a 503 with the code for it.
    """
    stop = asyncio.Event()
    stop.set()
    status, body = await call_app(app_of(relay, 50000, FakeClock(), stop, []), "POST", "/generate", b'{"prompt":"x"}')
    assert (status, b"shutting_down" in body) == (503, True)


async def test_numbers_longer_than_64_bits_come_back_exact(served):
    """
    A thirty-digit number in the metadata is told back digit by digit.
    """
    body = b'{"prompt": "a fox", "metadata": {"n": 123456789012345678901234567890}}'
    answer = await served.client.post("/generate", content=body)
    assert answer.json()["request"]["metadata"]["n"] == 123456789012345678901234567890
