"""
Deliberate bugs that the suite must catch: a suite that passes with one of them proves nothing about it.

    bugs.py        each bug: what somebody might do wrong, as a patch of the imported package, and who must notice
    plugin.py      `pytest -p controls.plugin`: plants the bug that VIDRELAY_CONTROL names
    child/         put before everything on PYTHONPATH, it plants the same bug in every process that a test starts
    controls.py    runs the tests that should notice, with the bug and without
    proof.py       all of them: `python tests/controls/proof.py`

Nothing of this is in the package, and nothing in the package knows of it.
"""
