"""
The disk: power cuts, full and failing disks, damaged files. `python -m tests.durability.proof` shows the figures.
"""
