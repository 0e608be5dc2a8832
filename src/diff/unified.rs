//! The unified diff text: what `git diff --full-index` prints.

/// Quotes a path as git does with `core.quotePath=true`.
pub fn quote(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    [prefix, path].concat()
}
