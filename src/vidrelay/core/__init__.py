"""
Values and rules: what a task is, which way it may go, when two requests are the same, when to ask again.

Nothing here reads a clock, draws a random number, opens a file or waits: time and chance come in as arguments, and
everything that touches the world stands behind a port: `ports.py` (database), `clock.py`, `disk.py`, `network.py`,
`adapter.py` (toward providers) and `door.py` (toward their SDKs); `plan.py` is one account with what fills its ports.
May import the standard library's pure parts only.
"""
