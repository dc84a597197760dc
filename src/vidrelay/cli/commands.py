"""
The commands put together.
"""

import os
from typing import Annotated

import typer

from vidrelay.cli import batch, cache, doctor, figures, making, serving, tasks
from vidrelay.cli.terminal import Where, out

_PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


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


def build() -> typer.Typer:
    """
    The command line.
    """
    app = typer.Typer(
        name="vidrelay", callback=_begin, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.command()(serving.serve)
    app.command()(making.generate)
    app.command(name="batch")(batch.batch)
    app.command(name="tasks")(tasks.tasks)
    app.command()(tasks.show)
    app.command()(tasks.watch)
    app.command()(tasks.cancel)
    app.command()(tasks.resolve)
    app.command()(tasks.result)
    app.command()(figures.stats)
    app.add_typer(cache.build(), name="cache")
    app.command()(figures.accounts)
    app.command(name="doctor")(doctor.doctor)
    app.command(context_settings=_PASSED_ON)(serving.simulate)
    return app
