"""
The port Store, held against every implementation.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

from vidrelay.core.ports import How
from vidrelay.core.task import Money, Reference
from vidrelay.testing.records import make_request, make_task
from vidrelay.testing.stored import rule

MINUTE = timedelta(minutes=1)


# Submits --------------------------------------------------------------------------------------------------------------


async def test_new_task_is_kept_whole(store):
    """
    A task comes back as it was given, with its place in line and its entry in the log.
    """
    request = make_request(
        "two 雨 lanterns \ud83d",
        references=(Reference(asset="sha256:1", role="first"), Reference(url="https://a.test/x.png")),
        extra={"seed": 2**60, "nested": {"a": [1.5, None, True]}},
        metadata={"k": "v"},
        duration=5.0,
    )
    from decimal import Decimal

    task = make_task(request=request, app="studio", cost=Money(amount=Decimal("0.350"), currency="USD"))
    admission = await store.add(task, rule())
    assert admission.how is How.CREATED
    kept = await store.get(task.id)
    assert kept == admission.task == replace(task, seq=kept.seq, event_id=kept.event_id)
    assert kept.seq > 0
    assert kept.event_id > 0


async def test_thousand_identical_submits_make_one_task(store):
    """
    Of a thousand identical submits at once one makes the task and the rest join it.
    """
    tasks = [make_task(fingerprint="same") for _ in range(1000)]
    admissions = await asyncio.gather(*(store.add(task, rule()) for task in tasks))
    assert [admission.how for admission in admissions].count(How.CREATED) == 1
    assert {admission.task.id for admission in admissions} == {tasks[0].id}
    assert (await store.get(tasks[0].id)).joins == 999
    counters = await store.counters()
    assert (counters["submits"], counters["deduped"]) == (1000, 999)
