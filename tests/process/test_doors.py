"""
Doors over real processes: one task whichever way it came in, and calls that are passed on.
"""

import base64
import io
import json

import httpx2
import pytest
from PIL import Image

from vidrelay.testing.samples import film, movie

pytestmark = pytest.mark.process


def through(world, method: str, path: str, **more) -> httpx2.Response:
    return world.http.request(method, f"/openai{path}", **more)


def runway(world, folder):
    """A relay before a pretend Runway, which wants a key."""
    key = folder / "key"
    key.write_text("right")
    key.chmod(0o600)
    simulator = world.simulate("--dialect", "runway", "--key", "right", "--run-seconds", "0.3")
    world.configure(simulator, provider="runway", api="", account=f'key_file = "{key}"')
    world.start()
    return simulator


def test_a_clip_asked_for_natively_and_through_a_door_is_one(world):
    """The same wish has one fingerprint, so the second is a twin of the first, and is paid for once."""
    simulator = world.simulate("--run-seconds", "0.3")
    world.configure(simulator)
    world.start()
    native = world.generate("a red boat", duration=4)
    form = {"prompt": (None, " a red  boat "), "seconds": (None, "4")}
    made = through(world, "POST", "/v1/videos", files=form)
    assert made.json()["id"] == native["taskId"]
    world.until(native["taskId"], "done")
    assert through(world, "GET", f"/v1/videos/{native['taskId']}").json()["status"] == "completed"
    assert through(world, "GET", f"/v1/videos/{native['taskId']}/content").content[4:8] == b"ftyp"
    assert simulator.ledger()["creates"]["received"] == 1


def test_one_picture_is_one_picture_whichever_way_it_came(world, tmp_path):
    """By path in `/generate`, as a file in a form, in line in JSON, and with other metadata: one task."""
    picture = io.BytesIO()
    Image.effect_noise((320, 200), 90).convert("RGB").save(picture, "PNG")
    with_note = io.BytesIO()
    Image.open(picture).save(with_note, "PNG", dpi=(72, 72))
    path = tmp_path / "a.png"
    path.write_bytes(picture.getvalue())
    simulator = world.simulate("--run-seconds", "0.3")
    world.configure(simulator)
    world.start()
    native = world.generate("a boat", references=[{"path": str(path)}])
    form = through(
        world,
        "POST",
        "/v1/videos",
        data={"prompt": "a boat"},
        files={"input_reference": ("b.png", with_note.getvalue(), "image/png")},
    )
    uri = f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}"
    inline = through(world, "POST", "/v1/videos", json={"prompt": "a boat", "input_reference": {"image_url": uri}})
    assert {form.json()["id"], inline.json()["id"]} == {native["taskId"]}
    world.until(native["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_task_of_a_door_outlives_a_kill(world):
    """What a door answered is durable: after a SIGKILL it goes on, and the SDK's next poll finds it."""
    simulator = world.simulate("--run-seconds", "1")
    world.configure(simulator)
    world.start()
    made = through(world, "POST", "/v1/videos", json={"prompt": "a boat"}).json()
    world.until(made["id"], "running")
    world.kill()
    world.start()
    world.until(made["id"], "done")
    assert through(world, "GET", f"/v1/videos/{made['id']}").json()["status"] == "completed"
    assert len(simulator.ledger()["jobs"]) == 1


def test_other_paths_are_passed_on_only_where_that_is_wanted(world, tmp_path):
    """Off by default; switched on, the provider's own answer comes back, for the account's key went there."""
    key = tmp_path / "key"
    key.write_text("right")
    key.chmod(0o600)
    simulator = world.simulate("--dialect", "replicate", "--key", "right")
    account = f'key_file = "{key}"'
    world.configure(simulator, provider="replicate", api="", account=account)
    world.start()
    refused = world.http.get("/replicate/v1/account")
    assert (refused.status_code, refused.headers["x-should-retry"]) == (404, "false")
    world.stop()
    world.configure(simulator, provider="replicate", api="", account=f"{account}\npass_through = true")
    world.start()
    passed = world.http.get("/replicate/v1/account")
    assert (passed.status_code, passed.json()["username"]) == (200, "acme")


@pytest.mark.parametrize("path", ["/v1/../_ledger", "/v1/%2e%2e/_ledger", "/v1//x", "/v1/a%2fb", "/v1/a%5cb"])
def test_a_path_that_might_lead_astray_is_not_passed_on(world, path):
    """It is refused here, and nothing reaches the provider."""
    simulator = world.simulate()
    world.configure(simulator, account="pass_through = true")
    world.start()
    sock = httpx2.Client(base_url=f"http://127.0.0.1:{world.relay.port}", headers=world.http.headers, trust_env=False)
    with sock:
        request = sock.build_request("GET", "/")
        request.extensions["target"] = f"/openai{path}".encode()
        answer = sock.send(request)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("path", ["/v1/videos/", "/v1/%76ideos", "/v1/VIDEOS", "/v1/videos;x=1", "/videos", "/videos/"])
def test_a_create_that_is_spelt_otherwise_is_not_passed_on(world, path):
    """The provider might make a clip of it, which no task would know of: none is made, however the call is written."""
    simulator = world.simulate()
    world.configure(simulator, account="pass_through = true")
    world.start()
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{world.relay.port}", headers=world.http.headers, trust_env=False
    ) as client:
        request = client.build_request("POST", "/", json={"prompt": "a boat", "model": "m"})
        request.extensions["target"] = f"/openai{path}".encode()
        answer = client.send(request)
    assert answer.status_code in (404, 422)
    assert simulator.ledger()["creates"]["received"] == 0


def test_another_call_is_passed_on_beside_the_doors_own(world):
    """What the provider has beside clips is not in the way of that."""
    simulator = world.simulate()
    world.configure(simulator, account="pass_through = true")
    world.start()
    answer = through(world, "POST", "/v1/images/generations", json={"prompt": "a boat"})
    # The pretend provider has none, and says so in its own words.
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "Not Found")


def test_one_film_is_one_film_whichever_way_it_came(world):
    """As a file in a form under any label, and in line in JSON: one task, and the provider gets the bytes."""
    simulator = world.simulate("--run-seconds", "0.3")
    world.configure(simulator)
    world.start()
    form = through(
        world,
        "POST",
        "/v1/videos",
        data={"prompt": "a boat"},
        files={"input_reference": ("a.bin", film(), "application/octet-stream")},
    )
    uri = f"data:video/mp4;base64,{base64.b64encode(film()).decode()}"
    inline = through(world, "POST", "/v1/videos", json={"prompt": "a boat", "input_reference": {"image_url": uri}})
    assert (form.status_code, form.json()["id"]) == (200, inline.json()["id"])
    world.until(form.json()["id"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("video_to_video", {"model": "aleph2", "promptText": "in winter", "videoUri": "FILM"}),
        ("video_to_video", {"model": "seedance2", "promptVideo": "FILM"}),
        ("video_upscale", {"model": "magnific_video_upscaler_creative", "videoUri": "FILM"}),
        (
            "character_performance",
            {
                "model": "act_two",
                "character": {"type": "video", "uri": "FILM"},
                "reference": {"type": "video", "uri": "FILM"},
            },
        ),
    ],
)
def test_each_create_of_runways_door_makes_its_clip(world, tmp_path, call, body):
    """The pretend provider has the calls that the door answers, and wants the film in each of them."""
    simulator = runway(world, tmp_path)
    uri = f"data:video/mp4;base64,{base64.b64encode(film()).decode()}"
    sent = json.loads(json.dumps(body).replace("FILM", uri))
    world.until(world.http.post(f"/runway/v1/{call}", json=sent).json()["id"], "done")
    without = world.http.post(f"/runway/v1/{call}", json={"model": body["model"], "promptText": "no film"}).json()["id"]
    world.until(without, "failed")
    assert len(simulator.ledger()["jobs"]) == 1


@pytest.mark.parametrize("way", ["in line", "uploaded"])
def test_a_film_goes_on_in_its_providers_own_way(world, tmp_path, way):
    """Runway gets it as a data URI in the create call, whose job is made; what is no film never leaves."""
    simulator = runway(world, tmp_path)

    def made(data: bytes) -> httpx2.Response:
        address = f"data:video/mp4;base64,{base64.b64encode(data).decode()}"
        if way == "uploaded":
            told = world.http.post("/runway/v1/uploads", json={"filename": "a.mp4", "type": "ephemeral"}).json()
            sent = world.http.post(told["uploadUrl"], files={"file": ("a.mp4", data, "video/mp4")})
            if sent.status_code != 204:
                return sent
            address = told["runwayUri"]
        body = {"model": "seedance2", "promptText": "a boat", "referenceVideos": [{"uri": address}]}
        return world.http.post("/runway/v1/text_to_video", json=body)

    assert made(b"<html>" * 20_000).status_code == 415
    task = made(movie(200_000)).json()["id"]
    world.until(task, "done")
    assert simulator.ledger()["creates"]["received"] == 1
