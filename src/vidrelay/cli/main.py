"""
The commands put together, and errors turned into exit statuses.
"""

import os
import sys
from typing import Annotated

import typer

from vidrelay.cli import batch, cache, doctor, figures, making, serving, tasks
from vidrelay.cli.live import first_error
from vidrelay.cli.terminal import Exit, Where, exit_of_error, fault_lines, out, say
from vidrelay.core.errors import VidrelayError

_GLOBAL = ("--config", "--state-dir")
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
        str | None, typer.Option(help="The configuration file; else VIDRELAY_CONFIG, else the usual place.")
    ] = None,
    state_dir: Annotated[
        str | None, typer.Option(help="The relay's directory; else VIDRELAY_STATE_DIR, else the usual place.")
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


def hoisted(arguments: list[str]) -> list[str]:
    """
    The same arguments with the global options first, wherever they were written; what follows `--` stays.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word in _GLOBAL:
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word.startswith(tuple(f"{option}=" for option in _GLOBAL)):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest, *arguments[end:]]


def main() -> int:
    """
    Run a command; returns the exit status.
    """
    try:
        build()(args=hoisted(sys.argv[1:]), prog_name="vidrelay")
    except (VidrelayError, ExceptionGroup) as error:
        cause = first_error(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(cause, VidrelayError | OSError):
            raise
        return _told(cause)
    except OSError as error:
        return _told(error)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else Exit.FAILED
    return Exit.DONE


def _told(error: BaseException) -> int:
    for line in fault_lines(error):
        say(line)
    return exit_of_error(error)
