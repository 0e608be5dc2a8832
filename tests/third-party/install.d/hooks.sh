# Whatever else runs hooks in a repository: pre-commit, prek, husky, lefthook.
pip_install pre-commit==4.7.0 prek==0.5.10
npm_install husky@9.1.7 lefthook@2.2.2

# npm does not keep the bit when it runs no scripts.
chmod +x "$tools"/npm/node_modules/lefthook-*/bin/lefthook
