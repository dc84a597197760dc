"""
The HTTP face of the relay: thin, and closed to everyone who does not know the token.

`app.py` lists every route; a request passes `gate.py` (who may speak at all), `dispatch.py` (route, method, content
type, size), and one method of `api.py`, `status.py`, `files.py` or `events.py`. `serve.py` is the listener under it.
May import `core` and `scheduler/face.py`; knows no provider, database, file store or outgoing socket.
"""
