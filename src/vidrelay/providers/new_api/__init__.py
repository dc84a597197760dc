"""
A gateway of the new-api kind (QuantumNous/new-api and its forks), which looks like OpenAI's videos and speaks to many
providers behind: `words.py` holds its vocabulary, `parameters.py` says a request in it, `adapter.py` holds the
conversations. Facts are of the fact sheet of 30 November 2026. May import core and the providers' shared reading.
"""
