"""
Moves tasks along: admits them, holds them in line, gives them places, and takes each through its life to a file.

It knows the ports only and may import `core`. `relay.py` is its face, which `face.py` describes for those above.
`admission.py` answers submits; `loop.py` says when, `step.py` what happens to one task: `submitting.py`, `watching.py`
and `fetching.py` converse with its provider (`converse.py`) and save what came of it (`saving.py`). `asking.py` polls
one task or many at once, `following.py` holds the calls that last. `copies.py` uploads pictures where a provider wants
that first, `supplying.py` while their task is still in line. `limits.py` keeps what providers tell of their windows,
`quotas.py` of what is left to spend; `checking.py` tries a key. `looking.py` finds a task, `steering.py` does with it
what people want, `adopting.py` checks a job that a person names, `passing.py` passes on what no door answers.
`account.py` says what one account may do, `line.py` who is next, `held.py` which places time alone holds, `cache.py`
what is kept. `roster.py` holds the live tasks in memory, each with its `track.py`; `history.py` what earlier ones took;
`outlook.py`, `overview.py` and `figures.py` tell how tasks and accounts stand and what was counted. `tools.py` and
`waiting.py` are what steps share.
"""
