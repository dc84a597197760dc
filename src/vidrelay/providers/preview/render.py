"""
Draws a job's clip: an animatic of the prompt, or a film of its reference images, on a slate that says what it is.

`python -m vidrelay.providers.preview.render` reads one job (JSON, one line) from standard input, writes the file that
its argument names, and tells its progress as JSON lines on standard output. It ends early when its input ends.
"""

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image, ImageDraw

from vidrelay.providers.preview.chance import Dice
from vidrelay.providers.preview.drift import air
from vidrelay.providers.preview.figures import cast
from vidrelay.providers.preview.film import write_film
from vidrelay.providers.preview.job import RenderJob
from vidrelay.providers.preview.layers import Drawn
from vidrelay.providers.preview.palette import Palette, gradient, paint
from vidrelay.providers.preview.reel import Reel
from vidrelay.providers.preview.scene import Scene, read_scene
from vidrelay.providers.preview.scenery import Stage, clouds, land, sky
from vidrelay.providers.preview.slate import Slate

_ZOOM = 0.12


def render(job: RenderJob, out: Path, progress: Callable[[float], None] | None = None) -> None:
    """
    Write the job's MP4 to `out`; `progress` is told the share that is done, 0 to 1.

    The same job gives the same bytes on the same versions of Pillow and PyAV and the same fonts.

    Raises:
        OSError: A reference cannot be read as a picture, or the file cannot be written.
        NoEncoder: The installed PyAV cannot make H.264.
    """

    def on_frame(done: int) -> None:
        if progress:
            progress(done / job.frames)

    write_film(_frames(job), out, size=(job.width, job.height), fps=job.fps, on_frame=on_frame)


def small_clip(seed: int, seconds: float = 1, size: tuple[int, int] = (160, 90)) -> bytes:
    """
    A tiny real MP4 (12 frames a second), decided by the seed: a disc that crosses a gradient.
    """
    fps, (width, height) = 12, size
    dice = Dice("small", seed)
    colours = [(dice.whole(20, 235), dice.whole(20, 235), dice.whole(20, 235)) for _ in range(3)]
    paper, radius = gradient(size, (colours[0], colours[1])), height / dice.whole(4, 8)
    start, count = dice.between(0.2, 0.8), max(1, round(seconds * fps))

    def frames() -> Iterator[Image.Image]:
        for index in range(count):
            frame = paper.copy()
            x, y = width * index / count, height * start
            ImageDraw.Draw(frame).ellipse((x - radius, y - radius, x + radius, y + radius), fill=colours[2])
            yield frame

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "clip.mp4")
        write_film(frames(), path, size=size, fps=fps, preset="ultrafast")
        return path.read_bytes()


def _frames(job: RenderJob) -> Iterator[Image.Image]:
    scene = read_scene(job.prompt, negative=job.negative, seed=job.seed)
    palette = paint(scene, seed=job.seed, prompt=job.prompt, style=job.style)
    count = len(job.references)
    facts = f"{count} reference{'s' if count > 1 else ''}" if count else scene.place
    slate = Slate(job, palette.accent, facts=facts)
    picture = _film(job, slate.layout.picture) if count else _animatic(job, scene, palette, slate.layout.picture)
    for index in range(job.frames):
        yield slate.frame(picture(index / job.fps), index)


def _film(job: RenderJob, size: tuple[int, int]) -> Callable[[float], Image.Image]:
    return Reel(job.references, size, job.frames / job.fps, seed=job.seed).picture


def _animatic(job: RenderJob, scene: Scene, palette: Palette, size: tuple[int, int]) -> Callable[[float], Image.Image]:
    width, height = size
    pan = {"left": -0.07, "right": 0.07}.get(scene.camera, 0.025) * width
    stage = Stage(
        width=width,
        height=height,
        pan=pan,
        scene=scene,
        palette=palette,
        seed=Dice(job.prompt, job.seed).whole(0, 2**53),
    )
    background = sky(stage)
    back, front = land(stage)
    behind, before = cast(stage, job.seconds)
    pieces: list[Drawn] = [*clouds(stage), *back, *behind, *front, *before, *air(stage)]

    def picture(seconds: float) -> Image.Image:
        canvas = background.copy()
        for piece in pieces:
            piece.draw(canvas, seconds)
        return _zoomed(canvas, scene.camera, seconds / max(job.seconds, 0.1))

    return picture


def _zoomed(canvas: Image.Image, camera: str, share: float) -> Image.Image:
    if camera not in ("in", "out"):
        return canvas
    eased = share * share * (3 - 2 * share)
    cut = _ZOOM * (eased if camera == "in" else 1 - eased) / 2
    width, height = canvas.size
    box = (width * cut, height * cut, width * (1 - cut), height * (1 - cut))
    return canvas.resize(canvas.size, Image.Resampling.BILINEAR, box=box)


def main() -> int:
    """
    Do the one job that standard input brings; 0 when its file is whole, 1 with the reason as the last line.
    """
    job = RenderJob.from_json(sys.stdin.readline())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    told = -1

    def progress(share: float) -> None:
        nonlocal told
        if int(share * 100) > told:
            told = int(share * 100)
            _say(progress=share)

    try:
        render(job, Path(sys.argv[1]), progress)
    except Exception as exc:
        _say(error=f"{type(exc).__name__}: {exc}")
        return 1
    return 0


def _leave_with_parent() -> None:
    """
    End the process when standard input ends: nobody waits for the clip any more.
    """
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(3)


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
