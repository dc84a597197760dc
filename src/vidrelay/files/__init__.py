"""
Persistence of bytes: results in the cache directory, reference images, films and sounds in the asset directory.

`local.py` keeps results, `assets.py` what was sent in: `intake.py` takes that as it comes, `images.py` is the child
that decodes pictures.

May import core. Nothing here knows tasks, the database or the network.
"""
