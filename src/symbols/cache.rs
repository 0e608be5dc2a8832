//! A cache of the symbols of texts: in a range of commits, most versions of a file occur twice.

use super::Symbols;
use crate::diff::RepoPath;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of text whose symbols are cached, at most. The symbols take a few times as much.
const MOST: usize = 24 << 20;

/// Digest of a text, and the end of its file name, which determines the language.
type TextKey = ([u8; 32], Vec<u8>);

/// Symbols by the content of the file.
#[derive(Debug)]
pub struct Cache {
    kept: Mutex<KeptSymbols>,
    /// Bytes of text whose symbols are cached, at most.
    most: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            most: MOST,
        }
    }
}

#[derive(Debug, Default)]
struct KeptSymbols {
    symbols: HashMap<TextKey, Option<Arc<Symbols>>>,
    /// Bytes of the texts whose symbols are cached.
    bytes: usize,
    /// Number of parsed texts.
    parsed: usize,
}

impl Cache {
    /// Returns the symbols of a text of a file; see [`Symbols::read`]. Parses a text only once,
    /// while the cache has room.
    pub fn read(&self, path: &RepoPath, text: &[u8]) -> Option<Arc<Symbols>> {
        if !super::is_supported(path) {
            return None;
        }
        let name = path.file_name();
        let end = memchr::memrchr(b'.', name).map_or(name, |dot| &name[dot..]);
        let key = (Sha256::digest(text).into(), end.to_ascii_lowercase());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.symbols.get(&key) {
            return known.clone();
        }
        let symbols = Symbols::read(path, text).map(Arc::new);
        kept.parsed += 1;
        if kept.bytes + text.len() <= self.most {
            kept.bytes += text.len();
            kept.symbols.insert(key, symbols.clone());
        }
        symbols
    }

    /// Returns the number of parsed texts.
    pub fn parsed(&self) -> usize {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cache: &Cache, path: &str, text: &str) -> Option<Arc<Symbols>> {
        cache.read(&RepoPath::from(path), text.as_bytes())
    }

    #[test]
    fn a_text_is_parsed_once_for_each_language() {
        let cache = Cache::default();
        let first = read(&cache, "a.py", "def f():\n    pass\n").unwrap();
        let again = read(&cache, "lib/B.PY", "def f():\n    pass\n").unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(cache.parsed(), 1);
        read(&cache, "a.py", "def g():\n    pass\n").unwrap();
        read(&cache, "a.rb", "def f():\n    pass\n").unwrap();
        assert_eq!(cache.parsed(), 3);
        assert!(read(&cache, "a.txt", "text").is_none());
        assert_eq!(cache.parsed(), 3);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = Cache {
            most: 100,
            ..Cache::default()
        };
        let texts = ["a", "b", "c"].map(|name| format!("{name} = 1\n{}\n", "#".repeat(40)));
        texts
            .iter()
            .for_each(|text| drop(read(&cache, "a.py", text)));
        assert_eq!((cache.parsed(), cache.kept.lock().unwrap().bytes), (3, 94));
        // The first ones are cached, the last one is parsed again.
        texts
            .iter()
            .for_each(|text| drop(read(&cache, "a.py", text)));
        assert_eq!(cache.parsed(), 4);
    }
}
