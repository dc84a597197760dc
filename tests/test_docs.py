"""
Holds the documentation to itself: two READMEs that say the same, links that lead somewhere, targets that exist.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
SIMPLE_READS = {"text", "texts", "flag", "number", "whole", "value", "read", "table"}
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return FENCE.sub("", text(page))


def headings(page: Path) -> list[str]:
    return re.findall(r"^(#+) .+$", prose(page), re.MULTILINE)


def slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
    return kept.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(found) for found in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_the_two_readmes_have_the_same_headings() -> None:
    """
    Chapter for chapter, at the same depth.
    """
    assert headings(ENGLISH) == headings(CHINESE)


def test_the_two_readmes_have_the_same_code() -> None:
    """
    Fenced and indented blocks are equal, character for character.
    """
    assert FENCE.findall(text(ENGLISH)) == FENCE.findall(text(CHINESE))
    indented = re.compile(r"^ {4}\S.*$", re.MULTILINE)
    assert indented.findall(prose(ENGLISH)) == indented.findall(prose(CHINESE))


def test_the_two_readmes_have_the_same_tables_lists_and_words_of_code() -> None:
    """
    A row, a point or a `name` that one of them has, the other has too.
    """
    for pattern in (r"^\| ", r"^- ", r"^!\["):
        counts = [len(re.findall(pattern, prose(page), re.MULTILINE)) for page in (ENGLISH, CHINESE)]
        assert counts[0] == counts[1], pattern
    words = [sorted(set(re.findall(r"`([^`\n]+)`", prose(page)))) for page in (ENGLISH, CHINESE)]
    assert words[0] == words[1]


def test_the_two_readmes_link_to_the_same_pages() -> None:
    """
    Apart from the link to each other.
    """
    links = [[link for link in LINK.findall(text(page)) if "README" not in link] for page in (ENGLISH, CHINESE)]
    assert links[0] == links[1]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """
    Every relative link names a file of the checkout, and a heading in it where it names one.
    """
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{name(page)} links to {link}"


def test_the_index_names_every_page_once() -> None:
    """
    A page nobody links to is a page nobody reads, and of two entries for one page neither is the right one.
    """
    index = ROOT / "docs/index.md"
    linked = [(index.parent / link).resolve() for link in LINK.findall(text(index)) if ":" not in link]
    assert sorted(linked) == sorted(set(ROOT.glob("docs/**/*.md")) - {index})


def test_make_targets_that_are_named_exist() -> None:
    """
    `make …` in the documentation is a target of the Makefile, and `make help` lists each target.
    """
    targets = set(re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"^ {4}make ([a-z-]+)|`make ([a-z-]+)", text(page), re.MULTILINE)
        assert {one or other for one, other in named} <= targets, name(page)
    told = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in told.splitlines()} == targets


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_in_the_pages_can_be_read(page: Path) -> None:
    """
    Python compiles, JSON and TOML parse, and shell has no syntax error.
    """
    for language, code in FENCE.findall(text(page)):
        if language == "python":
            compile(code, name(page), "exec")
        elif language == "json":
            json.loads(code)
        elif language == "toml":
            tomllib.loads(code)
        elif language == "bash":
            subprocess.run(["bash", "-n"], input=code, text=True, check=True)


def test_the_configurations_in_the_pages_are_taken(tmp_path: Path) -> None:
    """
    Each TOML block of the README and the how-to pages is a configuration without a fault.
    """
    from vidrelay.config import load_config
    from vidrelay.providers import registry

    for page in (ENGLISH, *ROOT.glob("docs/howto/*.md")):
        for language, code in FENCE.findall(text(page)):
            if language == "toml":
                file = tmp_path / "vidrelay.toml"
                file.write_text(code)
                file.chmod(0o600)
                assert load_config(file, must_exist=True, environ={}, key_envs=registry.key_envs()).accounts


def settings_read() -> set[str]:
    """
    Every name that the configuration's reader asks a table for, and every table.
    """
    names = set()
    for node in ast.walk(ast.parse((ROOT / "src/vidrelay/config/settings.py").read_text())):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in SIMPLE_READS:
            names |= {one.value for one in node.args[:1] if isinstance(one, ast.Constant)}
        elif isinstance(node.func, ast.Name) and node.args and ast.unparse(node.args[0]) in ("table", "relay"):
            names |= {one.value for one in node.args[1:2] if isinstance(one, ast.Constant)}
    return names


def test_every_setting_is_documented_and_nothing_else() -> None:
    """
    The tables of the configuration's reference name exactly what is read.
    """
    page = text(ROOT / "docs/reference/configuration.md")
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    documented |= {name.split(".")[0] for name in re.findall(r"^## `\[([\w.]+)\]`", page, re.MULTILINE)}
    assert documented == settings_read()


EXAMPLES = [
    (page, language, n)
    for page in (ENGLISH, ROOT / "docs/howto/use-from-an-app.md")
    for n, (language, code) in enumerate(FENCE.findall(text(page)))
    if language in ("python", "javascript", "bash") and "TASK_ID" not in code
]


@pytest.fixture(scope="module")
def own_relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """
    A relay without any configuration, and the environment that leads to it.
    """
    state = tmp_path_factory.mktemp("docs") / "state"
    settings = state.with_name("vidrelay.toml")
    settings.touch(mode=0o600)
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"VIDRELAY_STATE_DIR": str(state), "VIDRELAY_CONFIG": str(settings), "PATH": tools}
    relay = subprocess.Popen([sys.executable, "-m", "vidrelay", "serve"], env=environment, stdout=subprocess.PIPE)
    try:
        assert relay.stdout is not None
        assert b"listening" in relay.stdout.readline()
        yield environment
    finally:
        relay.terminate()
        relay.communicate(timeout=30)


@pytest.mark.process
@pytest.mark.parametrize(("page", "language", "n"), EXAMPLES, ids=lambda value: getattr(value, "stem", str(value)))
def test_examples_do_what_they_say(
    page: Path, language: str, n: int, own_relay: dict[str, str], tmp_path: Path, *, needs: Callable[[str], None]
) -> None:
    """
    Each example of the README and of "use it from an app" runs as it stands and leaves an MP4.
    """
    command = {"python": [sys.executable], "javascript": ["node", "--input-type=module"], "bash": ["bash", "-e"]}
    needs(command[language][0])
    code = FENCE.findall(text(page))[n][1]
    done = subprocess.run(
        command[language],
        input=code,
        env=own_relay,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "boat.mp4").read_bytes()[4:8] == b"ftyp"
