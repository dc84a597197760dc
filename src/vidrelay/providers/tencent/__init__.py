"""
Tencent Cloud's VCLM (Hunyuan video, and Kling's models hosted there): `words.py` holds its vocabulary, `signature.py`
how a call is signed, `parameters.py` the request in its words, `adapter.py` the conversations. Facts are of the fact
sheet of 30 November 2026. May import core and the providers' shared reading.
"""
