"""
The JSON form of the records, both ways.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.fingerprint import normalise_prompt
from vidrelay.core.task import (
    Blocked,
    CancelOutcome,
    Eta,
    FileRef,
    Money,
    Priority,
    Problem,
    Reference,
    RemoteState,
    Request,
    Standing,
    State,
    Task,
)
from vidrelay.core.wire import instant, problem_json, request_from_json, request_json, task_json

NOW = datetime(2026, 11, 30, 12, 0, 0, 5_999, tzinfo=UTC)
ASSET = "sha256:" + "0f" * 32
TASK = Task(
    id="t1",
    account="main",
    provider="openai",
    window="*",
    model_version=None,
    request=Request(prompt="a fox"),
    parameters={},
    fingerprint="f" * 64,
    created_at=NOW,
    updated_at=NOW,
)


def shown(task=TASK, standing=None, **flags):
    return task_json(task, standing or Standing(), path_of=lambda file: PurePosixPath("/cache") / file.path, **flags)


def refused(body) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        request_from_json(body)
    return caught.value


# Outward


def test_a_task_has_every_field_of_the_contract_in_its_order():
    """
    A task's JSON has the fields of the contract, all of them and in that order.
    """
    assert list(shown()) == [
        *("taskId", "state", "ahead", "remoteState", "queuePosition", "progress", "eta", "account", "provider"),
        *("modelVersion", "request", "fingerprint", "deduped", "fromCache", "remoteId", "attempts", "createdAt"),
        *("updatedAt", "blocked", "joins", "cost", "cancel", "timings", "result", "error"),
    ]


def test_timings_have_all_seven_segments():
    """
    A task without timings tells all seven segments as null.
    """
    assert shown()["timings"] == dict.fromkeys(("wait", "submit", "queue", "execute", "return", "download", "total"))


def test_instants_have_exactly_milliseconds_and_a_z():
    """
    Microseconds are cut off to three digits, and whole seconds get three zeros.
    """
    assert instant(NOW) == "2026-11-30T12:00:00.005Z"
    assert instant(NOW.replace(microsecond=0)) == "2026-11-30T12:00:00.000Z"


def test_an_instant_of_another_zone_is_told_in_utc():
    """
    An instant in another zone is told as the same instant in UTC.
    """
    assert instant(NOW.astimezone(timezone(timedelta(hours=9)))) == "2026-11-30T12:00:00.005Z"


def test_what_is_known_beside_the_record_is_shown():
    """
    Place, progress, estimate and what blocks the task come from its standing.
    """
    standing = Standing(
        ahead=2,
        queue_position=5,
        progress=0.5,
        eta=Eta(seconds=9.0, low=5.0, high=20.0, basis="history"),
        blocked=Blocked(reason="rate", until=NOW),
    )
    task = shown(standing=standing)
    assert (task["ahead"], task["queuePosition"], task["progress"]) == (2, 5, 0.5)
    assert task["eta"] == {"seconds": 9.0, "low": 5.0, "high": 20.0, "basis": "history"}
    assert task["blocked"] == {"reason": "rate", "until": "2026-11-30T12:00:00.005Z"}


def test_what_the_contract_has_no_word_for_is_told_beside_it():
    """
    A task that waits for a provider that does not answer is not `blocked`; `waitingFor` tells why, only where there is
    something to tell.
    """
    held = Blocked(reason="network", until=NOW, detail="404: no such address")
    task = shown(standing=Standing(waiting_for=held))
    assert task["blocked"] is None
    assert task["waitingFor"] == {
        "reason": "network",
        "detail": "404: no such address",
        "until": "2026-11-30T12:00:00.005Z",
    }
    assert "waitingFor" not in shown(standing=Standing(waiting_for=Blocked(reason="window")))


def test_a_done_task_tells_where_its_files_are():
    """
    Each file is told with its absolute path, its address at the relay, length, hash and type.
    """
    file = FileRef(index=0, path="f/t1-0.mp4", size_bytes=9, sha256="a" * 64, media_type="video/mp4")
    task = shown(replace(TASK, state=State.DONE, files=(file,)))
    assert task["result"]["files"] == [
        {
            "index": 0,
            "path": "/cache/f/t1-0.mp4",
            "url": "/task/t1/result?index=0",
            "bytes": 9,
            "sha256": "a" * 64,
            "mediaType": "video/mp4",
        }
    ]


def test_a_lost_create_names_the_jobs_that_may_be_it():
    """
    The person who settles it learns which ids to look at, the first five of them.
    """
    lost = replace(TASK, state=State.UNCERTAIN, error=Problem(code="uncertain_submit", title="Lost", detail="Lost."))
    few = shown(lost, standing=Standing(candidates=("job-1", "job-2")))
    many = shown(lost, standing=Standing(candidates=tuple(f"job-{n}" for n in range(7))))
    assert few["error"]["detail"] == "Lost. At the provider it may be job-1, job-2."
    assert many["error"]["detail"] == "Lost. At the provider it may be job-0, job-1, job-2, job-3, job-4 and 2 more."


def test_an_error_is_a_problem_and_tells_retry_after_only_where_it_is_known():
    """
    A problem has the fields of RFC 9457 and ours; an unknown retry time is left out.
    """
    problem = Problem(code="moderated", title="Moderated", detail="no", status=400)
    assert problem_json(problem) == {
        "type": "urn:vidrelay:error:moderated",
        "title": "Moderated",
        "status": 400,
        "detail": "no",
        "code": "moderated",
        "retryable": False,
    }
    assert problem_json(replace(problem, retry_after=3.0))["retryAfter"] == 3.0


def test_money_is_exact_text_and_never_in_powers_of_ten():
    """
    An amount is written as plain decimal digits in a string.
    """
    task = shown(replace(TASK, cost=Money(amount=Decimal("1E+2"), currency="USD")))
    assert task["cost"] == {"amount": "100", "currency": "USD"}


def test_words_are_plain_strings():
    """
    States and outcomes are told as str itself, and not as members of an enumeration.
    """
    task = shown(replace(TASK, remote_state=RemoteState.WAITING, cancel=CancelOutcome.PENDING))
    assert {type(task["state"]), type(task["remoteState"]), type(task["cancel"]["outcome"])} == {str}


def test_the_request_is_told_back_so_that_it_can_be_sent_again():
    """
    Every field of a request that was read is written again as it was sent.
    """
    body = {
        "prompt": "a fox",
        "account": "main",
        "provider": "openai",
        "modelVersion": "m",
        "aspectRatio": "16:9",
        "duration": 5.5,
        "resolution": "720p",
        "seed": -1,
        "stylePreset": "noir",
        "negativePrompt": "",
        "references": [{"asset": ASSET, "role": "first"}, {"path": "/x.png"}, {"url": "https://x/y.png"}],
        "extra": {"a": [1, None, {"b": True}]},
        "forceRefresh": True,
        "priority": "batch",
        "metadata": {"shot": 3},
    }
    assert request_json(request_from_json(body)) == body


def test_a_path_that_has_been_read_is_told_back_as_the_path():
    """
    A reference by path is told back by its path, though its asset is known by then.
    """
    request = Request(prompt="x", references=(Reference(asset=ASSET, path="/x.png"),))
    assert request_json(request)["references"] == [{"path": "/x.png"}]


# Inward


def test_null_is_the_same_as_absent():
    """
    An optional field that is null is read as if it were not there.
    """
    body = dict.fromkeys(("account", "duration", "seed", "references", "extra", "forceRefresh", "priority", "metadata"))
    assert request_from_json({"prompt": "x", **body}) == Request(prompt="x")


def test_a_minimal_request_has_the_defaults():
    """
    A request of a prompt alone is interactive, not forced to refresh, and has nothing extra.
    """
    request = request_from_json({"prompt": "x"})
    assert (request.force_refresh, request.priority, request.extra) == (False, Priority.INTERACTIVE, {})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n\t\u3000"}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["x"]}, "prompt"),
        ({"prompt": "x" * 32_769}, "prompt"),
        ({"prompt": "a\x00b"}, "prompt"),
        ({"prompt": "a\ud800b"}, "prompt"),
        ({"account": ""}, "account"),
        ({"account": 5}, "account"),
        ({"account": "x" * 201}, "account"),
        ({"account": "a\nb"}, "account"),
        ({"provider": True}, "provider"),
        ({"modelVersion": {}}, "modelVersion"),
        ({"aspectRatio": "16x9"}, "aspectRatio"),
        ({"aspectRatio": "0:9"}, "aspectRatio"),
        ({"aspectRatio": "16:9\n"}, "aspectRatio"),
        ({"aspectRatio": "１６:9"}, "aspectRatio"),
        ({"aspectRatio": 1.78}, "aspectRatio"),
        ({"duration": 0}, "duration"),
        ({"duration": -1}, "duration"),
        ({"duration": 1e-300}, "duration"),
        ({"duration": 0.099}, "duration"),
        ({"duration": True}, "duration"),
        ({"duration": "5"}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"duration": float("inf")}, "duration"),
        ({"duration": 10**400}, "duration"),
        ({"resolution": 720}, "resolution"),
        ({"seed": 5.0}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": -(2**63) - 1}, "seed"),
        ({"seed": "5"}, "seed"),
        ({"stylePreset": []}, "stylePreset"),
        ({"negativePrompt": "x" * 32_769}, "negativePrompt"),
        ({"references": {}}, "references"),
        ({"references": [{}] * 33}, "references"),
        ({"references": ["x"]}, "references[0]"),
        ({"references": [{}]}, "references[0]"),
        ({"references": [{"role": "first"}]}, "references[0]"),
        ({"references": [{"path": "/x", "url": "https://x"}]}, "references[0]"),
        ({"references": [{"path": "/x"}, {"path": 5}]}, "references[1].path"),
        ({"references": [{"path": ""}]}, "references[0].path"),
        ({"references": [{"path": "/x\x00.png"}]}, "references[0].path"),
        ({"references": [{"asset": "sha256:x"}]}, "references[0].asset"),
        ({"references": [{"asset": ASSET + "\n"}]}, "references[0].asset"),
        ({"references": [{"asset": 5}]}, "references[0].asset"),
        ({"references": [{"url": "http://x.example/y.png"}]}, "references[0].url"),
        ({"references": [{"url": "https://127.0.0.1/y.png"}]}, "references[0].url"),
        ({"references": [{"url": "https://x/" + "y" * 8_183}]}, "references[0].url"),
        ({"references": [{"url": "https://x", "role": 1}]}, "references[0].role"),
        ({"references": [{"url": "https://x", "headers": {}}]}, "references[0].headers"),
        ({"extra": []}, "extra"),
        ({"extra": {"a": float("inf")}}, "extra"),
        ({"extra": {"a": "\ud800"}}, "extra"),
        ({"extra": {"\x00": 1}}, "extra"),
        ({"extra": {5: 1}}, "extra"),
        ({"extra": {"a": object()}}, "extra"),
        ({"extra": {"a": b"x"}}, "extra"),
        ({"forceRefresh": 1}, "forceRefresh"),
        ({"forceRefresh": "true"}, "forceRefresh"),
        ({"priority": "urgent"}, "priority"),
        ({"priority": ["batch"]}, "priority"),
        ({"metadata": "x"}, "metadata"),
        ({"base_url": "http://evil"}, "base_url"),
        ({"model": "m"}, "model"),
        ({"a\nb": 1}, r"a\nb"),
        ({"unknown": None}, "unknown"),
    ],
)
def test_what_is_wrong_is_refused_naming_the_field(body, field):
    """
    A missing, mistyped, too large or unknown field is refused, and the error names its path.
    """
    assert refused({"prompt": "x", **body} if "prompt" not in body and body else body).field == field


@pytest.mark.parametrize("body", [None, [], "x", 5, True, [{"prompt": "x"}]])
def test_what_is_no_object_is_refused(body):
    """
    A body that is no JSON object is refused as a whole, with no field.
    """
    assert refused(body).field is None


def test_an_unknown_field_is_told_where_it_could_go():
    """
    The refusal of an unknown field hints at `extra`.
    """
    assert "extra" in (refused({"prompt": "x", "guidance": 7}).hint or "")


def test_the_longest_prompt_counts_characters_and_not_bytes():
    """
    A prompt of 32,768 characters is taken though it has four times as many bytes.
    """
    assert len(request_from_json({"prompt": "🦊" * 32_768}).prompt) == 32_768


@pytest.mark.parametrize(
    "prompt", [" \n\t", "\u200b", "  \u200b\u3000 ", "\ufeff\u200e", "\u200d\ufe0f", "\x1f", "\u00ad" * 32_768]
)
def test_a_prompt_with_nothing_to_see_is_refused(prompt):
    """
    What would be the empty prompt in the fingerprint is no prompt.
    """
    assert refused({"prompt": prompt}).field == "prompt"


@pytest.mark.parametrize("prompt", ["🦊", "!", "...", "❤\ufe0f", "\u200bx", "狐", "①", "— —"])
def test_a_prompt_of_one_sign_is_a_prompt(prompt):
    """
    Whatever can be seen may be asked for, and is kept as it was typed.
    """
    assert request_from_json({"prompt": prompt}).prompt == prompt


# The first text of all is slow: hypothesis makes its table of characters then.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_the_quick_look_at_a_prompt_agrees_with_the_fingerprint(prompt):
    """
    A prompt is refused exactly where nothing is left of it in the fingerprint.
    """
    if normalise_prompt(prompt):
        assert request_from_json({"prompt": prompt}).prompt == prompt
    else:
        assert refused({"prompt": prompt}).field == "prompt"


@pytest.mark.parametrize("value", [5, 5.0, 0.1, 86_400])
def test_a_duration_is_kept_as_it_was_written(value):
    """
    A whole duration stays an int and a decimal one a float, with their values.
    """
    duration = request_from_json({"prompt": "x", "duration": value}).duration
    assert (duration, type(duration)) == (value, type(value))


@pytest.mark.parametrize("seed", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_a_seed_is_exact(seed):
    """
    Seeds of up to 64 bits with a sign are read without rounding.
    """
    assert request_from_json({"prompt": "x", "seed": seed}).seed == seed


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_extra_may_be_nested_64_deep_and_no_deeper():
    """
    `extra` is read at a depth of 64 and refused at 65.
    """
    assert request_from_json({"prompt": "x", "extra": nested(64)}).extra == nested(64)
    assert refused({"prompt": "x", "extra": nested(65)}).field == "extra"


def test_extra_nested_a_hundred_thousand_deep_is_refused():
    """
    Metadata of monstrous depth is refused by its name, and exhausts no stack.
    """
    value: object = []
    for _ in range(100_000):
        value = [value]
    assert refused({"prompt": "x", "metadata": {"a": value}}).field == "metadata"


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=12)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [*request_json(Request(prompt="x")), "references", "extra", "metadata", "seed", "duration", "priority"]
FIELDS += ["account", "aspectRatio", "forceRefresh", "negativePrompt", "resolution", "stylePreset", "modelVersion"]


@given(ANYTHING | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), ANYTHING, max_size=6))
@settings(max_examples=600, deadline=None)
def test_anything_at_all_is_read_or_refused(body):
    """
    Nothing but `InvalidRequest` is ever raised, and what is read can be written and read again.
    """
    try:
        request = request_from_json(body)
    except InvalidRequest:
        return
    assert request_from_json(request_json(request)) == request
