"""
Says a uniform request in the built-in renderer's words, and reads those words as a rendering to do.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from vidrelay.core.adapter import Prepared, asset_parameter
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, JsonObject, Reference, Request
from vidrelay.providers.preview import words
from vidrelay.providers.preview.job import RenderJob

_MAX_SEED = 2**63 - 1


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request in the renderer's words, every default but the seed filled in.

    Raises:
        InvalidRequest: It cannot do that; names the field and what it accepts.
    """
    if request.model_version not in (None, words.MODEL):
        raise InvalidRequest(f"modelVersion must be {words.MODEL} here.", field="modelVersion")
    aspect_ratio, resolution = _shape(request)
    seconds = _seconds(request.duration)
    parameters: dict[str, Any] = {
        "model": words.MODEL,
        "prompt": request.prompt,
        "aspect_ratio": aspect_ratio,
        "resolution": resolution,
        "duration": seconds,
        "fps": _fps(request.extra),
    }
    if request.seed is not None:
        if not -_MAX_SEED <= request.seed <= _MAX_SEED:
            raise InvalidRequest(f"seed must be from -{_MAX_SEED} to {_MAX_SEED}.", field="seed")
        parameters["seed"] = request.seed
    if request.negative_prompt:
        parameters["negative_prompt"] = request.negative_prompt
    if request.style_preset:
        parameters["style"] = request.style_preset
    if request.references:
        parameters["references"] = _references(request.references, assets)
    return Prepared(model=words.MODEL, parameters=parameters, seconds=float(seconds))


def read_job(parameters: JsonObject, asset_path: Callable[[str], Path]) -> RenderJob:
    """
    The rendering that these words ask for; `asset_path` says where a picture lies.

    Raises:
        ValueError: They are none of the renderer's.
        UnknownAsset: A picture is not there.
    """
    try:
        size = words.frame_size(parameters["aspect_ratio"], parameters["resolution"])
        if size is None:
            raise ValueError("the aspect ratio and the resolution make no picture")
        return RenderJob(
            prompt=parameters["prompt"],
            seed=parameters.get("seed", 0),
            width=size[0],
            height=size[1],
            fps=parameters["fps"],
            seconds=parameters["duration"],
            aspect_ratio=parameters["aspect_ratio"],
            resolution=parameters["resolution"],
            style=parameters.get("style", ""),
            negative=parameters.get("negative_prompt", ""),
            references=tuple(asset_path(picture["$asset"]) for picture in parameters.get("references", ())),
        )
    except (KeyError, TypeError) as exc:
        raise ValueError(f"not a rendering: {exc}") from exc


def _shape(request: Request) -> tuple[str, str]:
    """
    The aspect ratio and the resolution, which agree.
    """
    resolution = (request.resolution or words.DEFAULT_RESOLUTION).strip().lower().replace("×", "x")
    exact, lines = words.pixels_of(resolution), words.lines_of(resolution)
    if exact is None and lines is None:
        raise InvalidRequest(
            "resolution must be from 144p to 1080p, or an exact even size such as 1280x720, "
            f"not {request.resolution!r}.",
            field="resolution",
        )
    ratio = (request.aspect_ratio or "").strip()
    shape = words.shape_of(ratio) if ratio else None
    if ratio and shape is None:
        raise InvalidRequest(
            f'aspectRatio must be like "16:9", from 1:3 to 3:1, not {request.aspect_ratio!r}.', field="aspectRatio"
        )
    if exact is None:
        return ratio or words.DEFAULT_ASPECT, resolution
    own = Fraction(*exact)
    if shape is not None and abs(own / shape - 1) > Fraction(2, 100):
        raise InvalidRequest(f"aspectRatio {ratio} does not fit {resolution}.", field="aspectRatio")
    return ratio or f"{own.numerator}:{own.denominator}", resolution


def _seconds(duration: float | None) -> int | float:
    seconds = words.DEFAULT_SECONDS if duration is None else duration
    fits = (
        not isinstance(seconds, bool) and math.isfinite(seconds) and words.MIN_SECONDS <= seconds <= words.MAX_SECONDS
    )
    if not fits:
        raise InvalidRequest(
            f"duration must be from {words.MIN_SECONDS} to {words.MAX_SECONDS} seconds.", field="duration"
        )
    return int(seconds) if float(seconds).is_integer() else seconds


def _fps(extra: JsonObject) -> int:
    for name in extra:
        if name != "fps":
            raise InvalidRequest(f"The preview provider has no parameter {name!r}, only fps.", field=f"extra.{name}")
    fps = extra.get("fps", words.DEFAULT_FPS)
    if isinstance(fps, bool) or fps not in words.FPS_CHOICES:
        raise InvalidRequest(f"extra.fps must be one of {', '.join(map(str, words.FPS_CHOICES))}.", field="extra.fps")
    return int(fps)


def _references(references: tuple[Reference, ...], assets: Mapping[str, Asset]) -> list[dict[str, str]]:
    if len(references) > words.MAX_REFERENCES:
        raise InvalidRequest(f"At most {words.MAX_REFERENCES} references are shown.", field="references")
    pictures = []
    for number, reference in enumerate(references):
        if reference.asset is None:
            raise InvalidRequest(
                "The preview provider works without network: a reference must be a file or an uploaded picture, "
                "not an address.",
                field=f"references[{number}].url",
            )
        pictures.append(asset_parameter(assets[reference.asset]))
    return pictures
