"""
`make prove` fails when a proof does, and says what it said.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "prove.py"


@pytest.fixture
def prove(monkeypatch):
    """The script."""
    spec = importlib.util.spec_from_file_location("prove", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "prove", script)
    spec.loader.exec_module(script)
    return script


def proofs(prove, *codes):
    """A group of each code."""
    return tuple((prove.Proof(name=f"proof {n}", arguments=("-c", code)),) for n, code in enumerate(codes))


GOOD = "print('{\"violations\": 0}')"


def test_all_that_is_proved_is_told_in_a_table(prove, capsys):
    """Name and figures of each."""
    assert prove.main([], proofs(prove, GOOD, GOOD)) == 0
    told = capsys.readouterr().out
    assert "| proof 1 | 0 | violations 0 |" in told
    assert told.endswith("all 2 proved\n")


@pytest.mark.parametrize(
    "bad",
    [
        "import sys; print('{\"violations\": 1}'); sys.exit('seed 5 lost a task')",
        "print('{}')",
        "print('seed 5 lost a task')",
        "raise SystemExit(0)",
    ],
)
def test_one_that_fails_or_says_nothing_fails_all(prove, capsys, bad):
    """A status, no figures, or no JSON at all: none of them is a proof."""
    assert prove.main([], proofs(prove, GOOD, bad, GOOD)) == 1
    told = capsys.readouterr().out
    assert "proof 1: NOT PROVED" in told
    assert "not proved: proof 1" in told


def test_nothing_proved_is_no_success(prove):
    """A name that no proof has runs nothing."""
    assert prove.main(["everything"], proofs(prove, GOOD)) == 1


def test_what_a_failed_proof_said_is_shown(prove, capsys):
    """The end of it, where its violations stand."""
    prove.main([], proofs(prove, "import sys; sys.exit('seed 5 lost a task')"))
    assert "seed 5 lost a task" in capsys.readouterr().out
