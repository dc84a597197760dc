"""
The reference of the command line says every command and every flag, and no other.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from vidrelay.cli.commands import build

PAGE = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")
OF_EVERY_COMMAND = {"--config", "--state-dir", "--version", "--help", "--install-completion", "--show-completion"}


def commands() -> Iterator[tuple[str, set[str]]]:
    root = typer.main.get_command(build())
    for name, command in root.commands.items():
        yield f"vidrelay {name}", flags(command)
        for child, inner in getattr(command, "commands", {}).items():
            yield f"vidrelay {name} {child}", flags(inner)


def flags(command) -> set[str]:
    options = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    return {word for word in options if word.startswith("-")} - OF_EVERY_COMMAND


def sections() -> dict[str, str]:
    parts = re.split(
        r"^#{2,3} `(vidrelay[a-z ]*?)(?: (?:PROMPT|FILE|ID|\[ID…\]|\[PROVIDER\]|-- COMMAND)…?)?`$",
        PAGE,
        flags=re.MULTILINE,
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("name", "told"), list(commands()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_flag_of_a_command_is_in_its_section_and_no_other(name: str, told: set[str]) -> None:
    """
    The table of flags in a command's section has the same flags as the command itself.
    """
    section = sections()[name]
    written = set(re.findall(r"`(--?[a-z][a-z-]*)", "".join(re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE))))
    assert written == told


def test_every_section_is_a_command() -> None:
    """
    The page has one section for each command and none for a command that is not there.
    """
    assert set(sections()) == {name for name, _ in commands()}


def test_the_flags_of_every_command_are_at_the_top() -> None:
    """
    The flags that every command takes are explained before the page's exit statuses.
    """
    top = PAGE.split("## Exit statuses")[0]
    assert all(f"`{flag}" in top for flag in OF_EVERY_COMMAND)


@pytest.mark.parametrize("name", typer.main.get_command(build()).commands)
def test_a_command_that_is_loaded_alone_is_the_one_of_the_whole_command_line(name: str) -> None:
    """
    Leaving out the others, to be quick, changes nothing of the command that runs.
    """
    alone = typer.main.get_command(build(name)).commands
    whole = typer.main.get_command(build()).commands[name]
    assert list(alone) == [name]
    told, expected = (each.get_help(typer.Context(each, info_name=name)) for each in (alone[name], whole))
    assert told == expected
