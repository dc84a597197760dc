"""
Moves tasks along: admits them, holds them in line, gives them places, and takes each through its life to a file.

It knows the ports only (`core/ports.py`) and may import `core`. `relay.py` is its face, which `face.py` describes for
those above. `admission.py` answers submits; `loop.py` says when, `step.py` what happens to one task: `submitting.py`,
`watching.py` and `fetching.py` converse with its provider (`converse.py`) and save what came of it (`saving.py`).
`asking.py` polls one task or many at once, `copies.py` uploads pictures where a provider wants that first, `limits.py`
keeps what providers tell of their windows. `account.py` says what one account may do, `line.py` who is next, `cache.py`
what is kept. `roster.py` holds the live tasks in memory, each with its `track.py`; `history.py` what earlier ones took;
`outlook.py` and `figures.py` tell how tasks stand and what was counted. `tools.py` and `waiting.py` are what steps
share.
"""
