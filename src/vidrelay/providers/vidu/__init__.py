"""
Vidu (生数): `words.py` holds its vocabulary, `parameters.py` says a request in it, `adapter.py` holds the
conversations. Facts are of the fact sheet of 30 November 2026. May import core and the providers' shared reading.
"""
