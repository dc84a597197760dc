"""
`python -m vidrelay.simulator`: the pretend provider alone, with the flags of `vidrelay simulate`.
"""

import sys

from vidrelay.core.errors import ConfigError
from vidrelay.simulator.options import parse
from vidrelay.simulator.server import run


def main(arguments: list[str]) -> int:
    """
    Run until interrupted; prints `listening on http://127.0.0.1:PORT` once it listens. Returns the exit status.
    """
    options = parse(arguments, prog="python -m vidrelay.simulator")
    try:
        run(options, _tell)
    except ConfigError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


def _tell(port: int) -> None:
    sys.stdout.write(f"listening on http://127.0.0.1:{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
