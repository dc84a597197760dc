"""
Where a call in a provider's own words belongs: which route of its door answers its path.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.routing import compile_path

from vidrelay.core.door import DoorRoute, elsewhere
from vidrelay.scheduler.face import DoorWay
from vidrelay.server.errors import Refusal


@dataclass(frozen=True, slots=True)
class _Route:
    """
    A door's route, with the pattern of its path.
    """

    route: DoorRoute
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class RoutedDoor:
    """
    A door, the account behind it, and its routes with their patterns.
    """

    way: DoorWay
    routes: tuple[_Route, ...]

    def find(self, method: str, path: str) -> tuple[DoorRoute | Refusal, dict[str, str]]:
        """
        The route that answers, and what stands in its path; or why there is none. Where calls are passed on, a method
        that the door does not answer at a path of its own is one of them.
        """
        there = False
        for one in self.routes:
            found = one.pattern.match(path)
            if found is None:
                continue
            if one.route.method == method or (one.route.method == "GET" and method == "HEAD"):
                if one.route.handler is elsewhere:
                    there = False
                    break
                params = found.groupdict()
                return one.route, {name: unquote(params[name]) for name in params} if "%" in path else params
            there = True
        if there and not self.way.pass_through:
            return Refusal("method_not_allowed", f"This path does not take {method[:20]}."), {}
        return Refusal("not_found", "vidrelay answers nothing at this path of the provider's."), {}


def routed(way: DoorWay) -> RoutedDoor:
    """
    The door with its routes ready to be looked through.
    """
    return RoutedDoor(way, tuple(_Route(route, compile_path(route.path)[0]) for route in way.door.routes))
