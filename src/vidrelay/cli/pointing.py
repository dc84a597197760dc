"""
`env` and `run`: official SDKs pointed at the relay, by the variables that they read.
"""

import asyncio
import os
import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vidrelay.cli.tasks import finish
from vidrelay.cli.terminal import Exit, Where, out, out_json, say

if TYPE_CHECKING:
    from vidrelay.cli.variables import Variables


class Shell(StrEnum):
    """
    Whose syntax is printed.
    """

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"


def env(
    context: typer.Context,
    *,
    provider: Annotated[
        str | None,
        typer.Argument(
            help="Only this provider's, or this account's; else those of every provider that has an account here.",
            metavar="[PROVIDER]",
            show_default=False,
        ),
    ] = None,
    shell: Annotated[Shell, typer.Option(help="The syntax.")] = Shell.SH,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Print what points official SDKs at the relay, for a shell: eval "$(vidrelay env)".

    The token in it is a secret. It is new at each start of the relay, unless the configuration says token = "keep":
    then token and port stay.
    """
    finish(_env(context.obj, provider, shell, as_json))


async def _env(where: Where, provider: str | None, shell: Shell, as_json: bool) -> Exit:
    from vidrelay.cli.variables import variables

    async with where.client() as client:
        found = await variables(client, where.state_dir, os.environ, only=[provider] if provider else [])
        leaves = client.beacon is not None and client.beacon.idle_exit
    if as_json:
        out_json({"set": found.values, "unset": found.unset, "notes": found.notes})
    else:
        for line in written(found, shell):
            out(line)
    if leaves:
        say('This relay leaves when idle for a minute. One that stays: vidrelay serve, with token = "keep".')
    return Exit.DONE


def written(found: "Variables", shell: Shell) -> list[str]:
    """
    The lines for that shell. What is said for people comes last, so that nothing is lost where lines are joined.
    """
    match shell:
        case Shell.SH:
            lines = [f"export {name}={shlex.quote(value)}" for name, value in found.values.items()]
            lines += [f"unset {name}" for name in found.unset]
        case Shell.FISH:
            lines = [f"set -gx {name} {_fish(value)}" for name, value in found.values.items()]
            lines += [f"set -e {name}" for name in found.unset]
        case Shell.POWERSHELL:
            lines = [f"$env:{name} = {_powershell(value)}" for name, value in found.values.items()]
            lines += [f"Remove-Item Env:{name} -ErrorAction SilentlyContinue" for name in found.unset]
    return [*lines, *(f"# {provider}: {note}" for provider, note in found.notes.items())]


def _fish(value: str) -> str:
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def _powershell(value: str) -> str:
    # It takes the curly ones for quotes as well; each is written twice.
    quoted = "".join(letter * 2 if letter in "'\u2018\u2019\u201a\u201b" else letter for letter in value)
    return f"'{quoted}'"


def run(
    context: typer.Context,
    *,
    command: Annotated[
        list[str],
        typer.Argument(help="The command and its arguments, after --.", metavar="-- COMMAND...", show_default=False),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Point only the SDKs of this provider or account. May be repeated.", metavar="PROVIDER"),
    ] = None,
) -> None:
    """
    Run a command whose official SDKs are pointed at the relay; it gets the relay's token in place of their keys.

    Signals are passed on to it. The exit status is its own (128 and the signal's number where one ended it), 127 where
    there is no such command, 126 where it cannot be run.
    """
    raise typer.Exit(asyncio.run(_run(context.obj, command, only or [])))


async def _run(where: Where, command: list[str], only: list[str]) -> int:
    from vidrelay.cli.child import run_child
    from vidrelay.cli.variables import variables

    async with where.client() as client:
        found = await variables(client, where.state_dir, os.environ, only=only)
        environ: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if name not in found.unset},
            **found.values,
        }
        return await run_child(command, environ, client)
