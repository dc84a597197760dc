"""
The marks that a graph may hold, and what is put in their place.

A ComfyUI request is a whole graph in API format, and only its author knows where the prompt goes. So the author marks
the place: an input whose value is `"{prompt}"` becomes the prompt. A mark that is a whole value becomes the value
itself (a number stays a number); in the midst of a text it becomes text. `{seed=7}` is a mark with a default, and
`{frames@16}` one with the frames per second that the clip's length is counted in.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vidrelay.core.errors import InvalidRequest

FIELD = "extra.graph"
TEXTS = ("prompt", "negative", "model")
NUMBERS = ("seed", "width", "height", "seconds", "frames")
FRAMES = ("first_frame", "last_frame")
PICTURE = "picture"
MAX_NODES = 5000

_MARK = re.compile(
    rf"\{{({'|'.join((*TEXTS, *NUMBERS, *FRAMES))}|{PICTURE}[1-9][0-9]?)"
    r"(?:@([0-9]{1,4}(?:\.[0-9]{1,4})?))?(?:=([^{}]*))?\}"
)
_PREFIX = "filename_prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """
    One mark: what belongs there, its default as it is written, and for `frames` how many a second has.
    """

    name: str
    default: str | None = None
    rate: float | None = None

    @property
    def preset(self) -> str | float | None:
        """
        The default as a value.

        Raises:
            InvalidRequest: It is no number where one belongs.
        """
        if self.default is None or self.name not in NUMBERS:
            return self.default
        try:
            number = float(self.default)
            return int(number) if number.is_integer() else number
        except (ValueError, OverflowError) as error:
            raise InvalidRequest(f"The default of {{{self.name}}} must be a number.", field=FIELD) from error


def checked(graph: Any) -> dict[str, Any]:
    """
    The graph, if it is one in API format.

    Raises:
        InvalidRequest: It is none; says what is wrong, and with which node.
    """
    if graph is None:
        raise InvalidRequest(
            "ComfyUI runs a whole graph: extra.graph must hold one, in API format.",
            field=FIELD,
            hint="In ComfyUI: Workflow, Export (API). docs/howto/use-comfyui.md shows where the prompt goes.",
        )
    if not isinstance(graph, dict) or not graph or len(graph) > MAX_NODES:
        raise InvalidRequest("extra.graph must be a JSON object of nodes by their ids.", field=FIELD)
    if isinstance(graph.get("nodes"), list):
        raise InvalidRequest(
            "extra.graph is a saved workflow, not a graph in API format.",
            field=FIELD,
            hint="In ComfyUI: Workflow, Export (API).",
        )
    for name, node in graph.items():
        if not isinstance(node, dict) or not isinstance(node.get("class_type"), str):
            raise InvalidRequest(f"Node {name} of the graph has no class_type.", field=f"{FIELD}.{name}")
        if not isinstance(node.get("inputs", {}), dict):
            raise InvalidRequest(f"The inputs of node {name} must be an object.", field=f"{FIELD}.{name}.inputs")
    return graph


def marks(graph: Mapping[str, Any]) -> list[Mark]:
    """
    Every mark in the inputs of the graph.
    """
    return [
        Mark(name=found[1], rate=float(found[2]) if found[2] else None, default=found[3])
        for node in graph.values()
        for text in _texts(node.get("inputs", {}))
        for found in _MARK.finditer(text)
    ]


def filled(graph: Mapping[str, Any], value_of: Callable[[Mark], Any], *, name: str) -> dict[str, Any]:
    """
    The graph as it is sent: each mark with its value, and each file's name made this job's own, so that the same graph
    makes a new file and never points at an earlier one.
    """
    return {
        one: {**node, "inputs": {at: _named(at, _put(given, value_of), name) for at, given in inputs.items()}}
        for one, node in graph.items()
        for inputs in (node.get("inputs", {}),)
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _put(value: Any, value_of: Callable[[Mark], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _put(inner, value_of) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_put(inner, value_of) for inner in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> Any:
        return value_of(Mark(name=match[1], rate=float(match[2]) if match[2] else None, default=match[3]))

    whole = _MARK.fullmatch(value)
    return found(whole) if whole else _MARK.sub(lambda match: str(found(match)), value)


def _named(at: str, value: Any, name: str) -> Any:
    return f"{value}-{name}" if at == _PREFIX and isinstance(value, str) else value
