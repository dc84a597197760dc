"""
The providers, one room each: builds requests and reads replies, sends nothing.

A room holds `words.py` (the provider's field names, status words and error codes, said once) and `adapter.py` (port
Adapter); `registry` finds a room by its provider's name. May import: core, clock.

The one exception to "sends nothing" is `preview`, a provider of our own: its `studio.py` answers the adapter's requests
by rendering, so it fills port Transport.
"""
