"""
Deliberate bugs that the suite must catch: a suite that passes with one of them proves nothing about it.

    bugs.py        the table of them all: what somebody might do wrong, and which tests must notice
    paying.py      bugs that pay twice        pacing.py      bugs in places and pace
    keeping.py     bugs in what is on disk    guarding.py    bugs in who comes in and where calls go
    planting.py    how a bug is planted: parts of the imported package are replaced
    plugin.py      `pytest -p controls.plugin`: plants the bug that VIDRELAY_CONTROL names
    child/         put before everything on PYTHONPATH, it plants the same bug in every process that a test starts
    controls.py    runs the tests that should notice, with the bug and without
    proof.py       all of them: `python tests/controls/proof.py`

Nothing of this is in the package, and nothing in the package knows of it.
"""
