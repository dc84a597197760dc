"""
(f) SIGKILL in each state, then a restart: every task ends right, no ghost, no second create.
"""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from PIL import Image

pytestmark = pytest.mark.process


def test_killed_while_queued(world):
    """The line is where it was, in its order."""
    simulator = world.simulate("--run-seconds", "0.5")
    world.configure(simulator, window=1)
    world.start()
    # The first lasts until the next life has been looked at.
    prompts = ["clip 0 [run=5]", "clip 1", "clip 2"]
    tasks = [world.generate(prompt) for prompt in prompts]
    world.until(tasks[0]["taskId"], "running")
    world.kill()
    world.start()
    assert [world.task(task["taskId"])["ahead"] for task in tasks[1:]] == [0, 1]
    for task in tasks:
        world.until(task["taskId"], "done")
    assert [job["prompt"] for job in simulator.ledger()["jobs"]] == prompts


@pytest.mark.parametrize("arrived", [True, False])
def test_killed_while_submitting(world, arrived):
    """The answer was on its way: the job is found again if it was made, and never made twice."""
    simulator = world.simulate("--run-seconds", "0.5")
    world.configure(simulator)
    world.start()
    simulator.control(faults=["create-slow=3" if arrived else "create-drop"])
    task = world.generate()
    if arrived:
        world.until_true(lambda: simulator.ledger()["creates"]["received"] == 1)
        assert world.task(task["taskId"])["state"] == "submitting"
    else:
        world.until(task["taskId"], "uncertain")
    world.kill()
    world.start()
    if arrived:
        world.until(task["taskId"], "done")
    else:
        assert world.task(task["taskId"])["state"] == "uncertain"
    assert simulator.ledger()["creates"]["received"] == 1


def test_killed_while_a_picture_is_uploaded(world):
    """No create was sent, so nothing is uncertain: the next life uploads it again and makes the clip."""
    simulator = world.simulate("--dialect", "replicate", "--run-seconds", "0.5")
    key = world.folder / "key"
    key.write_text("r8_pretend")
    key.chmod(0o600)
    world.configure(simulator, provider="replicate", account=f'key_file = "{key}"', api="")
    picture = world.folder / "boat.png"
    Image.new("RGB", (64, 64), "navy").save(picture)
    world.start()
    simulator.control(faults=["upload-slow=30"])
    task = world.generate(modelVersion="minimax/video-01", references=[{"path": str(picture)}])
    world.until_true(lambda: any(call["path"] == "/v1/files" for call in simulator.ledger()["requests"]))
    assert world.task(task["taskId"])["state"] == "queued"
    world.kill()
    world.start()
    assert world.until(task["taskId"], "done")["attempts"] == 1
    assert simulator.ledger()["creates"]["received"] == 1
    assert world.http.get("/stats").json()["uncertain"] == 0


def test_killed_while_running(world):
    """The job is polled again by its id."""
    simulator = world.simulate("--run-seconds", "2")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "running")
    world.kill()
    world.start()
    world.until(task["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_done_at_the_provider_while_the_relay_was_dead(world):
    """Done there: fetched at once."""
    simulator = world.simulate("--run-seconds", "0.5")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "running")
    world.kill()
    simulator.control(finish=True)
    world.start()
    world.until(task["taskId"], "done", seconds=10)
    assert simulator.ledger()["creates"]["received"] == 1


def test_unknown_at_the_provider_after_the_restart(world):
    """Unknown there: failed, with what may have been charged."""
    simulator = world.simulate("--run-seconds", "60")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "running")
    world.kill()
    simulator.restart(forget=True)
    world.start()
    failed = world.until(task["taskId"], "failed")
    assert failed["error"]["code"] == "remote_unknown"
    assert simulator.ledger()["creates"]["received"] == 1


def test_killed_while_downloading(world):
    """A half-fetched file is fetched whole, and no part of the first try is left."""
    simulator = world.simulate("--run-seconds", "0.2", "--clip-bytes", "3000000", "--bytes-per-second", "1000000")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "downloading")
    world.kill()
    simulator.control(bytes_per_second=None)
    world.start()
    done = world.until(task["taskId"], "done")
    files = [path for path in (world.state / "cache").rglob("*") if path.is_file()]
    assert [str(path) for path in files] == [done["result"]["files"][0]["path"]]
    assert files[0].stat().st_size == done["result"]["files"][0]["bytes"]
    assert simulator.ledger()["creates"]["received"] == 1


def test_killed_when_done(world):
    """The result is there, and so is the cache."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "done")
    world.kill()
    world.start()
    assert world.task(task["taskId"])["state"] == "done"
    assert world.http.get(f"/task/{task['taskId']}/result").content[4:8] == b"ftyp"


def test_killed_again_and_again(world):
    """Kills at whatever moment, five in a row: no second create by itself, and every task done in the end."""
    simulator = world.simulate("--run-seconds", "1", "--window", "2")
    world.configure(simulator, window=2)
    world.start()
    tasks = [world.generate(f"clip {number}")["taskId"] for number in range(4)]
    for _ in range(5):
        world.kill()
        world.start()
    retried = settle_by_hand(world, simulator, tasks)
    ledger = simulator.ledger()
    assert ledger["status429"] == 0
    assert len(ledger["jobs"]) == 4
    assert ledger["creates"]["received"] <= 4 + retried


def test_a_thousand_of_one_key_over_three_kills_are_one_task(world):
    """Who gets no answer asks again under its key, in whatever life of the relay: one task, one job, paid for once."""
    simulator = world.simulate("--run-seconds", "1")
    world.configure(simulator, relay='token = "keep"')
    world.start()
    answers = []

    def ask(_):
        while True:
            with contextlib.suppress(httpx2.TransportError):
                answer = own.post("/generate", json={"prompt": "a boat"}, headers={"Idempotency-Key": "k-1"})
                if answer.status_code != 503:
                    answers.append(answer)
                    return
            time.sleep(0.05)

    settings = {"base_url": world.http.base_url, "headers": world.http.headers, "trust_env": False, "verify": False}
    with httpx2.Client(**settings) as own, ThreadPoolExecutor(16) as threads:
        asked = [threads.submit(ask, number) for number in range(1000)]
        for share in (1, 300, 600):
            world.until_true(lambda share=share: len(answers) >= share)
            world.kill()
            world.start()
        for one in asked:
            one.result()
    assert {answer.status_code for answer in answers} <= {200, 202}
    assert sum(answer.status_code == 202 for answer in answers) <= 1
    assert len(answers) == 1000
    (task_id,) = {answer.json()["taskId"] for answer in answers}
    retried = settle_by_hand(world, simulator, [task_id])
    ledger = simulator.ledger()
    assert len(ledger["jobs"]) == 1
    assert ledger["creates"]["received"] <= 1 + retried


def settle_by_hand(world, simulator, tasks):
    """
    Wait for every task; one that was lost without reaching the provider is sent again by a person's word.
    """
    retried, deadline = 0, time.monotonic() + 60
    while any(world.task(task_id)["state"] != "done" for task_id in tasks):
        assert time.monotonic() < deadline
        made = {job["prompt"] for job in simulator.ledger()["jobs"]}
        for task in map(world.task, tasks):
            if task["state"] == "uncertain" and task["request"]["prompt"] not in made:
                world.http.post(f"/task/{task['taskId']}/resolve", json={"action": "retry"}).raise_for_status()
                retried += 1
        time.sleep(0.2)
    return retried


def test_a_task_that_was_answered_survives_a_kill_right_after(world):
    """Nothing is told before it is on disk: the answer's task is there after a kill at once."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator, window=1)
    world.start()
    for number in range(5):
        task = world.generate(f"clip {number}")
        world.kill()
        world.start()
        assert world.task(task["taskId"])["taskId"] == task["taskId"]
