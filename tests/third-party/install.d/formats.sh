# GitHub's own Markdown renderer, a reader of JUnit reports, validators of Reviewdog's format and of JSON schemas, and a
# second Markdown renderer that links whatever looks like an address.
pip_install cmarkgfm==2025.10.22 junitparser==5.0.3 check-jsonschema==0.39.0
npm_install @umbrelladocs/rdformat-validator@1.0.1 markdown-it@15.0.3
