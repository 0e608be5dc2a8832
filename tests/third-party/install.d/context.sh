# The MCP server of Jira and Confluence that most people use, in an environment of its own: it needs another version of
# the protocol's SDK than the clients of `mcp.sh`.
if [ ! -x "$tools/atlassian/bin/mcp-atlassian" ]; then
    rm -rf "$tools/atlassian"
    python3 -m venv "$tools/atlassian"
    "$tools/atlassian/bin/python" -m pip install --quiet --disable-pip-version-check mcp-atlassian==0.23.1
fi
