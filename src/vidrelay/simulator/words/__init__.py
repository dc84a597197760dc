"""
The providers' vocabularies that the pretend provider speaks, one file each, all on the same engine.

A vocabulary is a class that fills `Words` (vocabulary.py). May import the engine, and no server.
"""
