# The Claude Code command line: the package with the program itself, which needs no node. The newest, and the oldest
# that the review accepts.
npm_install @anthropic-ai/claude-code-linux-x64@2.1.330 \
    claude-oldest@npm:@anthropic-ai/claude-code-linux-x64@2.1.197

# npm does not keep the bit when it runs no scripts.
chmod +x "$tools"/npm/node_modules/{@anthropic-ai/claude-code-linux-x64,claude-oldest}/claude
