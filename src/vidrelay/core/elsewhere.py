"""
Paths of a provider's that a door's own route would take for a task's, though they are none.
"""

from vidrelay.core.door import Answering, DoorCall
from vidrelay.core.errors import UnknownTask


def elsewhere(call: DoorCall) -> Answering:
    """
    The handler of a path that the door does not answer, which stands before the route that it would fit as well: as if
    no route fitted. The server never calls it.

    Raises:
        UnknownTask: Always.
    """
    yield from ()
    raise UnknownTask(f"There is nothing at {call.path}.")
