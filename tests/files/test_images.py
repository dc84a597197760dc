"""
Pictures are known by what they show, not by their bytes.
"""

import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from vidrelay.files.images import TooBig, Unsupported, fit, measure

LIMITS = {"max_pixels": 40_000_000, "max_edge": 16_384}
RULE = LIMITS | {"edge": None, "max_bytes": None, "media_types": ["image/jpeg", "image/png", "image/webp"]}
KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}
ORIENTATION, MAKE, DATE = 0x0112, 0x010F, 0x0132


def scene(size=(300, 200)):
    """A picture whose corners differ, so that turning it shows."""
    image = Image.linear_gradient("L").resize(size).convert("RGB")
    image.paste((200, 30, 30), (0, 0, size[0] // 3, size[1] // 4))
    image.paste((20, 60, 220), (size[0] // 2, size[1] // 2, size[0], size[1]))
    return image


def exif(**tags):
    data = Image.Exif()
    for tag, value in ((ORIENTATION, tags.get("orientation")), (MAKE, tags.get("make")), (DATE, tags.get("date"))):
        if value is not None:
            data[tag] = value
    return data


def save(image, path: Path, **how):
    image.save(path, **how)
    return path


def measured(path, **limits):
    return measure(path, KINDS[path.suffix], **(LIMITS | limits))


def png(width, height, *, data=b""):
    """A PNG that claims that size, with that image data or hardly any."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pieces = (chunk(b"IHDR", header), chunk(b"IDAT", data or zlib.compress(b"\0" * 100)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


@pytest.mark.parametrize("kind", [".png", ".jpg", ".webp"])
def test_copies_that_differ_in_metadata_only_have_the_same_pixels(tmp_path, kind):
    """
    EXIF tags such as camera and date do not change a picture's identity.
    """
    bare = save(scene(), tmp_path / f"bare{kind}")
    told = save(scene(), tmp_path / f"told{kind}", exif=exif(make="Camera", date="2026:11:30 12:00:00"))

    assert bare.read_bytes() != told.read_bytes()
    assert measured(bare) == measured(told)


def test_the_same_picture_as_png_and_lossless_webp_has_the_same_pixels(tmp_path):
    """
    Two lossless files of one picture in two formats have one identity.
    """
    one, other = save(scene(), tmp_path / "a.png"), save(scene(), tmp_path / "b.webp", lossless=True)

    assert measured(one) == measured(other)


def test_an_alpha_channel_that_shows_nothing_through_does_not_count(tmp_path):
    """
    A fully opaque picture is the same with and without its alpha channel.
    """
    one, other = save(scene(), tmp_path / "a.png"), save(scene().convert("RGBA"), tmp_path / "b.png")

    assert measured(one) == measured(other)


def test_another_picture_has_other_pixels(tmp_path):
    """
    A single pixel of another colour makes another identity.
    """
    changed = scene()
    changed.putpixel((5, 5), (1, 2, 3))

    assert measured(save(scene(), tmp_path / "a.png")) != measured(save(changed, tmp_path / "b.png"))


def test_what_shows_through_counts(tmp_path):
    """
    A picture that is partly transparent is not the same as the opaque one.
    """
    clear = scene().convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))

    assert measured(save(scene(), tmp_path / "a.png")) != measured(save(clear, tmp_path / "b.png"))


@pytest.mark.parametrize("turn", [1, 2, 3, 4, 5, 6, 7, 8])
def test_a_picture_stored_turned_is_the_same_picture_upright(tmp_path, turn):
    """
    Each of the eight EXIF orientations leads to the upright picture's identity and size.
    """
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = scene().transpose(undo[turn]) if turn in undo else scene()

    turned = measured(save(stored, tmp_path / "turned.png", exif=exif(orientation=turn)))

    assert (turned["width"], turned["height"]) == (300, 200)
    assert turned == measured(save(scene(), tmp_path / "upright.png"))


def test_the_identity_names_the_normaliser_and_the_upright_size(tmp_path):
    """
    The identity begins with the normaliser's version and the size after turning.
    """
    told = measured(save(scene((30, 20)), tmp_path / "a.jpg", exif=exif(orientation=6)))

    assert told["pixels"].startswith("p1:20x30:")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "I;16", "CMYK"])
def test_every_kind_of_colour_can_be_read(tmp_path, mode):
    """
    Bilevel, grey, palette, 16-bit, alpha and CMYK pictures are all measured.
    """
    image = scene().convert("I").convert("I;16") if mode == "I;16" else scene().convert(mode)
    path = save(image, tmp_path / ("a.jpg" if mode == "CMYK" else "a.png"))

    assert measured(path)["width"] == 300


def test_sixteen_bits_a_pixel_are_scaled_rather_than_cut_off(tmp_path):
    """
    A 16-bit grey and its 8-bit equal have one identity.
    """
    deep = Image.new("I;16", (8, 8), 128 * 257)

    assert measured(save(deep, tmp_path / "a.png")) == measured(save(Image.new("L", (8, 8), 128), tmp_path / "b.png"))


def test_of_a_moving_picture_the_first_frame_counts(tmp_path):
    """
    An animated WebP is the same picture as its first frame.
    """
    frames = [scene(), scene().transpose(Image.Transpose.ROTATE_180)]
    path = save(frames[0], tmp_path / "a.webp", save_all=True, append_images=frames[1:], lossless=True)

    assert measured(path) == measured(save(scene(), tmp_path / "b.png"))


@pytest.mark.parametrize("size", [(30_000, 30_000), (16_385, 10), (7_000, 6_000)])
def test_a_header_that_claims_too_much_is_refused_before_anything_is_decoded(tmp_path, size):
    """
    Too many pixels or too long an edge in the header is too big, whatever data follows.
    """
    (path := tmp_path / "bomb.png").write_bytes(png(*size))

    with pytest.raises(TooBig):
        measured(path)


@pytest.mark.parametrize("kind", [".png", ".jpg", ".webp"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_picture_that_breaks_off_is_refused(tmp_path, kind, share):
    """
    A file of each kind that is cut at its start, middle or near its end is unsupported.
    """
    whole = save(scene(), tmp_path / f"a{kind}").read_bytes()
    (path := tmp_path / f"b{kind}").write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(Unsupported):
        measured(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"<svg/>",
        b"SIMPLE  =                    T",
        b"<!doctype html>",
        b"GIF89a\1\0\1\0",
    ],
)
def test_what_is_no_such_picture_is_refused(tmp_path, content):
    """
    Empty, foreign and half-begun content is unsupported.
    """
    (path := tmp_path / "a.png").write_bytes(content)

    with pytest.raises(Unsupported):
        measured(path)


def test_one_kind_under_anothers_name_is_refused(tmp_path):
    """
    A bitmap that is said to be a PNG is unsupported.
    """
    path = save(scene(), tmp_path / "a.bmp")

    with pytest.raises(Unsupported):
        measure(path, "image/png", **LIMITS)


def test_a_copy_is_upright_and_as_large_as_allowed(tmp_path):
    """
    A copy is turned, scaled to the longest edge allowed, and has no EXIF left.
    """
    path = save(scene(), tmp_path / "a.jpg", exif=exif(orientation=6))

    told = fit(path, "image/jpeg", tmp_path / "out", RULE | {"edge": 150})

    assert told == {"width": 100, "height": 150, "media_type": "image/jpeg"}
    with Image.open(tmp_path / "out") as copy:
        assert (copy.format, copy.size) == ("JPEG", (100, 150))
        assert not copy.getexif()


def test_a_copy_of_what_shows_through_is_a_png_where_that_is_allowed(tmp_path):
    """
    A transparent picture is copied as PNG, or as JPEG where that is all a rule allows.
    """
    path = save(scene().convert("RGBA"), tmp_path / "a.png")
    clear = scene().convert("RGBA")
    clear.putalpha(100)
    save(clear, path)

    allowed = fit(path, "image/png", tmp_path / "one", RULE | {"edge": 64})
    forbidden = fit(path, "image/png", tmp_path / "two", RULE | {"media_types": ["image/jpeg"]})

    assert (allowed["media_type"], forbidden["media_type"]) == ("image/png", "image/jpeg")


def test_a_copy_shrinks_until_it_is_short_enough(tmp_path):
    """
    A picture that compresses badly is made smaller until its file fits.
    """
    path = save(Image.effect_noise((600, 600), 90), tmp_path / "a.png")

    told = fit(path, "image/png", tmp_path / "out", RULE | {"max_bytes": 20_000})

    assert (tmp_path / "out").stat().st_size <= 20_000
    assert told["width"] < 600


def test_a_rule_that_nothing_can_meet_is_said(tmp_path):
    """
    A limit of bytes out of reach is too big, and a type we cannot write is unsupported.
    """
    path = save(Image.effect_noise((600, 600), 90), tmp_path / "a.png")

    with pytest.raises(TooBig):
        fit(path, "image/png", tmp_path / "out", RULE | {"max_bytes": 10})
    with pytest.raises(Unsupported):
        fit(path, "image/png", tmp_path / "out", RULE | {"media_types": ["image/gif"]})
