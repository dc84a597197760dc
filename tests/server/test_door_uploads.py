"""
Uploads of SDKs that are told an address and an id first, and then send the bytes without a key.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_relay import FITTING_BYTES, FakeRelay
from loopback import TOKEN, Served, serving

from vidrelay.core.adapter import Prepared, asset_parameter
from vidrelay.core.door import Answering, DoorCall, DoorRoute, FormBody, JsonReply, Kept, OpenAddress
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import keep, submit
from vidrelay.scheduler.face import DoorWay

PNG = b"\x89PNG" + bytes(100)


class UploadDoor:
    """
    Gives an address out, takes a form or bare bytes there, and creates with the id.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path="/uploads", handler=self.start),
            DoorRoute(method="POST", path="/uploads/{id}", handler=self.take),
            DoorRoute(method="POST", path="/make", handler=self.make),
        )

    def start(self, call: DoorCall) -> Answering:
        """Give out an address and the id that goes with it."""
        yield from ()
        return JsonReply(value={"to": OpenAddress(path=f"/uploads/{call.fresh}"), "id": call.fresh})

    def take(self, call: DoorCall) -> Answering:
        """Take the bytes in."""
        file = call.body.files[0] if isinstance(call.body, FormBody) else None
        yield from keep(file, name=call.params["id"])
        return JsonReply(value=None, status=204)

    def make(self, call: DoorCall) -> Answering:
        """Make a task of what was uploaded."""
        view = yield from submit(Prepared(model="m", parameters={"image": Kept(asset=call.body["id"])}), prompt="a")
        return JsonReply(value={"id": view.task.id})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """Say the code."""
        return JsonReply(status=problem.status, value={"code": problem.code, "path": call.path})


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """A relay with that door as `/up`."""
    relay = FakeRelay(tmp_path)
    relay.ways = {"up": DoorWay(account="main", door=UploadDoor())}
    async with serving(relay) as served:
        yield served


@pytest.fixture
def keyless(door: Served) -> Served:
    """The same, with a client that sends no key."""
    del door.client.headers["X-Local-Token"]
    return door


async def start(door: Served) -> dict[str, str]:
    """Ask for an address, with the key."""
    answer = await door.client.post("/up/uploads", headers={"X-Local-Token": TOKEN})
    said: dict[str, str] = answer.json()
    return said


@pytest.mark.parametrize("form", [True, False], ids=["as a form", "as bytes"])
async def test_what_is_sent_without_a_key_to_the_address_is_found_by_its_id(keyless: Served, form: bool) -> None:
    """A create names the id that was given out before there was a picture."""
    told = await start(keyless)
    kind = {"content-type": "image/png"}
    sent = {"files": {"file": ("a.png", PNG)}} if form else {"content": PNG, "headers": kind}
    assert (await keyless.client.post(told["to"], **sent)).status_code == 204
    made = await keyless.client.post("/up/make", json={"id": told["id"]}, headers={"X-Local-Token": TOKEN})
    assert made.status_code == 200
    prepared, pictures = keyless.relay.prepared[0]
    (asset,) = pictures.values()
    assert prepared.parameters == {"image": asset_parameter(asset)}


async def test_an_upload_that_is_too_large_for_the_create_call_goes_along_as_a_copy(door: Served) -> None:
    """An upload may have more bytes at the provider than a body may, and here it is the body that carries it."""
    told = await start(door)
    large = PNG + bytes(FITTING_BYTES)
    await door.client.post(told["to"], content=large, headers={"content-type": "image/png"})
    await door.client.post("/up/make", json={"id": told["id"]})
    prepared, pictures = door.relay.prepared[0]
    (asset,) = pictures.values()
    assert asset.id.endswith("c0de")
    assert prepared.parameters == {"image": asset_parameter(asset)}


async def test_each_upload_has_an_id_of_its_own(door: Served) -> None:
    """Nobody's picture is taken for another's."""
    assert (await start(door))["id"] != (await start(door))["id"]


async def test_the_address_opens_its_own_path_to_its_own_method_alone(keyless: Served) -> None:
    """Another path, method, proof, or more of a query is the fixed 403."""
    told = await start(keyless)
    path, _, query = told["to"].partition("?")
    wrong = f"proof={'0' * 64}"
    tried = [
        ("POST", f"{path}x?{query}"),
        ("POST", f"{path}/?{query}"),
        ("POST", path.replace(told["id"], "") + f"?{query}"),
        ("PUT", told["to"]),
        ("GET", told["to"]),
        ("POST", path),
        ("POST", f"{path}?{wrong}"),
        ("POST", f"{told['to']}&a=1"),
        ("POST", f"{path}?a=1&{query}"),
        ("POST", f"/shutdown?{query}"),
        ("POST", f"/up/make?{query}"),
    ]
    for method, address in tried:
        assert (await keyless.client.request(method, address, content=b"x")).status_code == 403, address
    assert not keyless.relay.assets


async def test_the_address_opens_nothing_to_a_foreign_page_or_host(keyless: Served) -> None:
    """Whoever has it still comes through the rest of the gate."""
    told = await start(keyless)
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await keyless.client.post(told["to"], content=b"x", headers=headers)).status_code == 403


async def test_an_id_under_which_nothing_came_is_nobodys(door: Served) -> None:
    """A create that names it makes no task."""
    told = await start(door)
    assert (await door.client.post("/up/make", json={"id": told["id"]})).status_code == 422
    assert not door.relay.prepared
