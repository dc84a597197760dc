"""
Seedance at Volcengine Ark (火山方舟) and BytePlus ModelArk: `words.py` holds its vocabulary, `adapter.py` the
conversations. Facts are of the fact sheet of 30 November 2026. May import core and the providers' shared reading.
"""
