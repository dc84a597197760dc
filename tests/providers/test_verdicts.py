"""
What becomes of a call, by what the provider's answer is about.
"""

import pytest

from vidrelay.core.adapter import NotThere, PollOutcome, Refused, Scope, Trouble, Unknown
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import BlockReason, CancelOutcome
from vidrelay.providers.verdicts import (
    NO_FILE,
    NOT_OURS,
    Meaning,
    Said,
    of_call,
    of_create,
    of_refused_cancel,
    of_repeated,
    of_upload,
    ready,
    said,
)

RESTS = Refused(scope=Scope.CALLS, reason=BlockReason.AUTH, detail="the key")


def test_an_error_never_shows_the_key() -> None:
    """Neither in its code nor in its text, and not at any length."""
    error = said(HttpReply(status=400), {}, code="no k1", detail="k1 " * 1000, secret="k1")
    assert error.detail.startswith("no [key]: [key]")
    assert "k1" not in error.detail
    assert len(error.detail) < 600


@pytest.mark.parametrize(("status", "told"), [(200, "base_url"), (302, "base_url"), (502, "502")])
def test_a_web_page_where_the_api_should_be_names_the_base_url(status: int, told: str) -> None:
    """A site answers any address with a page; one that says that a server is down says nothing of the address."""
    page = HttpReply(status=status, headers={"content-type": "text/html; charset=utf-8"}, body=b"<p>Welcome")
    detail = said(page, {}, code=None, detail=None).detail
    assert told in detail
    assert ("base_url" in detail) is (told == "base_url")


@pytest.mark.parametrize(
    ("meaning", "readable", "outcome"),
    [
        (Meaning.REJECTED, True, Failed),
        (Meaning.MODERATED, True, Failed),
        (Meaning.REJECTED, False, Trouble),
        (Meaning.AUTH, True, Refused),
        (Meaning.BALANCE, True, Refused),
        (Meaning.BALANCE, False, Trouble),
        (Meaning.MISSING, True, Failed),
        (Meaning.MISSING, False, Trouble),
    ],
)
def test_a_refused_picture(meaning: Meaning, readable: bool, outcome: type) -> None:
    """For good where it is wrong, else the account rests or it is tried again."""
    assert isinstance(of_upload(Said(meaning=meaning, detail="no", readable=readable)), outcome)


@pytest.mark.parametrize("readable", [True, False])
def test_what_is_not_at_an_address_names_the_base_url(readable: bool) -> None:
    """A check, a list, an upload and a create that meet nothing there say what may be wrong with the account."""
    error = Said(meaning=Meaning.MISSING, detail="Not Found", readable=readable)
    told = [of_call(error), of_upload(error), of_create(error)]
    texts = [one.problem.detail if isinstance(one, Failed) else one.detail for one in told]
    assert all("base_url" in text and "Not Found" in text for text in texts)


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (RESTS, RESTS),
        (NO_FILE, NO_FILE),
        (StillRunning(), Cancelled(outcome=CancelOutcome.UNSUPPORTED)),
        (NOT_OURS, CancelTooLate()),
    ],
)
def test_a_refused_cancel(seen: PollOutcome, outcome: object) -> None:
    """The job runs on, or has ended, or nobody knows yet."""
    assert of_refused_cancel(seen) == outcome


def test_a_repeated_create_that_is_refused() -> None:
    """It was carried out before, or was not, or that is not known."""
    refusal = Unknown(detail="the refusal itself")
    assert of_repeated(Found(remote_id="t-1"), refusal) == Accepted(remote_id="t-1")
    assert of_repeated(NotThere(detail="none"), refusal) is refusal
    unsure = of_repeated(NO_FILE, refusal)
    assert isinstance(unsure, Unknown)
    assert unsure is not refusal


def test_a_done_job_needs_a_file() -> None:
    """One without an address is looked at again."""
    made = ready(None, "", "https://x.example/1.mp4")
    assert isinstance(made, Ready)
    assert [one.url for one in made.outputs] == ["https://x.example/1.mp4"]
    assert ready(None) is NO_FILE
