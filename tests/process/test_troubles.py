"""
The article's troubles: lost answers, dead addresses, orphans, leftover listeners, taken ports.
"""

import json
import socket
import subprocess
import sys
from uuid import uuid4

import pytest

pytestmark = pytest.mark.process


def test_a_create_that_never_arrived_is_never_sent_twice(world):
    """The connection ended before the provider did anything: uncertain, explained, one create."""
    simulator = world.simulate("--fault", "create-drop")
    world.configure(simulator)
    world.start()
    task = world.until(world.generate()["taskId"], "uncertain")
    assert "may already be charged" in task["error"]["detail"]
    assert task["blocked"]["reason"] == "lookup"
    assert simulator.ledger()["creates"]["received"] == 1
    resolved = world.http.post(f"/task/{task['taskId']}/resolve", json={"action": "retry"}).json()
    assert resolved["state"] in ("queued", "submitting", "running")
    world.until(task["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 2


def test_a_create_that_arrived_is_found_in_the_list(world):
    """The answer was lost: the job is adopted from the list, and the task ends done with one create."""
    simulator = world.simulate("--run-seconds", "0.5", "--fault", "create-drop-after")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_provider_that_is_not_there_is_waited_for(world):
    """Nothing was sent, so the task stays queued and goes when the provider is back."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator)
    port = simulator.port
    simulator.child.terminate()
    simulator.child.wait(10)
    world.start()
    task = world.generate()
    world.until_true(lambda: world.task(task["taskId"])["attempts"] >= 1)
    back = world.simulate_at(port)
    world.until(task["taskId"], "done")
    assert back.ledger()["creates"]["received"] == 1


@pytest.mark.parametrize(
    "fault", ["content-cut", "content-cut-chunked", "content-short", "content-empty", "content-gone"]
)
def test_a_broken_file_is_never_published(world, fault):
    """A short, cut, empty or dead file is fetched again, and the one that is kept is whole."""
    simulator = world.simulate("--run-seconds", "0.2", "--fault", fault)
    world.configure(simulator)
    world.start()
    done = world.until(world.generate()["taskId"], "done")
    (file,) = done["result"]["files"]
    assert world.http.get(file["url"]).headers["content-length"] == str(file["bytes"])
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_clip_that_google_sends_inside_its_answer_becomes_a_file(world):
    """It was made and paid for, and comes so although its address was asked for; the file is whole."""
    simulator = world.simulate("--dialect", "google", "--run-seconds", "0.2", "--fault", "poll-inline:always")
    world.configure(simulator)
    told = world.config.read_text().replace('"openai"', '"google"').replace("/v1", "/v1beta")
    key = world.folder / "key"
    key.write_text("k-of-google\n")
    key.chmod(0o600)
    world.config.write_text(f"{told}key_file = '{key}'\n")
    world.start()
    done = world.until(world.generate(modelVersion="gemini-omni-1.2-flash", duration=3)["taskId"], "done")
    (file,) = done["result"]["files"]
    assert file["mediaType"] == "video/mp4"
    assert world.http.get(file["url"]).content[4:8] == b"ftyp"
    assert simulator.ledger()["creates"]["received"] == 1
    keys = {seen["key"] for seen in simulator.ledger()["requests"]}
    assert len(keys) == 1
    assert None not in keys


def test_orphan_files_are_deleted_at_the_start(world):
    """A file of our pattern that the index does not know goes; anything else stays."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator)
    world.start()
    done = world.until(world.generate()["taskId"], "done")
    kept = world.folder / "state" / "cache" / done["fingerprint"]
    world.stop()
    orphan, foreign = kept / f"{uuid4()}-0.mp4", kept / "notes.txt"
    orphan.write_bytes(b"x")
    foreign.write_bytes(b"x")
    world.start()
    world.until_true(lambda: not orphan.exists())
    assert foreign.exists()
    assert world.http.get(done["result"]["files"][0]["url"]).status_code == 200


def test_copies_of_one_picture_that_differ_in_metadata_are_one_request(world, tmp_path):
    """EXIF does not make a picture another one."""
    from PIL import Image

    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator)
    world.start()
    picture, paths = Image.radial_gradient("L").convert("RGB"), []
    for camera in ("one", "two"):
        exif = Image.Exif()
        exif[0x010F] = camera
        paths.append(tmp_path / f"{camera}.png")
        picture.save(paths[-1], exif=exif)
    assert paths[0].read_bytes() != paths[1].read_bytes()
    tasks = [world.generate(references=[{"path": str(path)}]) for path in paths]
    assert [task["deduped"] for task in tasks] == [False, True]
    asset = world.http.post("/assets", content=paths[1].read_bytes(), headers={"Content-Type": "image/png"}).json()
    assert world.generate(references=[{"asset": asset["asset"]}])["taskId"] == tasks[0]["taskId"]
    world.until(tasks[0]["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_second_relay_on_the_same_directory_is_refused(world):
    """One state directory, one relay: exit 3, and the first goes on."""
    simulator = world.simulate()
    world.configure(simulator)
    world.start()
    second = subprocess.run(
        [sys.executable, "-m", "vidrelay", "--config", world.config, "--state-dir", world.state, "serve"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert second.returncode == 3
    assert str(world.relay.port) in second.stderr
    assert world.http.get("/health").json()["status"] == "ok"


def test_replace_takes_over_from_a_running_relay(world):
    """`serve --replace` proves the old one, asks it to stop, and goes on with its tasks."""
    simulator = world.simulate("--run-seconds", "1")
    world.configure(simulator)
    world.start()
    old, task = world.relay, world.generate()
    world.http.close()
    world.start("--replace")
    assert old.close() == 0
    world.until(task["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_taken_port_is_told(world):
    """A named port that somebody else has: exit 3, and no relay.json is left."""
    simulator = world.simulate()
    world.configure(simulator)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = subprocess.run(
            [
                sys.executable,
                "-m",
                "vidrelay",
                "--config",
                world.config,
                "--state-dir",
                world.state,
                "serve",
                "--port",
                str(taken.getsockname()[1]),
            ],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert refused.returncode == 3
    assert not (world.state / "relay.json").exists()


def test_a_foreign_listener_on_the_old_port_gets_no_token(world):
    """A recorder that sits where a dead relay was is never told the token, and the relay starts elsewhere."""
    simulator = world.simulate()
    world.configure(simulator)
    world.start()
    told = json.loads((world.state / "relay.json").read_text())
    world.kill()
    heard = []
    with socket.create_server(("127.0.0.1", told["port"])) as recorder:
        recorder.settimeout(0.2)
        child = subprocess.Popen(
            [sys.executable, "-m", "vidrelay", "--config", world.config, "--state-dir", world.state, "tasks"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while child.poll() is None:
            try:
                caller, _ = recorder.accept()
            except TimeoutError:
                continue
            with caller:
                caller.settimeout(1)
                heard.append(caller.recv(65536))
        child.communicate()
    assert told["token"].encode() not in b"".join(heard)


def test_a_clean_stop_exits_0_and_removes_relay_json(world):
    """SIGTERM: drained, exit 0."""
    simulator = world.simulate("--run-seconds", "60")
    world.configure(simulator)
    world.start()
    world.until(world.generate()["taskId"], "running")
    assert world.stop() == 0
    assert not (world.state / "relay.json").exists()
