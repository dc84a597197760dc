"""
`make pictures`: the README's picture, from a real run of the demo.

Runs `scripts/demo.py`, draws what it printed as a terminal shows it, and puts frames of the MP4 that it made beside it.
Only the checkout's own path is shortened. Needs a monospaced font with bars in it (DejaVu Sans Mono, or one named as
the only argument).
"""

import subprocess
import sys
from pathlib import Path

import av
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURE = Path(__file__).with_name("demo.png")
FRAMES = 4
FRAME_WIDTH = 270
GAP = 8
MARGIN = 20
SIZE = 13
LEADING = 17
PAPER, INK, DIM, BAR = "#14161b", "#e6e6e6", "#8b93a1", "#6cc495"


def run_demo() -> list[str]:
    """
    The lines that the demo printed; the last one is the clip's path.
    """
    done = subprocess.run([sys.executable, ROOT / "scripts/demo.py"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.rstrip().splitlines()


def frames(clip: Path) -> list[Image.Image]:
    """
    So many frames of the clip, evenly spread, scaled.
    """
    with av.open(clip) as opened:
        pictures = [frame.to_image() for frame in opened.decode(video=0)]  # type: ignore[no-untyped-call]
    chosen = [pictures[round(n * (len(pictures) - 1) / (FRAMES - 1))] for n in range(FRAMES)]
    height = round(FRAME_WIDTH * chosen[0].height / chosen[0].width)
    return [picture.resize((FRAME_WIDTH, height), Image.Resampling.LANCZOS) for picture in chosen]


def shown(lines: list[str]) -> list[str]:
    """
    What the terminal shows, with the command before it and progress lines in the middle left out.
    """
    moving = [n for n, line in enumerate(lines) if "%" in line and "running" in line]
    left_out = set(moving[3:-3]) if len(moving) > 7 else set()
    kept = ["$ make demo"]
    for n, line in enumerate(lines):
        if n in left_out:
            if n == min(left_out):
                kept.append(f"          … {len(left_out)} more lines")
            continue
        kept.append(line.replace(str(ROOT) + "/", ""))
    return kept


def draw(lines: list[str], pictures: list[Image.Image], font: ImageFont.FreeTypeFont) -> Image.Image:
    """
    The terminal on the left, the frames on the right.
    """
    cell = font.getlength("m")
    text_width = round(max(map(len, lines)) * cell)
    column_height = len(pictures) * (pictures[0].height + GAP) - GAP
    width = text_width + FRAME_WIDTH + 3 * MARGIN
    height = 2 * MARGIN + max(len(lines) * LEADING, column_height)
    picture = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(picture)
    for n, line in enumerate(lines):
        colour = INK if line[:1].strip() else DIM
        for column, letter in enumerate(line):
            place = (MARGIN + column * cell, MARGIN + n * LEADING)
            pen.text(place, letter, font=font, fill=BAR if letter in "█░▏" else colour)
    top = (height - column_height) // 2
    for frame in pictures:
        picture.paste(frame, (text_width + 2 * MARGIN, top))
        top += frame.height + GAP
    return picture


def main() -> int:
    """
    Make the picture; as small as 256 colours make it.
    """
    lines = run_demo()
    font = ImageFont.truetype(sys.argv[1] if len(sys.argv) > 1 else "DejaVuSansMono.ttf", SIZE)
    picture = draw(shown(lines), frames(Path(lines[-1])), font)
    picture.quantize(256, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {picture.width}x{picture.height}, {PICTURE.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
