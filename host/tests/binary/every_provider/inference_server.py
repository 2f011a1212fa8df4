"""llama.cpp's server with a real model, on a port of loopback that it chooses and prints.

Ends when its standard input does.
"""

import socket
import sys

import xllamacpp

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.n_ctx = 8192
settings.n_parallel = 1
settings.use_jinja = True
settings.port = port
server = xllamacpp.Server(settings)
print(f"listening on http://127.0.0.1:{port}", flush=True)
sys.stdin.read()
