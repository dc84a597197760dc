"""
What must hold: of the dead relay's disk, of the relay that goes on, and of its end.

Numbers in brackets are those of the invariants of threats-and-faults.md.
"""

import hashlib
import time
from collections import Counter, defaultdict
from itertools import pairwise

from kill.autopsy import Found, database, results
from kill.world import ENDED, World, must
from vidrelay.core.lifecycle import TRANSITIONS
from vidrelay.core.task import State, Task

NAMES = {
    "relay.db",
    "relay.db-wal",
    "relay.db-shm",
    "relay.lock",
    "relay.json",
    "keep.json",
    "cache",
    "assets",
    "logs",
    "preview",
    "ballast",
}
SETTLE_SECONDS = 60.0
MAX_CACHE_BYTES = 1_000_000


def of_the_dead(world: World, left: str | None) -> None:
    """
    Hold what lies on the disk against the ledger and against what the app was told.
    """
    found = database(world.state)
    _database_is_sound(world, found)
    states = {str(state) for state in found.states()} or {"none"}
    last = found.tasks[-1].state if found.tasks else "none"
    if left == "none":
        must(len(found.tasks) < len(world.wanted), f"the last submit is on disk: {last}")
    elif left is not None:
        must(left in states, f"no task is {left}, they are {states}")
    for name, path in results(world.state).items():
        if not name.endswith(".part"):
            _is_whole(world, found, name, path.read_bytes())


def _database_is_sound(world: World, found: Found) -> None:
    must(found.check == "ok", f"the database is damaged: {found.check}")
    prompts = Counter(task.request.prompt for task in found.tasks)
    must(max(prompts.values(), default=1) == 1, f"a wish has several tasks: {prompts} (11)")
    for wish in world.wanted:
        task = found.of(wish.prompt)
        if wish.told is not None:
            must(task is not None and task.id == wish.told, f"{wish.prompt} was told, and is not on disk (1, 2)")
            must(task.request.metadata == {"of": wish.prompt}, f"{wish.prompt} is not what was asked for (1)")
    ledger, jobs = world.provider.ledger(), world.provider.jobs()
    for prompt, count in jobs.items():
        task = found.of(prompt)
        must(task is not None and task.attempts >= count, f"{prompt} was created before its intent was on disk (4)")
    attempts = sum(task.attempts for task in found.tasks)
    must(ledger["creates"]["received"] <= attempts, "more creates were sent than were intended (4)")
    must(found.places <= world.window, f"{found.places} places are taken (6)")
    _log_is_lawful(found)
    entries = {task.event_id: (task.id, str(task.state)) for task in found.log}
    for number, task_id, state in world.events:
        must(entries.get(number) == (task_id, state), f"event {number} ({state}) was told, and is not on disk (2)")


def _log_is_lawful(found: Found) -> None:
    lives: dict[str, list[Task]] = defaultdict(list)
    for entry in found.log:
        lives[entry.id].append(entry)
    for life in lives.values():
        for earlier, later in pairwise(life):
            must(later.version == earlier.version + 1, f"a version is missing: {later.id}")
            lawful = set(TRANSITIONS[earlier.state].values()) | ({State.CANCELLED} if earlier.cancel_wanted else set())
            must(later.state in lawful, f"{earlier.state} became {later.state} (9)")
            must(earlier.remote_id in (None, later.remote_id), f"the remote id of {later.id} changed (10)")
    ids = [task.remote_id for task in found.tasks if task.remote_id is not None]
    must(len(ids) == len(set(ids)), "a remote job belongs to two tasks (10)")


def _is_whole(world: World, found: Found, name: str, content: bytes) -> None:
    """A final name stands for exactly what the provider serves (12, 13)."""
    task_id = name.rpartition("/")[2].rpartition("-")[0]
    task = next((task for task in found.tasks if task.id == task_id), None)
    must(task is not None and task.remote_id is not None, f"{name} belongs to no task")
    must(
        hashlib.sha256(content).hexdigest() == world.provider.clip(task.remote_id),
        f"{name} is not what was served (13)",
    )


def of_the_living(world: World) -> None:
    """
    Let the relay that goes on bring everything to its end, as its user would, and hold it to the ledger.
    """
    _old_tokens_are_dead(world)
    _cancelled_ones_end(world)
    # Jobs that ran long so that they could be cancelled end now.
    world.provider.control(run_seconds=0.3, finish=True)
    for wish in world.wanted:
        if wish.told is not None:
            must(world.task(wish.told)["request"]["prompt"] == wish.prompt, f"{wish.prompt} has changed (1)")
    for wish in world.wanted:
        # An app that heard nothing asks again under its key; one that was told gets the same task.
        world.ask(wish)
    _settle(world)
    world.until(world.want("one more"), "done")
    for account in world.http.get("/accounts").json()["accounts"]:
        for window in account["windows"]:
            must((window["running"], window["queued"]) == (0, 0), f"places are taken by nobody: {window} (7)")
    _keys_hold(world)
    _results_are_right(world)
    _ledger_agrees(world)


def _cancelled_ones_end(world: World) -> None:
    """A wish to cancel that was on disk is carried out, though nobody waits for it any more."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while any(task["state"] not in ENDED for task in world.tasks() if task["request"]["prompt"] in world.cancelled):
        must(time.monotonic() < deadline, "a wish to cancel is not carried out")
        time.sleep(0.05)


def _old_tokens_are_dead(world: World) -> None:
    now = world.tokens[-1]
    for token in set(world.tokens) - {now}:
        answer = world.http.get("/health", headers={"X-Local-Token": token})
        must(answer.status_code == 403, "a token of an earlier life is still taken")


def _settle(world: World) -> None:
    """
    Wait until every task has ended. One that is uncertain is looked up by the relay; where the provider surely never
    had it, the user says retry.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    wishes = {wish.prompt: wish for wish in world.wanted}
    while True:
        tasks = world.tasks()
        if all(task["state"] in ENDED for task in tasks):
            return
        must(time.monotonic() < deadline, f"never ended: {[(t['state'], t['blocked'], t['error']) for t in tasks]} (8)")
        jobs = world.provider.jobs()
        for task in tasks:
            prompt = task["request"]["prompt"]
            if task["state"] == "uncertain" and not jobs[prompt]:
                must(
                    "may already be charged" in task["error"]["detail"], "an uncertain task does not say what it costs"
                )
                world.http.post(f"/task/{task['taskId']}/resolve", json={"action": "retry"}).raise_for_status()
                wishes[prompt].retries += 1
        time.sleep(0.05)


def _keys_hold(world: World) -> None:
    """The same key gives the same task however late, another request under it is refused (11)."""
    for wish in world.wanted:
        world.ask(wish)
        other = world.http.post(
            "/generate", json=world.body(wish) | {"duration": 8}, headers={"Idempotency-Key": wish.key}
        )
        must(other.status_code == 409, f"another request under the key of {wish.prompt}: {other.status_code} (11)")
    prompts = Counter(task["request"]["prompt"] for task in world.tasks())
    must(prompts == Counter(wish.prompt for wish in world.wanted), f"tasks nobody wanted, or too few: {prompts} (1)")


def _results_are_right(world: World) -> None:
    for wish in world.wanted:
        task = world.task(wish.told)
        if wish.prompt in world.cancelled:
            must(task["state"] == "cancelled", f"a wish to cancel was lost: {task['state']}, {task['error']}")
            continue
        must(task["state"] == "done", f"{wish.prompt} is {task['state']}: {task['error']} (8)")
        (told,) = task["result"]["files"]
        answer = world.http.get(told["url"])
        if answer.status_code == 410 and world.cache:
            continue
        must(answer.status_code == 200, f"a result is not there: {answer.status_code} (12)")
        digest = hashlib.sha256(answer.content).hexdigest()
        must(len(answer.content) == told["bytes"] and digest == told["sha256"], "a result is not what was told (12)")
        must(digest == world.provider.clip(task["remoteId"]), "a result is not what the provider serves (12)")


def _ledger_agrees(world: World) -> None:
    ledger, jobs = world.provider.ledger(), world.provider.jobs()
    for wish in world.wanted:
        must(jobs[wish.prompt] <= 1 + wish.retries, f"{wish.prompt} was made {jobs[wish.prompt]} times (3)")
    must(set(jobs) <= {wish.prompt for wish in world.wanted}, "there are jobs that nobody wanted (3)")
    must(ledger["status429"] == 0, "the provider had to refuse (6)")
    must(max(ledger["maxAtOnce"].values(), default=0) <= world.window, f"too many at once: {ledger['maxAtOnce']} (6)")
    places = [task["request"]["prompt"] for task in world.tasks()]
    retried = {wish.prompt for wish in world.wanted if wish.retries}
    made = [places.index(job["prompt"]) for job in ledger["jobs"] if job["prompt"] not in retried]
    must(made == sorted(made), f"made out of turn: {made} (8)")


def of_the_end(world: World) -> None:
    """
    Hold what is left after a good end: the index and the disk agree, and nothing else lies about.
    """
    found = database(world.state)
    _database_is_sound(world, found)
    files = results(world.state)
    must(set(files) == found.known, f"index and disk differ: {sorted(set(files) ^ found.known)} (14)")
    sizes = [path.stat().st_size for path in files.values()]
    if world.cache:
        must(sum(sizes) <= MAX_CACHE_BYTES + max(sizes, default=0), f"{sum(sizes)} bytes are kept (14)")
    stray = {path.name for path in world.state.iterdir()} - NAMES
    must(not stray, f"left lying about: {stray}")


def wishes_to_cancel(world: World) -> set[str]:
    """
    The wishes to cancel that were on disk when it died: none of them may be lost.
    """
    return {task.request.prompt for task in database(world.state).tasks if task.cancel_wanted}
