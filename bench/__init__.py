"""
What is fast, and how it compares: `make bench` prints every figure beside its goal and never fails on timing.

Each figure is measured in the same run as what it is compared with, on the same uvicorn settings: `bare.py` is the
Starlette route without a relay, `commits.py` the price of one durable commit, `load.py` the process that asks.
`relay.py` starts relays and pretend providers, `crowd.py` fills a database, `__main__.py` puts it together.
"""
