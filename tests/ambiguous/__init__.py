"""
The create call breaks at every byte, and nothing is paid twice.

    line.py        a connection that breaks after a given byte, under the real HttpTransport
    cases.py       what is combined: the break, the provider's protection, how late its list is, twin tasks
    sweep.py       one relay for all cases of one break: real scheduler, real SQLite, virtual time
    verdict.py     how each task must end, and what the provider's ledger says of it
    proof.py       all of them: `python tests/ambiguous/proof.py`

Time, the provider and the ledger are the simulation's, and so are the invariants that are checked after each commit.
"""
