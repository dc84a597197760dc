"""
A create call whose answer is lost is never paid twice, wherever its connection breaks.

A few places here; `python tests/ambiguous/proof.py` is the whole of it.
"""

import pytest

from ambiguous.cases import Round, rounds, sample
from ambiguous.line import Framing, Shape, Side
from ambiguous.proof import ends, played, shapes_of, told, with_bug
from ambiguous.sweep import Ledger
from ambiguous.verdict import must_occur


def test_wherever_the_create_breaks_it_is_paid_once():
    """Found, proved absent, sent again where that is safe, or left to a person; and each of these does occur."""
    first = played(Round(broken=None, lags=(0.0,)))
    outcomes = [first, *map(played, sample(shapes_of([first])))]
    assert [line for outcome in outcomes for line in told(outcome)] == []
    assert must_occur() <= set(ends(outcomes))


def test_the_whole_of_it_breaks_after_every_byte():
    """Of the request, and of the answer up to its last."""
    shape = Shape(request_head=50, request=70, reply_head=40, reply=90)
    broken = [one.broken for one in rounds({Framing.LENGTH: shape}) if one.broken is not None]
    assert {one.at for one in broken if one.side is Side.REQUEST} == set(range(70))
    assert {one.at for one in broken if one.side is Side.REPLY} == set(range(91))


def test_a_far_end_that_fails_is_no_broken_line(monkeypatch):
    """It is told by name, with the tasks that were not even tried for it; and nothing is measured by such a round."""
    monkeypatch.setattr(Ledger, "listing_lag", lambda _, key: 1 / (key == ""))
    outcome = played(Round(broken=None, lags=(0.0,)))
    wrong = list(told(outcome))
    assert any("the far end itself failed: ZeroDivisionError" in line for line in wrong)
    assert any("its create was never_tried" in line for line in wrong)
    with pytest.raises(AssertionError, match="the far end itself failed"):
        shapes_of([outcome])


@pytest.mark.process
def test_a_blind_retry_is_noticed():
    """With that deliberate bug the same sample finds jobs that were made twice."""
    control = with_bug("blind_retry")
    assert control.caught, control.said
    assert "invariant 3" in control.said
