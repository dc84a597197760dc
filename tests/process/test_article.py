"""
What the article promises, over real processes: each wanted clip is paid for once, whatever happens.
"""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

pytestmark = pytest.mark.process


def test_the_same_request_three_times_at_once_is_one_remote_task(world):
    """(a) A triple click makes one create and two answers that say deduped."""
    simulator = world.simulate("--run-seconds", "0.5")
    world.configure(simulator)
    world.start()
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: world.generate(), range(3)))
    assert sorted(answer["deduped"] for answer in answers) == [False, True, True]
    assert len({answer["taskId"] for answer in answers}) == 1
    world.until(answers[0]["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1


def test_a_thousand_at_once_with_noise_are_one_remote_task(world):
    """(a) White space, zero-width and full-width noise change nothing, a thousand times over."""
    simulator = world.simulate("--run-seconds", "0.5")
    world.configure(simulator, relay='dedupe_window = "300s"')
    world.start()
    spellings = ["a red boat", " a  red\tboat ", "a\u200b red\u3000boat", "ａ red ｂｏａｔ", "a \u2060red boat\ufeff"]
    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(lambda n: world.generate(spellings[n % len(spellings)]), range(1000)))
    assert len({answer["taskId"] for answer in answers}) == 1
    # Who comes after the clip is done is served from the cache.
    assert sum(not answer["deduped"] and not answer["fromCache"] for answer in answers) == 1
    world.until(answers[0]["taskId"], "done")
    assert simulator.ledger()["creates"]["received"] == 1
    stats = world.http.get("/stats").json()
    assert (stats["submits"], stats["deduped"] + stats["cacheHits"], stats["remoteCreates"]) == (1000, 999, 1)


def test_forced_makes_a_new_remote_task(world):
    """(b) forceRefresh is another version."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator)
    world.start()
    first, second = world.generate(), world.generate(forceRefresh=True)
    assert first["taskId"] != second["taskId"]
    world.until(first["taskId"], "done")
    world.until(second["taskId"], "done")
    assert simulator.ledger()["creates"]["accepted"] == 2


def test_five_tasks_and_a_window_of_two(world):
    """(c) Never more than two at the provider, no 429, first in first out, and `ahead` is right."""
    simulator = world.simulate("--window", "2", "--run-seconds", "0.4", "--queue-seconds", "0.1")
    world.configure(simulator, window=2)
    world.start()
    # While the first two last, the line stands still and can be looked at.
    prompts = ["clip 0 [run=3]", "clip 1 [run=3]", "clip 2", "clip 3", "clip 4"]
    tasks = [world.generate(prompt) for prompt in prompts]
    world.until(tasks[1]["taskId"], "running")
    line = world.http.get("/tasks", params={"state": "queued"}).json()["tasks"]
    assert [(task["request"]["prompt"], task["ahead"]) for task in reversed(line)] == [
        ("clip 2", 0),
        ("clip 3", 1),
        ("clip 4", 2),
    ]
    for task in tasks:
        world.until(task["taskId"], "done")
    ledger = simulator.ledger()
    assert max(ledger["maxAtOnce"].values()) <= 2
    assert ledger["status429"] == 0
    assert [job["prompt"] for job in ledger["jobs"]] == prompts


def test_retry_after_is_obeyed(world):
    """(d) After a 429 nothing is sent for the told time, and one task is made in the end."""
    simulator = world.simulate("--run-seconds", "0.2", "--fault", "create-rate=2")
    world.configure(simulator)
    world.start()
    task = world.generate()
    world.until(task["taskId"], "done")
    sent = [seen for seen in simulator.ledger()["requests"] if seen["place"] == "create"]
    assert [seen["status"] for seen in sent] == [429, 200]
    assert sent[1]["at"] - sent[0]["at"] >= 2
    assert world.http.get("/stats").json()["rateLimited"] == 1


def test_rate_limited_polls_are_not_repeated_densely(world):
    """(d) A task that is done remotely while polls are limited is fetched when the limit is over, not sooner."""
    simulator = world.simulate("--run-seconds", "0.3")
    world.configure(simulator)
    world.start()
    simulator.control(faults=["poll-rate=2"])
    task = world.generate()
    world.until(task["taskId"], "done")
    polls = [seen for seen in simulator.ledger()["requests"] if seen["place"] == "poll"]
    assert polls[0]["status"] == 429
    assert polls[1]["at"] - polls[0]["at"] >= 2


def test_a_repeat_after_completion_comes_from_the_cache_and_survives_a_restart(world):
    """(e) The repeat answers at once, with no remote request, before and after a restart."""
    simulator = world.simulate("--run-seconds", "0.2")
    world.configure(simulator, relay='dedupe_window = "0s"')
    world.start()
    task = world.generate()
    done = world.until(task["taskId"], "done")
    seen = len(simulator.ledger()["requests"])
    again = world.generate()
    assert (again["taskId"], again["fromCache"], again["state"]) == (task["taskId"], True, "done")
    assert world.stop() == 0
    world.start()
    again = world.generate()
    assert (again["taskId"], again["fromCache"]) == (task["taskId"], True)
    body = world.http.get(done["result"]["files"][0]["url"])
    assert body.content[4:8] == b"ftyp"
    assert len(simulator.ledger()["requests"]) == seen


@pytest.mark.parametrize("path", ["/health", "/task/x", "/events", "/stats", "/nowhere", "/", "/metrics"])
def test_without_a_token_everything_is_403(world, path):
    """(g) No token: the one fixed answer, known path or not."""
    simulator = world.simulate()
    world.configure(simulator)
    world.start()
    with httpx2.Client(base_url=world.http.base_url, trust_env=False, verify=False) as stranger:
        answers = [stranger.get(path), stranger.post(path, json={"prompt": "x"}), stranger.get("/health")]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.content for answer in answers}) == 1
    assert world.http.get("/tasks").json()["tasks"] == []


def test_the_ledger_knows_who_asks(world):
    """The relay says who it is on every call."""
    simulator = world.simulate("--run-seconds", "0.1")
    world.configure(simulator)
    world.start()
    world.until(world.generate()["taskId"], "done")
    agents = simulator.ledger()["userAgents"]
    assert len(agents) == 1
    assert agents[0].startswith("vidrelay/")
