"""
A ComfyUI server of one's own: `graph.py` knows the marks in a graph and what is put in their place, `parameters.py`
says a request so, `words.py` and `reading.py` read the server's replies, `jobs.py` asks for its queue and history,
`listening.py` listens to its websocket, `adapter.py` holds the conversations; `door.py` is the same interface toward
clients, and `telling.py` says how a task reads there. Facts are of the fact sheet of 30 November 2026. May import core
and the providers' shared reading.
"""
