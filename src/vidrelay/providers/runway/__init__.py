"""
Runway: `words.py` holds its vocabulary, `models.py` what each model takes, `parameters.py` the request in those words,
`adapter.py` the conversations. Facts are of the fact sheet of 30 November 2026 and the types of SDK 5.24.0. May import
core and the providers' shared reading.
"""
