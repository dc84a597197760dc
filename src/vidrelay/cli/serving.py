"""
`serve` and `simulate`: the two commands that stay.
"""

from typing import Annotated

import typer

from vidrelay.cli.running import ServeFlags, run_relay, run_simulator


def serve(
    context: typer.Context,
    *,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Listen on this port of 127.0.0.1.", metavar="N")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Ask a relay that is running already to leave.")] = False,
    idle_exit: Annotated[
        str | None, typer.Option(help="Leave once nothing was asked or under way for so long, as in 60s.", metavar="T")
    ] = None,
) -> None:
    """
    Run the relay. It listens on 127.0.0.1 only and stops on Ctrl-C, when what it has begun is safe.
    """
    raise typer.Exit(run_relay(context.obj, ServeFlags(port=port, replace=replace, idle_exit=idle_exit)))


def simulate(context: typer.Context) -> None:
    """
    Run a pretend provider: gates, queues, limits and faults, for trying and testing. See `vidrelay simulate --help`.
    """
    raise typer.Exit(run_simulator(context.args))
