"""
Whatever comes over the wire, the relay answers, stays whole, and stays small.
"""

import re
from pathlib import Path

import pytest

from vidrelay.server.openapi import describe

from .fuzz import fuzz
from .lives import Life, pretend_provider
from .requests import TARGETS, Requests

pytestmark = pytest.mark.process

MAX_GROWN_BYTES = 16 * 1024 * 1024


def settings(port: int) -> str:
    """
    One account, whose provider refuses every create: tasks end as soon as they are made.
    """
    return f'[accounts.sim]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'


async def test_two_thousand_odd_inputs_find_no_5xx_no_hang_and_no_leak(tmp_path: Path) -> None:
    """
    A share of the hundred thousand that `tests/security/proof.py` sends.
    """
    with (
        pretend_provider(tmp_path, "--fault", "create-moderation:always") as port,
        Life(tmp_path, settings(port)) as life,
    ):
        figures = await fuzz(life, inputs=2000, seed=3)
        log = (life.state / "logs/relay.log").read_text()
    assert (figures.inputs, figures.server_errors, figures.hangs, figures.garbled) == (2000, [], [], [])
    assert {200, 400, 403, 404, 405, 415, 422, 431} <= set(figures.statuses)
    assert figures.grown_bytes < MAX_GROWN_BYTES
    assert figures.slowest_seconds < 5
    assert "call.failed" not in log


def test_an_input_is_made_from_its_seed_and_number_alone() -> None:
    """
    So that one that found something can be sent again.
    """
    one, other = Requests(3, 50_000, "vrl_x"), Requests(3, 50_000, "vrl_x")
    assert [one.make(number) for number in range(200)] == [other.make(number) for number in range(199, -1, -1)][::-1]
    assert len({one.make(number) for number in range(2000)}) > 1900


def test_every_route_is_asked_for() -> None:
    """
    One that is added is among the fuzzer's targets, or this fails.
    """
    asked = {target.decode("latin-1").partition("?")[0] for target in TARGETS}
    paths = describe("1")["paths"]
    names = {"{id}": "t", "{index}": "0", "{name}": "sim"}
    spelled = {re.sub(r"\{\w+\}", lambda found: names[found[0]], path) for path in paths}
    assert spelled - asked == set()


def test_no_input_shuts_the_relay_down() -> None:
    """
    The one call that must not get through.
    """
    requests = Requests(3, 50_000, "vrl_token")
    made = [requests.make(number) for number in range(5000)]
    assert not [data for data in made if b"shutdown" in data and b"vrl_token" in data]
    assert [data for data in made if b"shutdown" in data]
