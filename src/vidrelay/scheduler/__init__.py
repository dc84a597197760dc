"""
Moves tasks along: admits them, holds them in line, gives them places, and takes each through its life to a file.

It knows the ports only (`core/ports.py`) and may import `core`. `relay.py` is its face; `loop.py` says when, `step.py`
what happens to one task, `account.py` what one account may do, `line.py` who is next, `cache.py` what is kept.
"""
