"""
Real kills of a real relay process at each of its kill points, and what must hold afterwards.

    points.py      the 42 points: what each means, what is played until the relay dies there, how it then stands
    launcher.py    `python launcher.py POINT NTH -- ARGUMENTS`: the relay's command line with a fuse at that point
    fuses.py       where each fuse sits; the relay's own code knows nothing of it
    world.py       the pretend provider, the lives of the relay, and an app that remembers what it was told
    plays.py       what the app does until the relay dies
    autopsy.py     what the dead relay left on its disk, read from a copy
    verdict.py     what must hold, held against the provider's ledger and what the app was told
    trial.py       one kill from beginning to end
    proof.py       all of them: `python tests/kill/proof.py --rounds 3`

Fuses patch classes of the imported relay, in that process alone: a kill between two given instructions cannot be had
from outside, and the relay has no hooks.
"""
