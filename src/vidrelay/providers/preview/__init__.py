"""
The built-in provider: renders an animatic of the prompt by itself, without network, key or cost.

`words` says what it accepts, `adapter` speaks to it (port Adapter), and `studio` answers those calls by running
`render` as a child process (port Transport). Everything that draws (`scene`, `scenery`, `film`, …) is imported by that
child alone: the relay itself never loads Pillow or PyAV. May import: core and the providers' facts and settings.
"""
