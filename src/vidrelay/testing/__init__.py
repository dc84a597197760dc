"""
Fakes for the ports that stand before time and the network, and contract suites, for our tests and adapter authors'.

May import core. Nothing in production imports it.
"""
