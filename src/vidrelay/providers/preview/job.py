"""
One rendering to do, as the studio writes it and the renderer reads it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidrelay.providers.preview import words


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderJob:
    """
    Everything that decides what the clip looks like; the same job gives the same bytes.

    `width` and `height` are even pixels, `seconds` the clip's length, `references` picture files in order.
    `aspect_ratio` and `resolution` are printed on the slate as the app wrote them.
    """

    prompt: str
    seed: int = 0
    width: int = 1280
    height: int = 720
    fps: int = words.DEFAULT_FPS
    seconds: float = words.DEFAULT_SECONDS
    aspect_ratio: str = words.DEFAULT_ASPECT
    resolution: str = words.DEFAULT_RESOLUTION
    style: str = ""
    negative: str = ""
    references: tuple[Path, ...] = ()

    @property
    def frames(self) -> int:
        """
        How many pictures the clip has, at least one.
        """
        return max(1, round(self.seconds * self.fps))

    def to_json(self) -> str:
        """
        The job in one line.
        """
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({**fields, "references": [str(path) for path in self.references]})

    @classmethod
    def from_json(cls, text: str) -> "RenderJob":
        """
        Read what `to_json` wrote.

        Raises:
            ValueError: It is something else.
        """
        fields: dict[str, Any] = json.loads(text)
        fields["references"] = tuple(Path(path) for path in fields.get("references", ()))
        try:
            return cls(**fields)
        except TypeError as exc:
            raise ValueError(f"not a render job: {exc}") from exc
