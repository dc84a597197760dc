"""
The providers, one room each: builds requests and reads replies, sends nothing.

A room holds `words.py` (the provider's field names, status words and error codes, said once), `parameters.py` (the
uniform request in those words, where that is long), `adapter.py` (port Adapter) and, where its SDKs are answered here,
`door.py` (port Door); `registry` finds a room by its provider's name. May import: core, clock.

What the rooms share: `json_api` (how a call is written, and what few providers have), `signing` and `credentials`
(calls that are signed), `uniform` and `pictures` (the request: what is taken, and pictures as they are sent), `sizes`
(resolution and ratio in pixels), `replies` (reads what may be anything), `verdicts` (what a reply means to the relay),
`listing` (a lost create in a list), `streams` (a call that lasts), `facts` (a row of the documentation). The doors
share `doorway` (how a call is read and a wish made), `paging` (lists that are shown) and `spelling` (parameters of a
form); `sdks` says how each provider's SDKs are pointed here.

The one exception to "sends nothing" is `preview`, a provider of our own: its `studio.py` answers the adapter's requests
by rendering, so it fills port Transport.
"""
