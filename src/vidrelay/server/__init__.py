"""
The HTTP face of the relay: thin, and closed to everyone who does not know the token.

`app.py` lists every route; a request passes `gate.py` (who may speak at all), `dispatch.py` (route, method, content
type, size), and one method of `api.py`, `status.py`, `files.py` or `events.py`. `serve.py` is the listener under it.

A call in a provider's own words goes to `doors.py` instead: `retold.py` may know its answer already, `door_routes.py`
finds the route, `door_body.py` takes in the body (`lifting.py`: its long texts to the disk, `media.py`: the pictures in
it), `sender.py` reads who sends it. `sockets.py` and `upgrade.py` are for clients that listen on a websocket.

May import `core` and `scheduler/face.py`; knows no provider, database, file store or outgoing socket.
"""
