"""
The description of the API says what the API does, and odd calls made from it find no 500.
"""

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from fake_relay import LOST, FakeRelay
from hypothesis import HealthCheck, settings
from loopback import TOKEN, app_of, listen
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance

from vidrelay.core.lifecycle import Started
from vidrelay.scheduler.face import COUNTERS
from vidrelay.server.app import routes
from vidrelay.server.login import Logins
from vidrelay.server.openapi import CALLS, describe
from vidrelay.server.serve import serve
from vidrelay.testing.clock import FakeClock

ENDLESS_OR_BARE = re.compile(r"/events$|^/proof$")
ODDLY_CALLED = [f"{method} {path}" for method, path in CALLS if not ENDLESS_OR_BARE.search(path)]


def test_every_route_is_described_and_nothing_else():
    """
    The description has the application's routes, all of them and in their order, with the parameters they take.
    """
    endpoints = routes(
        FakeRelay(Path()),
        token=lambda: TOKEN,
        logins=Logins(lambda: TOKEN, FakeClock(), cookie_name="c"),
        port=1,
        instance="i",
        version="1",
        clock=FakeClock(),
        shutdown=lambda: None,
        stop_streams=asyncio.Event(),
    )
    assert [(endpoint.method, endpoint.path) for endpoint in endpoints] == list(CALLS)
    for endpoint in endpoints:
        told = CALLS[endpoint.method, endpoint.path].parameters
        if not endpoint.open:  # the gate itself reads what those bring
            assert endpoint.query == {each["name"] for each in told if each["in"] == "query"}, endpoint


def test_every_route_and_header_of_the_page_is_in_the_reference():
    """
    Each described call and each of its parameters is named in docs/reference/http.md.
    """
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    for (method, path), told in CALLS.items():
        assert f"`{method} {path}" in page, (method, path)
        for parameter in told.parameters:
            assert re.search(rf"\b{parameter['name']}\b", page), parameter["name"]


def test_every_counter_is_in_the_reference():
    """
    Each counter of the statistics is named in docs/reference/http.md.
    """
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    assert [name for name in COUNTERS if f"`{name}`" not in page] == []


def test_the_description_is_served_as_it_is(base_url):
    """
    `/openapi.json` answers with the description of the running version.
    """
    import requests

    answer = requests.get(f"{base_url}/openapi.json", headers={"X-Local-Token": TOKEN}, timeout=5)
    assert answer.json() == describe("1.2.3")


class ImpatientRelay(FakeRelay):
    """
    Answers those who wait at once.
    """

    async def wait(self, task_id, *, seconds, seen=None):
        return await self.get(task_id)


@pytest.fixture(scope="module")
def base_url(tmp_path_factory) -> Iterator[str]:
    """
    A relay served from a thread of its own, since schemathesis calls it from this one.
    """
    sock = listen()
    port = sock.getsockname()[1]
    started = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def run() -> None:
        relay = ImpatientRelay(tmp_path_factory.mktemp("cache"))
        for number in range(3):
            relay.make(f"prompt {number}")
        relay.finish("t1")
        relay.move("t2", Started(submission_key="k"), LOST)
        app = app_of(relay, port, FakeClock(), stop, [])
        loop.run_until_complete(serve(app, sock, stop=stop, ready=started.set, grace=1))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait(5)
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)


@pytest.fixture(scope="module")
def schema() -> BaseSchema:
    return schemathesis.openapi.from_dict(describe("1.2.3"))


@pytest.mark.parametrize("label", ODDLY_CALLED)
def test_odd_calls_are_answered_as_described(label, schema, base_url):
    """
    No 500, no undocumented status, no answer of another shape.
    """
    count = 0

    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def odd_call(case) -> None:
        nonlocal count
        count += 1
        # A schema cannot say which accounts exist or what is a picture, so a valid call may still be refused.
        case.call_and_validate(
            base_url=base_url,
            headers={"X-Local-Token": TOKEN},
            timeout=10,
            excluded_checks=[positive_data_acceptance],
        )

    # Made here and not by the schema's own decorator, with which every worker takes seconds to collect them all.
    tests = get_all_tests(schema=schema.include(name=label), test_func=odd_call, settings=None, given_kwargs=None)
    ((operation, odd_calls),) = [made.ok() for made in tests]
    odd_calls()
    assert operation.label == label
    assert count > 0
