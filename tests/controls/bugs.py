"""
The deliberate bugs. Each is what a careful person might write on a bad day, planted by replacing parts of the imported
package, with the tests that must notice it.
"""

from controls import guarding, keeping, pacing, paying
from controls.planting import BUGS, plant

__all__ = ["BUGS", "guarding", "keeping", "pacing", "paying", "plant"]
