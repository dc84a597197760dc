"""
Google's Gemini API: Veo (operations) and Omni (interactions), chosen by the model. `words.py` holds the vocabulary,
`veo.py` and `interactions.py` what each of the two says and means, `adapter.py` the conversations; `door.py` is toward
the SDKs, `file_ids.py` how a clip is named there. Facts are of the fact sheet of 30 November 2026. May import core and
the providers' shared reading.
"""
