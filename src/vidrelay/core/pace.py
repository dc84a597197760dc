"""
When to ask again: the poll schedule, the one learned from past tasks, `Retry-After`, and the wait after trouble.

All durations are seconds. `chance` is a random number from 0 up to but not including 1, drawn by the caller.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median, quantiles
from typing import Self

from vidrelay.core.policy import PollPolicy

LONGEST_WAIT = 7 * 86400.0
"""No `Retry-After`, and no rest that an earlier life kept, is taken for longer than this."""
ENOUGH = 30
"""So many past tasks make a law."""
RECENT = 10
"""So many of the newest tell whether the past still holds."""


def next_poll(
    *, polls: int, elapsed: float, policy: PollPolicy, floor: float, chance: float, history: "Law | None" = None
) -> float:
    """
    Return the seconds until a running task is asked for next.

    Args:
        polls: How often it has been asked for.
        elapsed: Seconds since the provider accepted it.
        policy: The user's settings. Jitter comes after its cap: 15 s become 12 to 18.
        floor: The least time between two polls that the adapter allows; nothing goes under it.
        chance: Where in the jitter's range to land.
        history: What past tasks of the model took; None, or `policy.learned` off, keeps to the fixed schedule.
    """
    learned = history if policy.learned else None
    interval = _fixed(polls, policy) if learned is None else learned.interval(elapsed)
    return max(floor, interval * (1 + policy.jitter * (2 * chance - 1)))


def _fixed(polls: int, policy: PollPolicy) -> float:
    """
    The interval after so many polls: `first`, growing by `factor` up to `cap`.
    """
    try:
        grown = policy.first * policy.factor**polls
    except OverflowError:
        return policy.cap
    return min(policy.cap, grown)


# The learned schedule -------------------------------------------------------------------------------------------------
#
# A poll costs something, and so does each second of not knowing that a task is done. Say a poll is worth c seconds of
# delay. Over a short interval d in which the task ends at rate h (its hazard), one poll is paid per interval, and on
# average h·d·d/2 seconds of delay: per second c/d + h·d/2, which is least at d = sqrt(2c/h). So it is asked for rarely
# while it can hardly be done, and often when it is due. stack.md's table G measures this against the exact optimum: the
# cost is within 2 %.

_TRADES = (0.5, 0.35, 0.25, 0.18, 0.12)
"""Candidates for c, in seconds of delay that one poll is worth; the first that beats the fixed schedule is taken."""
_SHORTEST, _LONGEST, _CAUTIOUS = 1.0, 30.0, 15.0
_SURPRISES = 0.05
"""The share of tasks that are allowed for but not learned: early failures, and a provider that has changed."""
_LEAST_SPREAD = 0.12
_SETTLED = 0.01
"""An interval is as good as right when it changes by less than this share."""
_TOO_LONG = 3600.0
"""Where tasks take longer than this, a pace of 15 s costs little, and a better one much to find."""
_SOONER = 0.95
"""By how much the delay must be less on past tasks, so that it is less in spite of surprises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """
    How long tasks of one model take: log-normal around `middle` seconds, `spread` wide in the logarithm.

    A small share of surprises (exponential, with the same middle for its mean) is mixed in, so that no hour is ever
    thought impossible. `trade` is the seconds of delay that one poll is worth, `longest` the longest interval.
    """

    middle: float
    spread: float
    trade: float = _TRADES[0]
    longest: float = _LONGEST

    @classmethod
    def fit(cls, durations: Sequence[float], *, against: PollPolicy | None = None) -> Self | None:
        """
        Learn from past tasks of the model; None where the fixed schedule does as well or there are too few of them.

        The schedule is tried on the same tasks: it must ask no more often than the fixed one, and find out sooner.

        Args:
            durations: What each took from acceptance to completion, the newest first; at least 30.
            against: The fixed schedule to beat; None for the default one.
        """
        if len(durations) < ENOUGH:
            return None
        past = [max(0.1, duration) for duration in durations]
        logs = [math.log(duration) for duration in past]
        middle = median(logs)
        if middle > math.log(_TOO_LONG):
            return None
        # 1.4826 makes the median deviation a standard one; few samples are trusted less.
        spread = 1.4826 * median(abs(log - middle) for log in logs) * math.sqrt(1 + 2 / len(logs))
        low, _, high = quantiles(past, n=4)
        settled = low <= median(past[:RECENT]) <= high
        law = cls(
            middle=math.exp(middle), spread=max(_LEAST_SPREAD, spread), longest=_LONGEST if settled else _CAUTIOUS
        )
        judges = sorted(past if settled else past[:RECENT])
        polls, delay = _cost(_fixed_gaps(against or PollPolicy()), judges)
        for trade in _TRADES:
            candidate = replace(law, trade=trade)
            asked, waited = _cost(candidate._gaps(), judges)
            if asked <= polls and waited <= _SOONER * delay:
                return candidate
        return None

    def interval(self, elapsed: float) -> float:
        """
        The best time until the next poll of a task that is still running after `elapsed` seconds.
        """
        # Beyond four spreads nothing was learned.
        if elapsed >= self.middle * math.exp(4 * self.spread):
            return _CAUTIOUS
        interval, before = self.longest, math.inf
        # The hazard in the middle of the interval decides its length, and so where its middle is: this settles quickly.
        for _ in range(6):
            if abs(interval - before) < _SETTLED * interval:
                break
            before = interval
            hazard = self._hazard(elapsed + interval / 2)
            interval = min(self.longest, max(_SHORTEST, math.sqrt(2 * self.trade / hazard)))
        return interval

    def _hazard(self, elapsed: float) -> float:
        """
        The rate at which tasks end that have run for so long; `elapsed` is above 0.
        """
        z = math.log(elapsed / self.middle) / self.spread
        surprise = math.exp(-elapsed / self.middle)
        density = math.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * elapsed * self.spread)
        ending = (1 - _SURPRISES) * density + _SURPRISES * surprise / self.middle
        running = (1 - _SURPRISES) * math.erfc(z / math.sqrt(2)) / 2 + _SURPRISES * surprise
        return max(1e-9, ending) / max(1e-12, running)

    def _gaps(self) -> Iterator[float]:
        elapsed = 0.0
        while True:
            gap = self.interval(elapsed)
            yield gap
            elapsed += gap


def _fixed_gaps(policy: PollPolicy) -> Iterator[float]:
    polls = 0
    while True:
        yield _fixed(polls, policy)
        polls += 1


def _cost(gaps: Iterator[float], durations: Sequence[float]) -> tuple[float, float]:
    """
    The mean number of polls, and the mean delay in seconds, of a schedule for tasks of these sorted durations.

    With jitter a task ends anywhere in the interval it ends in, so its delay is half of that.
    """
    polls, gap, reached, delay, asked = 0, 0.0, 0.0, 0.0, 0
    for duration in durations:
        while reached < duration:
            gap = next(gaps)
            reached += gap
            polls += 1
        asked += polls
        delay += gap / 2
    return asked / len(durations), delay / len(durations)


# What the provider says -----------------------------------------------------------------------------------------------

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_DATES = (  # RFC 9110 section 5.6.7: the one to write, and the two old ones still to be read
    re.compile(rf"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(rf"{_LONG_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(rf"{_DAY} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


def retry_after(header: str | None, *, now: datetime) -> float | None:
    """
    Return the seconds a `Retry-After` header asks for, or None where there is none that can be read.

    Only what RFC 9110 allows is read: ASCII digits, or an HTTP-date. A date that has passed is 0; more than 7 days are
    7 days.

    Args:
        header: The field's value; None where it was not sent.
        now: The present instant, aware.
    """
    value = (header or "").strip(" \t")
    if re.fullmatch("[0-9]+", value):
        # A number too long to be worth converting is longer than any wait (and Python refuses to convert 5,000 digits).
        digits = value.lstrip("0") or "0"
        return min(LONGEST_WAIT, float(digits)) if len(digits) < 10 else LONGEST_WAIT
    instant = _http_date(value, now)
    if instant is None:
        return None
    return min(LONGEST_WAIT, max(0.0, (instant - now).total_seconds()))


def _http_date(value: str, now: datetime) -> datetime | None:
    """
    The instant an HTTP-date names. A leap second counts as the one before it, which is all `datetime` can hold.
    """
    found = next((match for pattern in _DATES if (match := pattern.fullmatch(value))), None)
    if found is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        # RFC 9110: a year that seems more than 50 years ahead is the last one in the past with those digits.
        year += now.year - now.year % 100
        year -= 100 if year > now.year + 50 else 0
    try:
        return datetime(
            year,
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            59 if found["second"] == "60" else int(found["second"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None


def backoff(*, tries: int, chance: float, first: float = 1.0, cap: float = 60.0) -> float:
    """
    Return the seconds to wait after trouble: anywhere from `first` to a limit that doubles with each try, up to `cap`.

    Full jitter: many tasks that failed at one moment come back spread over the whole range, not together.

    Args:
        tries: How often it has failed in a row, from 1.
        chance: Where in the range to land.
        first: The shortest wait.
        cap: The longest one, reached after six tries with the default values.
    """
    limit = min(cap, first * 2.0 ** min(tries, 32))
    return first + chance * max(0.0, limit - first)
