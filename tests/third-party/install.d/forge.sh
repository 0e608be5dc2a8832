# GitHub's own description of its REST interface and of its GraphQL schema, and validators for both.
npm_install @octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1 ajv@8.20.0 ajv-formats@3.0.1

# Of the descriptions one is used; each has 20 MB and more.
find "$tools/npm/node_modules/@octokit/openapi/generated" -name '*.json' ! -name api.github.com.deref.json -delete
