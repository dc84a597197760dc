"""
MiniMax (海螺, Hailuo): two generations of its API that share a host and a key and nothing else, so an account speaks
one of them by its `dialect`: `v1.py` (Hailuo 02 and 2.3, the 01 models) or `v2.py` (H3) with `content.py`, a request in
its words, and `listed.py`, its list. `words.py` holds both vocabularies, `sent.py` what a create in either is; toward
clients, `door.py` chooses between `v1_door.py` and `v2_door.py`. Facts are of the fact sheet of 30 November 2026. May
import core and the providers' shared reading.
"""
