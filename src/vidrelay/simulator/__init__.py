"""
The pretend provider as a real server on loopback, for trying vidrelay without paying and for testing it.

`options.py` says what can be set, `faults.py` what can go wrong on purpose, `engine.py` runs gate, queue and jobs on an
injected clock, `ledger.py` notes everything it saw, `words/` holds one file a provider's vocabulary, `clips.py` makes
the files, `server.py` puts it on a socket. May import core, clock and providers.
"""
