"""
The renderer makes real, repeatable clips that show what the prompt says.
"""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import pytest
from PIL import Image

from vidrelay.providers.preview.job import RenderJob
from vidrelay.providers.preview.lettering import Lettering
from vidrelay.providers.preview.render import render, small_clip
from vidrelay.providers.preview.scene import read_scene
from vidrelay.providers.preview.slate import lay_out

JOB = RenderJob(prompt="a boat on the sea at dusk", seed=7, width=256, height=144, fps=12, seconds=1)


def clip_of(job: RenderJob, folder: Path) -> bytes:
    out = folder / "clip.mp4"
    render(job, out)
    return out.read_bytes()


def frames_of(clip: bytes) -> list[Image.Image]:
    with av.open(io.BytesIO(clip)) as film:
        return [frame.to_image() for frame in film.decode(video=0)]


def middle_of(frame: Image.Image) -> Image.Image:
    layout = lay_out(*frame.size)
    return frame.crop((0, layout.top + 2, frame.width, layout.bottom - 4))


def difference(one: Image.Image, other: Image.Image) -> float:
    """The mean distance of two pictures' grey values."""
    pairs = zip(one.convert("L").tobytes(), other.convert("L").tobytes(), strict=True)
    return sum(abs(a - b) for a, b in pairs) / (one.width * one.height)


def test_a_clip_is_h264_of_the_size_length_and_rate_that_was_asked_for(tmp_path):
    """
    Codec, pixel format, size, rate, length and number of frames are as the job says.
    """
    clip = clip_of(replace(JOB, width=144, height=256, seconds=1.5), tmp_path)

    with av.open(io.BytesIO(clip)) as film:
        stream = film.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height) == (144, 256)
        assert stream.average_rate == 12
        assert float(stream.duration * stream.time_base) == pytest.approx(1.5)
        assert len(list(film.decode(video=0))) == 18


def test_the_index_comes_before_the_pictures_so_that_players_can_start_early(tmp_path):
    """
    The file's index stands before its media data.
    """
    clip = clip_of(JOB, tmp_path)

    assert clip.index(b"moov") < clip.index(b"mdat")


def test_the_same_job_gives_the_same_bytes(tmp_path):
    """
    Rendering one job twice gives two files that are equal byte by byte.
    """
    assert clip_of(JOB, tmp_path) == clip_of(JOB, tmp_path)


@pytest.mark.parametrize("change", [{"seed": 8}, {"prompt": "a boat on the sea at night"}, {"negative": "boat"}])
def test_another_seed_or_prompt_gives_another_clip(tmp_path, change):
    """
    Another seed, prompt or negative prompt each changes the clip.
    """
    assert clip_of(JOB, tmp_path) != clip_of(replace(JOB, **change), tmp_path)


def test_the_picture_moves(tmp_path):
    """
    The last frame of a clip differs visibly from its first.
    """
    frames = frames_of(clip_of(JOB, tmp_path))

    assert difference(middle_of(frames[0]), middle_of(frames[-1])) > 0.5


@pytest.mark.parametrize(
    "prompt",
    [
        "neon city in the rain, a taxi",
        "a deer in a snowy forest at dawn, zoom",
        "热气球飞过清晨的山谷",
        "falling leaves on a meadow, a cottage",
        "rocket and planet in space",
        "camel in the desert fog, drone shot",
        "fireflies over a lake at night, a girl",
        "",
        "\u202e\x00 odd \ud800 letters 🦊",
        "word " * 400,
        "x" * 32_768,
        "海" * 32_768,
    ],
)
def test_any_prompt_can_be_drawn(tmp_path, prompt):
    """
    Empty, endless, foreign and malformed prompts all give a clip with a picture in it.
    """
    frames = frames_of(clip_of(replace(JOB, prompt=prompt, seconds=0.25), tmp_path))

    assert len(frames) == 3
    assert len(middle_of(frames[0]).getcolors(100_000)) > 50


def test_references_are_what_is_shown(tmp_path):
    """
    A clip of two reference pictures begins with the first and ends with the second.
    """
    red, blue = tmp_path / "red.png", tmp_path / "blue.jpg"
    Image.new("RGB", (400, 90), (200, 20, 20)).save(red)
    Image.new("RGB", (90, 400), (20, 20, 200)).save(blue)

    frames = frames_of(clip_of(replace(JOB, references=(red, blue)), tmp_path))

    first, last = (middle_of(frame).resize((1, 1)).getpixel((0, 0)) for frame in (frames[0], frames[-1]))
    assert first == pytest.approx((200, 20, 20), abs=12)
    assert last == pytest.approx((20, 20, 200), abs=12)


def test_a_small_clip_is_real_and_decided_by_its_seed():
    """
    The small clip can be decoded, is the same for one seed and another for the next.
    """
    clip = small_clip(3)

    assert [frame.size for frame in frames_of(clip)] == [(160, 90)] * 12
    assert clip == small_clip(3)
    assert clip != small_clip(4)


@pytest.mark.parametrize(
    ("prompt", "place", "hour", "weather"),
    [
        ("A storm over the harbour at midnight", "sea", "night", "rain"),
        ("雪夜的森林", "forest", "night", "snow"),
        ("远处是雪山，清晨", "mountains", "dawn", "clear"),
        ("sunset over Shanghai's skyline, a city of towers", "city", "dusk", "clear"),
    ],
)
def test_a_scene_is_read_from_english_and_chinese_words(prompt, place, hour, weather):
    """
    Place, hour and weather are found in prompts of either language.
    """
    scene = read_scene(prompt)

    assert (scene.place, scene.hour, scene.weather) == (place, hour, weather)


def test_what_the_negative_prompt_names_is_left_out():
    """
    Subjects and weather that the negative prompt names are not drawn.
    """
    scene = read_scene("a boat and birds on a rainy sea", negative="no birds, no rain")

    assert scene.subjects == ("boat",)
    assert scene.weather == "clear"


def test_a_character_without_a_font_is_counted_and_still_takes_its_room(tmp_path):
    """
    A character that no font has is counted as missing and given a box's width.
    """
    letters = Lettering(20, folders=(tmp_path,))

    assert letters.missing("sea 海") == 1
    assert letters.width("海") > 15


def test_lines_break_between_chinese_characters_but_not_before_a_full_stop(tmp_path):
    """
    A full stop that does not fit takes the character before it to the next line.
    """
    letters = Lettering(20, folders=(tmp_path,))

    lines = letters.wrap("海" * 5 + "。" + "海" * 3, letters.width("海") * 5 + 1, 4)

    assert lines == ["海" * 4, "海。" + "海" * 3]


def test_a_caption_that_is_too_long_ends_in_an_ellipsis(tmp_path):
    """
    The last line that is allowed ends in an ellipsis and still fits its width.
    """
    letters = Lettering(20, folders=(tmp_path,))

    room = letters.width("one two thr")
    lines = letters.wrap("one two three four five six seven", room, 2)

    assert lines[0] == "one two"
    assert lines[1].endswith("…")
    assert letters.width(lines[1]) <= room


def start_child(job: RenderJob, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "vidrelay.providers.preview.render", str(out)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdin.write(job.to_json() + "\n")
    child.stdin.flush()
    return child


@pytest.mark.process
def test_the_child_tells_its_progress(tmp_path):
    """
    The renderer's process prints a rising progress that ends at 1, and exits with 0.
    """
    with start_child(JOB, tmp_path / "clip.mp4") as child:
        told = [json.loads(line)["progress"] for line in child.stdout]

    assert told == sorted(told)
    assert told[-1] == 1.0
    assert child.returncode == 0


@pytest.mark.process
def test_the_child_says_what_went_wrong(tmp_path):
    """
    A reference that is missing is named in the last line printed, and the process exits with 1.
    """
    with start_child(replace(JOB, references=(tmp_path / "missing.png",)), tmp_path / "clip.mp4") as child:
        last = child.stdout.read().splitlines()[-1]

    assert "missing.png" in json.loads(last)["error"]
    assert child.returncode == 1


@pytest.mark.process
def test_the_child_ends_when_nobody_holds_its_input_any_more(tmp_path):
    """
    A renderer whose input is closed stops in the middle of its work and exits with 3.
    """
    with start_child(replace(JOB, width=1280, height=720, seconds=60), tmp_path / "clip.mp4") as child:
        child.stdin.close()
        status = child.wait(timeout=30)

    assert status == 3
