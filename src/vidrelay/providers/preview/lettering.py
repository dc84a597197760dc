"""
Letters for the slate, in whatever fonts the machine has.

Pillow's own font holds Latin letters only. Others are looked for where the operating systems keep their fonts; a
character that no font holds is drawn as a box with its code point in it, as browsers do.
"""

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from PIL import ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# By file name, the one that looks best first: wide ones for Chinese, Japanese and Korean, then those for the rest.
_WIDE = (
    "NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "NotoSansSC-Regular.otf", "NotoSansSC-Regular.ttf",
    "NotoSansSC-VF.ttf", "SourceHanSansSC-Regular.otf", "SourceHanSansCN-Regular.otf", "PingFang.ttc",
    "Hiragino Sans GB.ttc", "STHeiti Medium.ttc", "STHeiti Light.ttc", "msyh.ttc", "simhei.ttf", "simsun.ttc",
    "wqy-microhei.ttc", "wqy-zenhei.ttc", "DroidSansFallbackFull.ttf", "DroidSansFallback.ttf", "uming.ttc", "ukai.ttc",
    "Arial Unicode.ttf", "arialuni.ttf", "unifont.ttf", "unifont.otf",
)  # fmt: skip
_OTHERS = (
    "NotoSans-Regular.ttf", "DejaVuSans.ttf", "LiberationSans-Regular.ttf", "segoeui.ttf", "arial.ttf", "Arial.ttf",
    "Helvetica.ttc", "FreeSans.ttf", "seguisym.ttf", "Symbola.ttf",
)  # fmt: skip
_NO_LETTER = "\U0010ffff"
_MAX_FOLDERS = 4000
_CLOSING = " ,.;:!?)]}，。、；：！？）」』】》〉”’…"


class Lettering:
    """
    One size of letters, drawn character by character from the first font that holds each.
    """

    def __init__(self, size: int, *, folders: tuple[Path, ...] | None = None) -> None:
        """
        `size` is the letters' height in pixels; `folders` where to look for fonts, None for the system's own.
        """
        self.size = size
        self._folders = system_folders() if folders is None else folders
        self._own = ImageFont.load_default(size)
        self._chosen: dict[str, Font | None] = {}

    def width(self, text: str) -> float:
        """
        How wide a line is, in pixels.
        """
        return sum(self._advance(letter) for letter in text)

    def missing(self, text: str) -> int:
        """
        How many of the characters no font holds.
        """
        return sum(self._font(letter) is None for letter in text)

    def wrap(self, text: str, room: float, lines: int) -> list[str]:
        """
        Break a text into at most so many lines of that width; what does not fit ends in an ellipsis.

        Lines break at spaces, and beside any Chinese, Japanese or Korean character.
        """
        done: list[str] = []
        line = ""
        # No letter is narrower than a tenth of its height: what cannot be shown is not measured.
        most = int(room * (lines + 1) / self.size * 10) + 1
        for piece in _pieces(" ".join(text[:most].split())):
            if self.width((line + piece).rstrip()) <= room or not line.strip():
                line += piece
                while self.width(line) > room:
                    cut = self._fitting(line, room)
                    done.append(line[:cut])
                    line = line[cut:]
            else:
                done.append(line.rstrip())
                line = piece.lstrip()
        done.append(line.rstrip())
        done = [entry for entry in done if entry]
        if len(done) <= lines:
            return done
        last = done[lines - 1] + "…"
        while self.width(last) > room and len(last) > 2:
            last = last[:-2].rstrip() + "…"
        return [*done[: lines - 1], last]

    def draw(self, draw: ImageDraw.ImageDraw, spot: tuple[float, float], text: str, fill: tuple[int, int, int]) -> None:
        """
        Draw one line; `spot` is its left end on the baseline.
        """
        x, base = spot
        for run, font in self._runs(text):
            if font is None:
                for letter in run:
                    self._box(draw, x, base, letter, fill)
                    x += self._advance(letter)
            else:
                draw.text((x, base), run, fill=fill, font=font, anchor="ls")
                x += sum(self._advance(letter) for letter in run)

    def _runs(self, text: str) -> Iterator[tuple[str, Font | None]]:
        run = ""
        for letter in text:
            if run and self._font(letter) is not self._font(run[-1]):
                yield run, self._font(run[-1])
                run = ""
            run += letter
        if run:
            yield run, self._font(run[-1])

    def _fitting(self, line: str, room: float) -> int:
        cut, wide = 0, 0.0
        while cut < len(line) and wide <= room:
            wide += self._advance(line[cut])
            cut += 1
        return max(1, cut - 1)

    def _advance(self, letter: str) -> float:
        font = self._font(letter)
        return self.size * 1.04 if font is None else font.getlength(letter)

    def _font(self, letter: str) -> Font | None:
        if letter not in self._chosen:
            self._chosen[letter] = next((font for font in self._candidates() if _holds(font, letter)), None)
        return self._chosen[letter]

    def _candidates(self) -> Iterator[Font]:
        yield self._own
        for path in _font_files(self._folders):
            font = _opened(path, self.size)
            if font is not None:
                yield font

    def _box(self, draw: ImageDraw.ImageDraw, x: float, base: float, letter: str, fill: tuple[int, int, int]) -> None:
        """
        A box with the character's code point in two rows of hexadecimal digits.
        """
        size = self.size
        left, top = x + size * 0.06, base - size * 0.82
        draw.rounded_rectangle((left, top, left + size * 0.9, base + size * 0.1), radius=size * 0.12, outline=fill)
        if size < 12:
            return
        digits = f"{ord(letter):04X}"
        half = (len(digits) + 1) // 2
        small = ImageFont.load_default(size * 0.38)
        for row, part in enumerate((digits[:half], digits[half:])):
            draw.text((left + size * 0.45, top + size * (0.27 + 0.4 * row)), part, fill=fill, font=small, anchor="mm")


def system_folders() -> tuple[Path, ...]:
    """
    Where this operating system keeps fonts, the user's own included.
    """
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        places = [Path(os.environ.get("WINDIR", "C:/Windows"), "Fonts")]
        return (*places, Path(local, "Microsoft/Windows/Fonts")) if local else tuple(places)
    if sys.platform == "darwin":
        return Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    return Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), data / "fonts", home / ".fonts"


@lru_cache(maxsize=8)
def _font_files(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """
    The known fonts that are there, in our order of liking.
    """
    wanted = (*_OTHERS[:3], *_WIDE, *_OTHERS[3:])
    found: dict[str, Path] = {}
    count = 0
    for folder in folders:
        for place, _, names in os.walk(folder):
            count += 1
            for name in sorted(names):
                if name in wanted:
                    found.setdefault(name, Path(place, name))
            if count > _MAX_FOLDERS:
                break
    return tuple(found[name] for name in wanted if name in found)


@lru_cache(maxsize=64)
def _opened(path: Path, size: int) -> Font | None:
    try:
        return ImageFont.truetype(path, size)
    except OSError:
        return None


def _holds(font: Font, letter: str) -> bool:
    """
    Whether the font has a shape of its own for a character, rather than the one it shows for any it does not know.
    """
    if letter.isspace():
        return True
    shape, nothing = font.getmask(letter), font.getmask(_NO_LETTER)
    return shape.size != nothing.size or bytes(shape) != bytes(nothing)


def _pieces(text: str) -> Iterator[str]:
    """
    The text in parts between which a line may break; no part begins with closing punctuation.
    """
    piece = ""
    for letter in text:
        breaks = piece[-1:] == " " or (piece and (_is_wide(letter) or _is_wide(piece[-1])))
        if breaks and letter not in _CLOSING:
            yield piece
            piece = ""
        piece += letter
    if piece:
        yield piece


def _is_wide(letter: str) -> bool:
    return "\u2e80" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af" or "\U00020000" <= letter <= "\U0003ffff"
