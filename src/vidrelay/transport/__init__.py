"""
The only room that opens outgoing sockets: which addresses may be reached, one call at a time, results into files.

May import core and clock. It meets the disk through the Files port alone. The engine is httpcore2 (httpx2's own), used
directly: nothing above it follows redirects, keeps cookies, reads the environment or repeats a call.
"""
