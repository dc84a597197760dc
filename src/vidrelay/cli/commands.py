"""
The commands put together.
"""

import os
from importlib import import_module
from typing import Annotated, Any

import typer

from vidrelay.cli.terminal import Where, out

# Each command's module, so that the one that runs need not wait for the others; in the order of the help.
_ROOMS = {
    "serve": "serving",
    "generate": "making",
    "batch": "batch",
    "tasks": "tasks",
    "show": "tasks",
    "watch": "tasks",
    "cancel": "tasks",
    "resolve": "tasks",
    "result": "tasks",
    "stats": "figures",
    "cache": "cache",
    "accounts": "figures",
    "doctor": "doctor",
    "env": "pointing",
    "run": "pointing",
    "simulate": "serving",
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "simulate": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    # What follows the command's name is the command's.
    "run": {"allow_interspersed_args": False},
}


def _version(wanted: bool) -> None:
    if wanted:
        from vidrelay.assemble import version

        out(f"vidrelay {version()}")
        raise typer.Exit


def _begin(
    context: typer.Context,
    *,
    config: Annotated[
        str | None,
        typer.Option(help="The configuration file; else VIDRELAY_CONFIG, else the usual place.", metavar="FILE"),
    ] = None,
    state_dir: Annotated[
        str | None,
        typer.Option(help="The relay's directory; else VIDRELAY_STATE_DIR, else the usual place.", metavar="DIR"),
    ] = None,
    version: Annotated[  # noqa: ARG001 handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """
    A local relay between apps and AI video-generation APIs: each wanted clip is paid for once, and none is lost.
    """
    from vidrelay.config import state_directory

    context.obj = Where(state_dir=state_directory(state_dir, os.environ), config=config)


def build(only: str | None = None) -> typer.Typer:
    """
    The command line.

    Args:
        only: The command that is going to run, for the others take long to load; None or no command: all of them.
    """
    app = typer.Typer(
        name="vidrelay", callback=_begin, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    for name in [only] if only in _ROOMS else _ROOMS:
        room = import_module(f"vidrelay.cli.{_ROOMS[name]}")
        if name == "cache":
            app.add_typer(room.build(), name=name)
        else:
            app.command(name=name, context_settings=_SETTINGS.get(name))(getattr(room, name))
    return app
