"""
The command line: arguments in, text out. One file a group of commands; all of them talk to the relay through `client`.

`main.py` puts the commands together and turns errors into exit statuses, `terminal.py` is the only one that writes,
`live.py` follows a task before the user's eyes. `pointing.py` points official SDKs at the relay: `variables.py` says by
which variables, `child.py` runs a command with them. Heavy imports stand inside the commands, so that `serve` starts
fast.
"""
