"""
Counters and gauges in Prometheus' text form.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from vidrelay.core.task import LIVE, Task
from vidrelay.scheduler.face import AccountStatus, Stats

_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")


def metrics_text(stats: Stats, live: Sequence[Task], accounts: Sequence[AccountStatus]) -> str:
    """
    Every lifetime counter, the live tasks by state, and each account's windows and pause.
    """
    lines: list[str] = []
    for name, value in stats.every_counter().items():
        metric = f"vidrelay_{_snake(name)}_total"
        lines += [f"# TYPE {metric} counter", f"{metric} {value}"]
    lines += ["# TYPE vidrelay_saved_clips_total counter", f"vidrelay_saved_clips_total {stats.saved_clips}"]
    states = Counter(task.state for task in live)
    by_state = [(f'state="{state}"', states[state]) for state in sorted(LIVE)]
    lines += _gauge("vidrelay_live_tasks", by_state)
    windows = [
        (f'account="{_label(account.name)}",window="{_label(window.name)}"', window)
        for account in accounts
        for window in account.windows
    ]
    lines += _gauge("vidrelay_window_limit", [(labels, window.limit) for labels, window in windows])
    lines += _gauge("vidrelay_window_running", [(labels, window.running) for labels, window in windows])
    lines += _gauge("vidrelay_window_queued", [(labels, window.queued) for labels, window in windows])
    paused = [(f'account="{_label(account.name)}"', int(account.pause is not None)) for account in accounts]
    lines += _gauge("vidrelay_account_paused", paused)
    return "\n".join(lines) + "\n"


def _gauge(name: str, values: Iterable[tuple[str, int]]) -> list[str]:
    return [f"# TYPE {name} gauge", *(f"{name}{{{labels}}} {value}" for labels, value in values)]


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
