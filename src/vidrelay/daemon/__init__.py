"""
The life of the relay's process: the lock, a leftover relay, the port, signals, the drain, the exit status.

`state.py` prepares the state directory and its lock, `ports.py` chooses and opens the port, `leftover.py` deals with a
relay that is there already, `idle.py` notices that nobody needs the relay, `logs.py` says what is logged, `life.py` is
the whole of it: `serve`. May import everything below: server, client (for `relay.json`), assemble, config.
"""
