"""
Seeds that once found something, with what it was; whoever runs seeds runs these too. Each fault also has a small test
of its own where it was.
"""

FOUND = {
    2: "a jump of the clock had a job asked for before the provider's floor",
    3: "a create sent again under a new key was made twice (tests/scheduler/test_faults.py)",
    13: "what rounding left of a wait ran in circles",
    14: "a failing disk made a paid task lose its id (tests/scheduler/test_saving.py);"
    " a step that was broken off before it began was the task's last",
    32: "two look-ups left at once",
    78: "a job that its provider showed late was gone by a clock that was set (tests/scheduler/test_restart.py)",
    201: "a place was held for a day, the clock set while the loss was committed (tests/scheduler/test_held.py)",
    557: "a place that seemed over at the start came back (tests/scheduler/test_clock.py)",
    1033: "two people adopted one job at once (tests/scheduler/test_faults.py)",
    1572: "a call lasted for a task that an app had cancelled and left (tests/scheduler/test_following.py)",
    1799: "a job was asked for by a person who came after another had given it up (tests/scheduler/test_faults.py)",
    52094: "a place was said to be given back too early, by a clock that was set while no relay lived",
}
