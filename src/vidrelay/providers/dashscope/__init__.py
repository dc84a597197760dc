"""
Alibaba's DashScope (Model Studio; Wan 通义万相): `words.py` holds its vocabulary, `parameters.py` turns the uniform
request into each model family's fields, `adapter.py` holds the conversations. Facts are of the fact sheet of 30
November 2026. May import core and the providers' shared reading.
"""
