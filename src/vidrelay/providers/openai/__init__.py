"""
The OpenAI Videos shape (`/v1/videos`), as vLLM-Omni, SGLang-diffusion and many gateways serve it.

`words.py` holds its vocabulary, `parameters.py` says a request in it, `adapter.py` holds the conversations. May import
core and the providers' shared reading.
"""
