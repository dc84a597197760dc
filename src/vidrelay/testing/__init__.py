"""
Fakes for the ports that stand before time and the network, and contract suites, for our tests and adapter authors'.

`adapters.py` and `doors.py` are the contract suites of adapters and doors, `sheet.py` is what an adapter's is told.
`rehearsal.py` brings an adapter and the pretend provider together in memory, `conversing.py` holds a single
conversation; `process.py` and `simulator.py` start the real things beside a test. `samples.py` makes the smallest files
of some kinds. `toy/` is a provider of a few lines, for what is no provider's own.

May import every room. Nothing in production imports it.
"""
