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


def checked(graph: Any, *, field: str = FIELD) -> dict[str, Any]:
    """
    The graph, if it is one in API format; `field` is where it stood.

    Raises:
        InvalidRequest: It is none; says what is wrong, and with which node.
    """
    if graph is None:
        raise InvalidRequest(
            f"ComfyUI runs a whole graph: {field} must hold one, in API format.",
            field=field,
            hint="In ComfyUI: Workflow, Export (API). docs/howto/use-comfyui.md shows where the prompt goes.",
        )
    if not isinstance(graph, dict) or not graph or len(graph) > MAX_NODES:
        raise InvalidRequest(f"{field} must be a JSON object of nodes by their ids.", field=field)
    if isinstance(graph.get("nodes"), list):
        raise InvalidRequest(
            f"{field} is a saved workflow, not a graph in API format.",
            field=field,
            hint="In ComfyUI: Workflow, Export (API).",
        )
    for name, node in graph.items():
        if not isinstance(node, dict) or not isinstance(node.get("class_type"), str):
            raise InvalidRequest(f"Node {name} of the graph has no class_type.", field=f"{field}.{name}")
        if not isinstance(node.get("inputs", {}), dict):
            raise InvalidRequest(f"The inputs of node {name} must be an object.", field=f"{field}.{name}.inputs")
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


def with_media(graph: Mapping[str, Any], pictures: Mapping[str, Any]) -> dict[str, Any]:
    """
    The graph with each picture where its mark is a whole value.
    """

    def put(value: Any) -> Any:
        whole = _MARK.fullmatch(value) if isinstance(value, str) else None
        return value if whole is None else pictures.get(whole[1], value)

    return _replaced(graph, put)


def filled(
    graph: Mapping[str, Any],
    value_of: Callable[[Mark], Any] | None,
    *,
    name: str,
    file_of: Callable[[Mapping[str, Any]], str],
) -> dict[str, Any]:
    """
    The graph as it is sent: each mark with its value (`value_of` None: nothing in it is a mark), each picture as the
    name of its file, and each file's name made this job's own, so that the same graph makes a new file and never points
    at an earlier one.
    """

    def put(value: Any) -> Any:
        if isinstance(value, Mapping):
            return file_of(value)
        return value if value_of is None else _put(value, value_of)

    return {
        one: {**node, "inputs": {at: _named(at, given, name) for at, given in node["inputs"].items()}}
        for one, node in _replaced(graph, put).items()
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


def _replaced(graph: Mapping[str, Any], put: Callable[[Any], Any]) -> dict[str, Any]:
    """
    The graph with what `put` makes of each picture and each plain value in its inputs.
    """

    def inner(value: Any) -> Any:
        if isinstance(value, Mapping) and "$asset" not in value:
            return {name: inner(one) for name, one in value.items()}
        return [inner(one) for one in value] if isinstance(value, list | tuple) else put(value)

    return {one: {**node, "inputs": inner(node.get("inputs", {}))} for one, node in graph.items()}


def _put(value: Any, value_of: Callable[[Mark], Any]) -> Any:
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> Any:
        return value_of(Mark(name=match[1], rate=float(match[2]) if match[2] else None, default=match[3]))

    whole = _MARK.fullmatch(value)
    return found(whole) if whole else _MARK.sub(lambda match: str(found(match)), value)


def _named(at: str, value: Any, name: str) -> Any:
    return f"{value}-{name}" if at == _PREFIX and isinstance(value, str) else value
