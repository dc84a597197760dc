"""
A provider of a few lines and its adapter, so that the scheduler can be tried without any real provider's words.

`provider.py` is the far end itself, which moves by the same clock as the relay under test; `adapter.py` speaks to it.
"""
