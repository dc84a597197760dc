"""
Options, faults and bodies as they are written.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrelay.core.errors import ConfigError
from vidrelay.simulator.faults import ArmedFaults, Fault, Place
from vidrelay.simulator.form import Sent, read_body
from vidrelay.simulator.options import SimulatorOptions, parse


def test_flags_become_options() -> None:
    """Each setting has a flag of its own name."""
    options = parse(["--window", "2", "--queue-seconds", "0.1", "--dialect", "sglang", "--fault", "create-drop:2"])
    assert (options.window, options.queue_seconds, options.dialect) == (2, 0.1, "sglang")
    assert options.faults == ("create-drop:2",)


@pytest.mark.parametrize(
    "arguments", [["--dialect", "klingon"], ["--window", "-1"], ["--fault", "create-nothing"], ["--fail-share", "nan"]]
)
def test_a_wrong_flag_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong flag is told and nothing runs."""
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("models", ["fast", "fast=x"])
def test_models_must_be_pairs(models: str) -> None:
    """`models` that cannot be read are refused."""
    with pytest.raises(ConfigError):
        SimulatorOptions(models=models)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("create-drop", Fault(place=Place.CREATE, effect="drop")),
        ("create-drop-after:3", Fault(place=Place.CREATE, effect="drop-after", count=3)),
        ("poll-error=503:always", Fault(place=Place.POLL, effect="error", argument="503", count=None)),
        ("any-slow=0.5", Fault(place=None, effect="slow", argument="0.5")),
        ("content-cut-chunked", Fault(place=Place.CONTENT, effect="cut-chunked")),
        (
            "poll-rate=Mon, 30 Nov 2026 12:00:00 GMT:1",
            Fault(place=Place.POLL, effect="rate", argument="Mon, 30 Nov 2026 12:00:00 GMT"),
        ),
    ],
)
def test_a_fault_is_read(spec: str, fault: Fault) -> None:
    """A fault names its place, effect, argument and count."""
    assert Fault.parse(spec) == fault


@pytest.mark.parametrize("spec", ["", "drop", "create", "create-cut", "poll-error=200", "poll-slow=soon", "moon-drop"])
def test_a_fault_that_cannot_be_is_refused(spec: str) -> None:
    """What is no fault is told, not ignored."""
    with pytest.raises(ConfigError):
        Fault.parse(spec)


def test_a_fault_is_used_up() -> None:
    """A fault hits so many calls of its place and no others."""
    armed = ArmedFaults(["poll-drop:2"])
    hits = [armed.take(place) for place in (Place.CREATE, Place.POLL, Place.POLL, Place.POLL)]
    assert [hit is not None for hit in hits] == [False, True, True, False]


def test_a_wrong_fault_arms_none() -> None:
    """Of several faults with a wrong one among them, none is armed."""
    armed = ArmedFaults()
    with pytest.raises(ConfigError):
        armed.arm(["poll-drop", "poll-nothing"])
    assert armed.told() == []


def test_a_form_is_read() -> None:
    """Text parts are fields, file parts are counted, and what they are called is known."""
    body = (
        b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nein Boot\r\n--im Regen \xe2\x98\x94\r\n'
        b'--b\r\nContent-Disposition: form-data; name="input_reference"; filename="a.png"\r\n'
        b"Content-Type: image/png\r\n\r\n\x89PNG\r\n\r\n\x00\r\n--b--\r\n"
    )
    sent = read_body("multipart/form-data; boundary=b", body)
    assert sent == Sent(fields={"prompt": "ein Boot\r\n--im Regen ☔"}, files=1, filenames=("a.png",))


def test_json_is_read_as_text_fields() -> None:
    """JSON members become the text that a form would hold."""
    sent = read_body("application/json", b'{"prompt": "a", "seed": 7, "n": null}')
    assert sent == Sent(fields={"prompt": "a", "seed": "7"}, data={"prompt": "a", "seed": 7, "n": None})


@given(
    st.sampled_from(["multipart/form-data; boundary=b", "multipart/form-data", "application/json", "", "x"]),
    st.binary(max_size=60),
)
def test_any_body_is_read_or_refused(content_type: str, body: bytes) -> None:
    """No body does worse than a ValueError."""
    with suppress(ValueError):
        read_body(content_type, body)
