"""
Persistence of bytes: results in the cache directory, reference images in the asset directory.

May import core. Nothing here knows tasks, the database or the network.
"""
