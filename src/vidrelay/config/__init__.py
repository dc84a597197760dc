"""
The user's settings: `vidrelay.toml` and the environment in, one frozen `Config` out, or a `ConfigError` and nothing.

`places.py` finds and checks files and directories, `table.py` reads TOML with the line of each fault, `units.py` says
what "30s" and "10GB" mean, `keys.py` reads an account's key, `settings.py` puts them together. May import providers
(for their names and environment variables) and core.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidrelay.config.keys import KeySource, read_key
    from vidrelay.config.places import config_file, state_directory
    from vidrelay.config.settings import AccountSettings, Config, NetworkSettings, load_config

__all__ = [
    "AccountSettings",
    "Config",
    "KeySource",
    "NetworkSettings",
    "config_file",
    "load_config",
    "read_key",
    "state_directory",
]

_HOMES = {
    "AccountSettings": "vidrelay.config.settings",
    "Config": "vidrelay.config.settings",
    "KeySource": "vidrelay.config.keys",
    "NetworkSettings": "vidrelay.config.settings",
    "config_file": "vidrelay.config.places",
    "load_config": "vidrelay.config.settings",
    "read_key": "vidrelay.config.keys",
    "state_directory": "vidrelay.config.places",
}


def __getattr__(name: str) -> object:
    """
    Load a name when it is asked for: every command wants to know where things are, and few read the settings.
    """
    import importlib  # noqa: PLC0415 only for this

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
