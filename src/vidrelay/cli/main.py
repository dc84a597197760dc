"""
Where the command line begins: global options wherever they stand, and errors turned into exit statuses.
"""

import gc
import os
import sys

from vidrelay.cli.running import plain_serve, run_relay, run_simulator
from vidrelay.cli.terminal import Exit, Where, exit_of_error, fault_lines, say
from vidrelay.core.errors import VidrelayError

_GLOBAL = ("--config", "--state-dir")


def hoisted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """
    The global options with their values, wherever they were written, and everything else; what follows `--` stays, and
    what belongs to the command that `run` runs.
    """
    end = _end_of_ours(arguments)
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        name, given, value = word.partition("=")
        if name not in _GLOBAL:
            rest.append(word)
        elif given:
            first += [name, value]
        else:
            following = next(words, None)
            first += [name] if following is None else [name, following]
    return first, [*rest, *arguments[end:]]


def _end_of_ours(arguments: list[str]) -> int:
    """
    Where somebody else's words begin.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    name, last = "", ""
    for place, word in enumerate(arguments[:end]):
        if not word.startswith("-") and last not in (*_GLOBAL, "--only"):
            if name == "run":
                return place
            name = name or word
        last = word
    return end


def main() -> int:
    """
    Run a command; returns the exit status.
    """
    first, rest = hoisted(sys.argv[1:])
    # What is loaded stays; looking through it for garbage, a hundred times, takes a tenth of the start. Turned on again
    # where the work begins: when the relay listens, when a command has its client.
    gc.disable()
    try:
        # Else an option lacks its value, as the parser tells.
        has_values = len(first) % 2 == 0
        if rest[:1] == ["simulate"] and "--" not in rest and has_values:
            # It reads its arguments itself, and many are started by tests, which wait for each.
            return run_simulator(rest[1:])
        flags = plain_serve(rest)
        if flags is not None and has_values:
            return run_relay(_where(dict(zip(first[::2], first[1::2], strict=True))), flags)
        from vidrelay.cli.commands import build

        build(rest[0] if rest else None)(args=[*first, *rest], prog_name="vidrelay")
    except (VidrelayError, OSError) as error:
        return _told(error)
    except BaseExceptionGroup as group:
        cause = _cause(group)
        if cause is None:
            raise
        return _told(cause)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else Exit.FAILED
    finally:
        gc.enable()
    return Exit.DONE


def _where(options: dict[str, str]) -> Where:
    from vidrelay.config import state_directory

    return Where(
        state_dir=state_directory(options.get("--state-dir"), os.environ), config=options.get("--config") or None
    )


def _told(error: BaseException) -> Exit:
    for line in fault_lines(error):
        say(line)
    return exit_of_error(error)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """
    The first error in a group that is told to people; None where it holds none.
    """
    found = group.subgroup((VidrelayError, OSError))
    error: BaseException | None = found
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
