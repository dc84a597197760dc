"""
Zhipu (智谱) and, by dialect, its sister house Z.ai: `words.py` holds the vocabulary, `adapter.py` the conversations.
Facts are of the fact sheet of 30 November 2026. May import core and the providers' shared reading.
"""
