"""
From the words of the command line to a request, and to the right command.
"""

import json
from pathlib import Path

import pytest

from vidrelay.cli.batch import read_rows
from vidrelay.cli.main import hoisted
from vidrelay.cli.request import extra_from, number_from, reference_from, slug, target_for, value_from
from vidrelay.cli.running import ServeFlags, plain_serve
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Priority, Reference


@pytest.mark.parametrize(
    ("arguments", "first", "rest"),
    [
        (["tasks", "--state-dir", "d"], ["--state-dir", "d"], ["tasks"]),
        (["--config=c", "show", "x"], ["--config", "c"], ["show", "x"]),
        (["generate", "p", "--config", "c", "-o", "f"], ["--config", "c"], ["generate", "p", "-o", "f"]),
        (["generate", "--", "--config", "p"], [], ["generate", "--", "--config", "p"]),
        (["tasks", "--state-dir"], ["--state-dir"], ["tasks"]),
        (["generate", "--configure"], [], ["generate", "--configure"]),
        (["run", "app", "--config", "c"], [], ["run", "app", "--config", "c"]),
        (["run", "--config", "c", "app", "--config=d"], ["--config", "c"], ["run", "app", "--config=d"]),
        (["--state-dir", "run", "run", "--only", "x", "app"], ["--state-dir", "run"], ["run", "--only", "x", "app"]),
        (["run", "--only", "x", "--config=c", "--", "a"], ["--config", "c"], ["run", "--only", "x", "--", "a"]),
        (["generate", "run", "--config", "c"], ["--config", "c"], ["generate", "run"]),
    ],
)
def test_global_options_may_stand_anywhere(arguments: list[str], first: list[str], rest: list[str]) -> None:
    """
    A global option is moved before the command wherever it was written; what follows `--` is not touched, nor what
    belongs to the command that `run` runs.
    """
    assert hoisted(arguments) == (first, rest)


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (["serve"], ServeFlags()),
        (["serve", "--port", "61000", "--replace"], ServeFlags(port=61000, replace=True)),
        (["serve", "--port=61000"], ServeFlags(port=61000)),
        (["serve", "--idle-exit", "60s"], ServeFlags(idle_exit="60s")),
        (["serve", "--port", "0"], None),
        (["serve", "--port", "70000"], None),
        (["serve", "--port", "x"], None),
        (["serve", "--port"], None),
        (["serve", "--port", "--replace"], None),
        (["serve", "--replace=yes"], None),
        (["serve", "--help"], None),
        (["serve", "--host", "0.0.0.0"], None),
        (["serve", "more"], None),
        (["tasks"], None),
        ([], None),
    ],
)
def test_a_plain_serve_needs_no_parser_and_anything_else_does(arguments: list[str], flags: ServeFlags | None) -> None:
    """
    `serve` with known, well-formed flags is read at once; all else is left to the full parser.
    """
    assert plain_serve(arguments) == flags


def test_set_takes_json_and_text() -> None:
    """
    A value of `--set` is the JSON it spells, and otherwise the text as it stands.
    """
    settings = ["n=5", "x=1.5", "flag=true", "list=[1]", "text=hello", "eq=a=b", "empty=", "nan=NaN", 'quoted="5"']
    assert extra_from(settings) == {
        "n": 5,
        "x": 1.5,
        "flag": True,
        "list": [1],
        "text": "hello",
        "eq": "a=b",
        "empty": "",
        "nan": "NaN",
        "quoted": "5",
    }


@pytest.mark.parametrize("setting", ["novalue", "=5", " =5"])
def test_set_without_a_name_is_refused(setting: str) -> None:
    """
    A `--set` without `=`, or with no name before it, is an invalid request.
    """
    with pytest.raises(InvalidRequest):
        extra_from([setting])


def test_a_duration_keeps_its_spelling() -> None:
    """
    A whole number stays an int and a decimal a float; what is no finite number is refused.
    """
    assert isinstance(number_from("5", "--duration"), int)
    assert isinstance(number_from("5.5", "--duration"), float)
    for wrong in ("five", "true", "", "5s", "NaN", "[5]"):
        with pytest.raises(InvalidRequest):
            number_from(wrong, "--duration")


def test_deep_nesting_is_text() -> None:
    """
    A value nested too deep to be parsed as JSON is taken as text and breaks nothing.
    """
    assert value_from("[" * 100_000) == "[" * 100_000


def test_a_reference_is_a_file_an_address_or_an_asset(tmp_path: Path) -> None:
    """
    A reference is told apart by its form, and a file that is not there is refused.
    """
    (tmp_path / "a.png").write_bytes(b"x")
    assert reference_from("a.png", tmp_path) == Reference(path=str(tmp_path / "a.png"))
    assert reference_from("https://a.example/b.png", tmp_path) == Reference(url="https://a.example/b.png")
    assert reference_from("sha256:" + "0" * 64, tmp_path) == Reference(asset="sha256:" + "0" * 64)
    with pytest.raises(InvalidRequest, match="there is no file"):
        reference_from("b.png", tmp_path)


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("A red fox, in the snow!", "a-red-fox-in-the-snow"),
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\NUL.mp4", "c-nul-mp4"),
        ("海边的红气球", "海边的红气球"),
        ("🎈", "clip"),
        ("word " * 100, "word-word-word-word-word-word-word-word-word"),
        ("x" * 500, "clip"),
    ],
)
def test_a_prompt_names_a_file_safely(prompt: str, name: str) -> None:
    """
    A file name made of a prompt has no path, no reserved name, a bounded length, and is never empty.
    """
    assert slug(prompt) == name


def test_a_result_goes_where_it_is_told(tmp_path: Path) -> None:
    """
    A directory gets a name made of prompt and id, a file name is kept, and later files are numbered.
    """

    def where(output: str | None, index: int = 0) -> Path | None:
        return target_for(output, prompt="A fox", task_id="0123456789", index=index, extension=".mp4")

    assert where(None) is None
    assert where(str(tmp_path)) == tmp_path / "a-fox-01234567.mp4"
    assert where(str(tmp_path / "new") + "/") == tmp_path / "new" / "a-fox-01234567.mp4"
    assert where(str(tmp_path / "b.mov")) == tmp_path / "b.mov"
    assert where(str(tmp_path / "b.mov"), 2) == tmp_path / "b-2.mov"


# Tables


def rows_of(tmp_path: Path, name: str, text: str):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return read_rows(file)


@pytest.mark.parametrize("other", ["fox.mp4", "FOX.mp4"])
def test_two_rows_cannot_name_the_same_file(tmp_path: Path, other: str) -> None:
    """
    Neither spelt the same nor in another case, which some file systems do not tell apart; the lines are named.
    """
    with pytest.raises(InvalidRequest, match=r"lines 2, 4: name the same output 'fox.mp4'"):
        rows_of(tmp_path, "t.csv", f"prompt,output\nA fox,fox.mp4\nA hen,\nA cow,{other}\n")
    table = [{"prompt": "a", "output": "fox.mp4"}, {"prompt": "b", "output": other}]
    with pytest.raises(InvalidRequest, match=r"lines 1, 3: name the same output"):
        rows_of(tmp_path, "t.jsonl", "\n\n".join(json.dumps(row) for row in table))


def test_a_csv_has_the_requests_fields_as_columns(tmp_path: Path) -> None:
    """
    Each column fills its field of the request, empty cells and empty rows count for nothing.
    """
    (tmp_path / "a.png").write_bytes(b"x")
    text = (
        "prompt,model,Aspect_Ratio,duration,seed,references,extra.mood,output\r\n"
        '"A fox, red",m1,16:9,5,7,a.png;https://x.example/y.png,0.5,fox.mp4\r\n'
        "A hen,,,,,,,\r\n"
        ",,,,,,,\r\n"
    )
    first, second = rows_of(tmp_path, "t.csv", text)
    assert first.request.prompt == "A fox, red"
    assert first.request.model_version == "m1"
    assert first.request.aspect_ratio == "16:9"
    assert (first.request.duration, first.request.seed) == (5, 7)
    assert first.request.references[0].path == str(tmp_path / "a.png")
    assert first.request.references[1].url == "https://x.example/y.png"
    assert first.request.extra == {"mood": 0.5}
    assert first.request.priority is Priority.BATCH
    assert first.output == "fox.mp4"
    assert second.request.prompt == "A hen"
    assert second.output is None


def test_a_jsonl_line_is_a_request(tmp_path: Path) -> None:
    """
    A line is a request's JSON, its paths are relative to the table, and empty lines are passed over.
    """
    text = '{"prompt": "A fox", "duration": 5, "references": [{"path": "a.png", "role": "first"}]}\n\n{"prompt": "B"}\n'
    first, second = rows_of(tmp_path, "t.jsonl", text)
    assert first.request.references[0].path == str(tmp_path / "a.png")
    assert first.request.references[0].role == "first"
    assert (first.number, second.number) == (1, 2)


def test_the_same_row_has_the_same_key_and_twice_in_one_table_another(tmp_path: Path) -> None:
    """
    A row's key depends on what it asks and how often it was asked before, not on its table.
    """
    first = rows_of(tmp_path, "a.jsonl", '{"prompt": "A"}\n{"prompt": "A"}\n{"prompt": "B"}\n')
    second = rows_of(tmp_path, "b.csv", "prompt\nB\nA\n")
    keys = [row.key for row in first]
    assert len(set(keys)) == 3
    assert [row.key for row in second] == [keys[2], keys[0]]
    assert all(len(key) <= 255 and key.isascii() for key in keys)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("t.txt", "x", "must be a .csv or a .jsonl"),
        ("t.csv", "", "has no rows"),
        ("t.csv", "prompt\n", "has no rows"),
        ("t.csv", "prompt\na,b\n", "line 2: has more fields"),
        ("t.csv", "prompt,duration\na,long\n", "line 2: duration"),
        ("t.csv", "prompt,colour\na,red\n", "line 2: unknown field: colour"),
        ("t.csv", "prompt,output\na,../b.mp4\n", "plain file name"),
        ("t.csv", "seed\n5\n", "prompt is required"),
        ("t.jsonl", "{}\n", "line 1: prompt is required"),
        ("t.jsonl", '{"prompt": "a"}\n[]\n', "line 2: is not a JSON object"),
        ("t.jsonl", "{\n", "line 1: is not JSON"),
        ("t.jsonl", "[" * 100_000, "line 1: is not JSON"),
    ],
)
def test_a_wrong_table_is_refused_whole_with_its_line(tmp_path: Path, name: str, text: str, what: str) -> None:
    """
    One wrong row refuses the whole table, and the message says which line and why.
    """
    with pytest.raises(InvalidRequest) as caught:
        rows_of(tmp_path, name, text)
    assert what in caught.value.message


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    """
    A table that cannot be opened is an invalid request that says so.
    """
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_rows(tmp_path / "none.csv")
