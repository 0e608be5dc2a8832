//! Recently read tickets in the user's cache: a ticket is not read again within ten minutes, and a ticket with an
//! unchanged version keeps its text, so that the cached answers of models about it stay valid. Only redacted text is
//! stored.

use super::Item;
use crate::ai::ask::Nonce;
use crate::ai::cache::{Cache, Kept, Key};
use serde_json::{Value, json};

/// Seconds during which an entry replaces a call.
const FRESH: i64 = 10 * 60;

/// The cache, and the time of this run in seconds since 1970.
pub(super) struct Keep {
    pub(super) cache: Option<Cache>,
    pub(super) now: i64,
}

/// An entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) item: Item,
    /// Key and version at the source: both decide whether the entry may be used.
    pub(super) key: String,
    pub(super) space: String,
    fetched: i64,
}

impl Keep {
    /// Returns the entry of a reference. `from` identifies the source, with all settings that affect its answers.
    pub(super) fn get(&self, from: &str, reference: &str) -> Option<Entry> {
        let kept = self.cache.as_ref()?.get(&key(from, reference), &nonce())?;
        let value: Value = serde_json::from_str(&kept.text).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Entry {
            item: Item {
                reference: reference.to_owned(),
                title: text("title")?,
                source: text("source")?,
                version: text("version")?,
                digest: text("digest")?,
                text: text("text")?,
            },
            key: text("key")?,
            space: text("space")?,
            fetched: value["fetched"].as_i64()?,
        })
    }

    /// Returns true if an entry is recent enough to replace a call.
    pub(super) fn is_fresh(&self, entry: &Entry) -> bool {
        (0..FRESH).contains(&(self.now - entry.fetched))
    }

    pub(super) fn put(&self, from: &str, item: &Item, (source_key, space): (&str, &str)) {
        let Some(cache) = &self.cache else { return };
        let value = json!({
            "title": item.title, "source": item.source, "version": item.version, "digest": item.digest,
            "text": item.text, "key": source_key, "space": space, "fetched": self.now,
        });
        put(cache, &key(from, &item.reference), value.to_string());
        // A stored review has the digest of the text, but not its source.
        put(cache, &key_of_text(item), item.text.clone());
    }
}

/// Restores the texts of a stored review's tickets from the cache. `digest` returns the digest of a title and a text.
pub(super) fn recall(cache: &Cache, items: &mut [Item], digest: impl Fn(&str, &str) -> String) {
    for item in items.iter_mut().filter(|item| item.text.is_empty()) {
        let kept = cache.get(&key_of_text(item), &nonce());
        let text = kept.map(|kept| kept.text).filter(|text| digest(&item.title, text) == item.digest);
        item.text = text.unwrap_or_default();
    }
}

fn put(cache: &Cache, key: &Key, text: String) {
    let kept = Kept { text, read: Vec::new(), lookups: Vec::new(), tree: None, model: String::new() };
    cache.put(key, &nonce(), &kept);
}

fn key_of_text(item: &Item) -> Key {
    Key::of_parts(&["context text 1", &item.reference, &item.digest])
}

fn key(from: &str, reference: &str) -> Key {
    Key::of_parts(&["context 1", from, reference])
}

/// Returns the nonce that the cache format requires; entries need none.
fn nonce() -> Nonce {
    Nonce::new([0; 16])
}
