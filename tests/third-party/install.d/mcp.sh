# Clients of the Model Context Protocol that others wrote: the official inspector, and the SDKs for TypeScript and Python.
npm_install @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@0.15.0
pip_install mcp==2.3.0
