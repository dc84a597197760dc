"""
A whole relay lives through a disk that fails once, at its n-th write or sync, or from then on for a while.

Whatever n: what was refused is not there, what was accepted is done in the end, and no task is made twice.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from vidrelay.core.errors import DatabaseUnusable, DiskFull, StoreError
from vidrelay.core.task import Resolution, State

from .faulty_sqlite import FULL, IOERR_FSYNC, IOERR_WRITE, Op, Verdict, disk
from .lives import Ground, Life

PROMPTS = ("a boat", "a kite", "a lamp")

VERDICTS: dict[str, tuple[str, Verdict]] = {
    "full": ("write", FULL),
    "failing": ("write", IOERR_WRITE),
    "short": ("write", (11, IOERR_WRITE)),
    "unsynced": ("sync", IOERR_FSYNC),
}

WAYS = {
    "full": ("once", "lasting", "ballast", "killed"),
    "failing": ("once", "lasting", "killed"),
    "short": ("once",),
    "unsynced": ("once",),
}
"""How each kind goes on: `once`, `lasting` for a while, lasting unless the `ballast` is given up, or lasting while the
relay is `killed`."""


@dataclass
class Trouble:
    """
    What befalls the disk: the n-th piece of work of its kind fails.
    """

    kind: str = "none"
    way: str = "once"
    nth: int = 0
    folder: Path | None = None
    count: int = 0
    met: bool = False
    healed: bool = False

    def judge(self, op: Op) -> Verdict:
        """
        Fail it, or not.
        """
        kind, verdict = VERDICTS.get(self.kind, ("write", None))
        if op.kind != kind:
            return None
        self.count += 1
        if self.healed or self.count < self.nth or self.kind == "none":
            return None
        if self.way == "ballast" and self.met and self.folder is not None and not (self.folder / "ballast").exists():
            return None
        if self.way == "once":
            self.healed = True
        self.met = True
        return verdict


async def count_work(folder: Path, kind: str) -> int:
    """
    How often a life does that kind of work when nothing fails.
    """
    trouble = Trouble()
    trouble.kind = "none"
    counted = VERDICTS[kind][0]
    seen = 0

    def judge(op: Op) -> Verdict:
        nonlocal seen
        seen += op.kind == counted
        return None

    with disk(judge):
        await _live(Ground(folder), trouble)
    return seen


async def survive(folder: Path, *, kind: str, way: str, nth: int) -> Counter[str]:
    """
    Live through it; tells what came of it.

    Raises:
        AssertionError: Something was lost or made twice.
    """
    trouble = Trouble(kind=kind, way=way, nth=nth, folder=folder)
    with disk(trouble.judge):
        return await _live(Ground(folder), trouble)


async def _live(ground: Ground, trouble: Trouble) -> Counter[str]:
    told: Counter[str] = Counter()
    open_prompts = list(PROMPTS)
    retries = 0
    for life_number in range(8):
        try:
            async with ground.life() as life:
                if life_number:
                    retries += await _resolve(life, ground)
                await _one_life(life, ground, trouble, open_prompts, told)
                ended = life.ended_by is None and not open_prompts and await _all_done(life)
        except (DatabaseUnusable, DiskFull, StoreError) as problem:
            told[f"ended:{problem.code}"] += 1
            trouble.healed = True
            continue
        if ended:
            break
    else:
        raise AssertionError("it never came to an end")
    _judge(ground, retries)
    told["met"] += trouble.met
    return told


async def _one_life(life: Life, ground: Ground, trouble: Trouble, open_prompts: list[str], told: Counter[str]) -> None:
    """
    Submit what is not accepted yet, let time pass, heal, and wait for the end of everything.
    """
    for _ in range(4):
        for prompt in tuple(open_prompts):
            if await _submitted(life, prompt, told):
                open_prompts.remove(prompt)
        await ground.clock.advance(45)
        if trouble.way == "killed" and trouble.met and not trouble.healed:
            told["killed"] += 1
            ground.kill()
            trouble.healed = True
            return
        if trouble.met:
            trouble.healed = True
        if life.ended_by is not None:
            return
    assert not open_prompts, f"never accepted: {open_prompts}"
    await life.until(State.DONE, prompts=len(PROMPTS))


async def _submitted(life: Life, prompt: str, told: Counter[str]) -> bool:
    try:
        await life.submit(prompt)
    except DiskFull:
        told["refused"] += 1
        if life.ended_by is None:
            assert prompt not in {task.request.prompt for task in await life.tasks()}, "refused, and there"
        return False
    except StoreError:
        # Its outcome is open; the same client key finds out.
        told["refused"] += 1
        return False
    return True


async def _resolve(life: Life, ground: Ground) -> int:
    """
    What a person does with a task that is uncertain and that its provider never saw.
    """
    made = {job.body["prompt"] for job in ground.provider.jobs.values()}
    retries = 0
    for task in await life.tasks():
        if task.state is State.UNCERTAIN:
            assert task.request.prompt not in made, f"the id of {task.id} was lost"
            await life.relay.resolve(task.id, Resolution.RETRY)
            retries += 1
    return retries


async def _all_done(life: Life) -> bool:
    tasks = await life.tasks()
    done = [task for task in tasks if task.state is State.DONE]
    for task in done:
        (file,) = task.files
        path, _ = await life.relay.result_file(task.id, 0)
        assert path.stat().st_size == file.size_bytes
    return len(done) == len(PROMPTS) == len(tasks)


def _judge(ground: Ground, retries: int) -> None:
    creates = Counter(body["prompt"] for body in ground.provider.creates)
    assert set(creates) == set(PROMPTS)
    assert sum(creates.values()) <= len(PROMPTS) + retries, f"made twice: {creates}"
    assert len(ground.provider.jobs) == len(PROMPTS), f"paid twice: {creates}"
