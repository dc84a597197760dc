"""
Kling (可灵): `words.py` holds its vocabulary, `token.py` the credential that is made of the key and the time,
`parameters.py` the request in its words, `adapter.py` the conversations. Facts are of the fact sheet of 30 November
2026. May import core, PyJWT and the providers' shared reading.
"""
