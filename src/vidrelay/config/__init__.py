"""
The user's settings: `vidrelay.toml` and the environment in, one frozen `Config` out, or a `ConfigError` and nothing.

`places.py` finds and checks files and directories, `table.py` reads TOML with the line of each fault, `units.py` says
what "30s" and "10GB" mean, `keys.py` reads an account's key, `settings.py` puts them together. May import providers
(for their names and environment variables) and core.
"""

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
