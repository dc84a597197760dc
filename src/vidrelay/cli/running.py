"""
Runs the relay, or the pretend provider, in this process: for `vidrelay serve` and `vidrelay simulate`.
"""

import gc
import os
from dataclasses import dataclass

from vidrelay.cli.terminal import Exit, Where, fault_lines, out, say
from vidrelay.core.errors import ConfigError, VidrelayError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags:
    """
    What `serve` was told. `idle_exit` is a duration as it is written, None: never.
    """

    port: int | None = None
    replace: bool = False
    idle_exit: str | None = None


def run_relay(where: Where, flags: ServeFlags) -> Exit:
    """
    Run the relay until it is asked to stop.

    Raises:
        ConfigError: The configuration or a flag is wrong.
    """
    # Loaded here so that every other command starts without the relay's own parts.
    from vidrelay.config import config_file, load_config
    from vidrelay.daemon.life import Wish, serve
    from vidrelay.providers.registry import key_envs

    try:
        path, named = config_file(where.config, os.environ)
        config = load_config(path, must_exist=named, environ=os.environ, key_envs=key_envs())
        wish = Wish(
            config=config,
            state_dir=where.state_dir,
            port=flags.port,
            replace=flags.replace,
            idle_exit=_idle_seconds(flags.idle_exit),
        )
        serve(wish, ready=_listens)
    except ConfigError:
        raise
    except (VidrelayError, OSError) as error:
        # Whatever else stops it (the database, the disk, the port), the relay cannot run.
        for line in fault_lines(error):
            say(line)
        return Exit.UNAVAILABLE
    return Exit.DONE


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


def run_simulator(arguments: list[str]) -> Exit:
    """
    Run the pretend provider until it is interrupted; it reads its arguments itself.

    Raises:
        ConfigError: Its port is taken.
        SystemExit: An argument is wrong, or help was asked for.
    """
    from vidrelay.simulator.options import parse
    from vidrelay.simulator.server import run

    run(parse(arguments), lambda port: _listens(f"http://127.0.0.1:{port}"))
    return Exit.DONE


def _listens(url: str) -> None:
    # Off while everything was loaded (`main`); from here on there is garbage to find.
    gc.enable()
    out(f"listening on {url}")


def plain_serve(arguments: list[str]) -> ServeFlags | None:
    """
    The flags of a `serve` that is written without any surprise; None for everything else.

    Every app that starts the relay waits for it, and the parser for the whole command line takes longer to load than
    the relay itself needs.
    """
    if not arguments or arguments[0] != "serve":
        return None
    found: dict[str, str | bool] = {}
    words = iter(arguments[1:])
    for word in words:
        name, given, value = word.partition("=")
        if name == "--replace" and not given:
            found["replace"] = True
        elif name in ("--port", "--idle-exit"):
            text = value if given else next(words, "")
            if not text or text.startswith("-"):
                return None
            found[name] = text
        else:
            return None
    port = str(found.get("--port", ""))
    if port and not (port.isascii() and port.isdigit() and len(port) < 6 and 1 <= int(port) <= 65535):
        return None
    idle_exit = found.get("--idle-exit")
    return ServeFlags(
        port=int(port) if port else None,
        replace="replace" in found,
        idle_exit=str(idle_exit) if idle_exit is not None else None,
    )
