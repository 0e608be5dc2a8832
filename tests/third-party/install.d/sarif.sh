# Microsoft's validator of SARIF (with GitHub's rules, and the OASIS schema beside it), and a validator of
# JSON schemas.
npm_install @microsoft/sarif-multitool-linux@5.7.0
pip_install check-jsonschema==0.39.0

# npm does not keep the bit when it runs no scripts.
chmod +x "$tools/npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
