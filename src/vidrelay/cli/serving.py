"""
`serve` and `simulate`: the two commands that stay.
"""

import os
from typing import Annotated

import typer

from vidrelay.cli.terminal import Exit, Where, fault_lines, out, say
from vidrelay.core.errors import ConfigError, VidrelayError


def serve(
    context: typer.Context,
    *,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Listen on this port of 127.0.0.1.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Ask a relay that is running already to leave.")] = False,
    idle_exit: Annotated[
        str | None, typer.Option(help="Leave once nothing was asked or under way for so long, as in 60s.", metavar="T")
    ] = None,
) -> None:
    """
    Run the relay. It listens on 127.0.0.1 only and stops on Ctrl-C, when what it has begun is safe.
    """
    where: Where = context.obj
    # Loaded here so that every other command starts without the relay's own parts.
    from vidrelay.config import config_file, load_config
    from vidrelay.daemon.life import Wish
    from vidrelay.daemon.life import serve as run
    from vidrelay.providers.registry import key_envs

    try:
        path, named = config_file(where.config, os.environ)
        config = load_config(path, must_exist=named, environ=os.environ, key_envs=key_envs())
        wish = Wish(
            config=config, state_dir=where.state_dir, port=port, replace=replace, idle_exit=_idle_seconds(idle_exit)
        )
        run(wish, ready=lambda url: out(f"listening on {url}"))
    except ConfigError:
        raise
    except VidrelayError as error:
        # Whatever else stops it (the database, the disk, the port), the relay cannot run.
        for line in fault_lines(error):
            say(line)
        raise typer.Exit(Exit.UNAVAILABLE) from error


def _idle_seconds(text: str | None) -> float | None:
    from vidrelay.config.units import duration

    if text is None:
        return None
    try:
        seconds = duration(text).total_seconds()
    except ValueError as error:
        raise ConfigError(f"--idle-exit {error}.") from error
    if seconds < 1:
        raise ConfigError("--idle-exit must be at least 1s.")
    return seconds


def simulate(context: typer.Context) -> None:
    """
    Run a pretend provider: gates, queues, limits and faults, for trying and testing. See `vidrelay simulate --help`.
    """
    from vidrelay.simulator.options import parse
    from vidrelay.simulator.server import run

    run(parse(context.args), lambda port: out(f"listening on http://127.0.0.1:{port}"))
