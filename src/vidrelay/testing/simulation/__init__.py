"""
A whole relay, its apps, its providers and its disk, driven by one seed: every run of a seed is the same run.

Real SQLite, real files, the real downloader and the real scheduler; time, chance, the network, the providers and the
moments of dying are made here. `python -m vidrelay.testing.simulation` runs seeds; docs/explanation/simulation.md tells
how it works and what it checks.

    loop.py        an event loop in virtual time, whose threads are handles and whose processes can be killed
    clock.py       the wall clock, the monotonic one, and the truth
    faults.py      which kinds of trouble a seed has, and which have come
    journal.py     the run's own log, hashed
    provider.py    providers: gate, queue, list with lag, forgetting
    ledger.py      what a provider notes of all that it was asked and did
    network.py     the way to them (port Transport)
    words.py       what they speak: one small adapter for each kind of protection of a create
    disk.py        what a kill and a power cut leave behind; full and failing disks
    points.py      the kill points, and which port event stands for each
    watched.py     the relay's ports, watched: where a process may die and a disk may fail
    life.py        one life of the relay, from opening its files to its end
    apps.py        what apps do, and what they were told
    truth.py       the database as it is on disk
    invariants.py  what must hold after every step
    pace.py        of it, when calls may leave
    places.py      of it, which places may be taken
    world.py       one seed: the steps, the trouble, the calm at the end
    run.py         many seeds

May import everything but the server, the client and the daemon. Nothing in production imports it.
"""
