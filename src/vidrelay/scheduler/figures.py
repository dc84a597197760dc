"""
The figures of `GET /stats`: lifetime counters, what was not paid twice, and where the time goes.
"""

import statistics
from collections.abc import Sequence
from decimal import Decimal

from vidrelay.core.ports import Store
from vidrelay.core.task import Money, State, Task
from vidrelay.core.wire import timings_json
from vidrelay.scheduler.face import Spread, Stats

RECENT_TASKS = 500
MICRO = 1_000_000
SAVED = "savedMicros"


def saved_counter(cost: Money) -> dict[str, int]:
    """
    What one clip that was not paid twice adds to the counters: exact millionths, by currency.
    """
    return {f"{SAVED}{cost.currency}": int((cost.amount * MICRO).to_integral_value())}


async def figures(store: Store) -> Stats:
    """
    The figures as they are now; the segments are those of the newest done tasks.
    """
    counters = await store.counters()
    done = await store.page(states=frozenset({State.DONE}), account=None, before=None, limit=RECENT_TASKS)
    money = {name.removeprefix(SAVED): value for name, value in counters.items() if name.startswith(SAVED)}
    return Stats(
        counters={name: value for name, value in counters.items() if not name.startswith(SAVED)},
        saved_clips=counters.get("deduped", 0) + counters.get("cacheHits", 0),
        saved_money=tuple(
            Money(amount=Decimal(micros) / MICRO, currency=currency) for currency, micros in sorted(money.items())
        ),
        segments=_segments(done),
    )


def _segments(done: Sequence[Task]) -> dict[str, dict[str, Spread]]:
    by_model: dict[str, dict[str, list[float]]] = {}
    for task in done:
        segments = by_model.setdefault(task.model_version or task.provider, {})
        for name, seconds in timings_json(task.timings()).items():
            if seconds is not None:
                segments.setdefault(name, []).append(seconds)
    return {
        model: {name: Spread(median=statistics.median(values), p90=_p90(values)) for name, values in segments.items()}
        for model, segments in by_model.items()
    }


def _p90(values: Sequence[float]) -> float:
    """
    The smallest value that nine in ten do not exceed.
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
