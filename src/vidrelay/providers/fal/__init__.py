"""
fal.ai's queue: `words.py` holds its vocabulary, `parameters.py` the request in it, `adapter.py` the conversations;
`reading.py`, `listed.py` and `uploads.py` read what comes back. `door.py` is the same interface toward its SDKs. Facts
are of the fact sheet of 30 November 2026. May import core and the providers' shared reading.
"""
