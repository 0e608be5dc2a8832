//! Recently read tickets in the user's cache: a ticket is not read again within ten minutes, and a
//! ticket with an unchanged version keeps its text, so that the cached answers of models about it
//! stay valid. Only redacted text is stored.

use super::GatheredItem;
use crate::ai::ask::Nonce;
use crate::ai::cache::{Cache, KeptReply, ReplyKey};
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
pub(super) struct KeptItem {
    pub(super) item: GatheredItem,
    /// Key and version at the source: both decide whether the entry may be used.
    pub(super) key: String,
    pub(super) space: String,
    fetched: i64,
}

impl Keep {
    /// Returns the entry of a reference. `from` identifies the source, with all settings that
    /// affect its answers.
    pub(super) fn get(&self, from: &str, reference: &str) -> Option<KeptItem> {
        let kept = self.cache.as_ref()?.get(&key(from, reference), &nonce())?;
        let value: Value = serde_json::from_str(&kept.text).ok()?;
        Some(KeptItem {
            item: GatheredItem {
                reference: reference.to_owned(),
                title: text_of(&value, "title")?,
                source: text_of(&value, "source")?,
                version: text_of(&value, "version")?,
                digest: text_of(&value, "digest")?,
                text: text_of(&value, "text")?,
            },
            key: text_of(&value, "key")?,
            space: text_of(&value, "space")?,
            fetched: value["fetched"].as_i64()?,
        })
    }

    /// Returns true if an entry is recent enough to replace a call.
    pub(super) fn is_fresh(&self, entry: &KeptItem) -> bool {
        (0..FRESH).contains(&(self.now - entry.fetched))
    }

    pub(super) fn put(&self, from: &str, item: &GatheredItem, (source_key, space): (&str, &str)) {
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

fn text_of(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

/// Restores the texts of a stored review's tickets from the cache. `digest` returns the digest of a
/// title and a text.
pub(super) fn recall(
    cache: &Cache,
    items: &mut [GatheredItem],
    digest: impl Fn(&str, &str) -> String,
) {
    for item in items.iter_mut().filter(|item| item.text.is_empty()) {
        let kept = cache.get(&key_of_text(item), &nonce());
        let text = kept
            .map(|kept| kept.text)
            .filter(|text| digest(&item.title, text) == item.digest);
        item.text = text.unwrap_or_default();
    }
}

fn put(cache: &Cache, key: &ReplyKey, text: String) {
    let kept = KeptReply {
        text,
        read: Vec::new(),
        lookups: Vec::new(),
        tree: None,
        model: String::new(),
    };
    cache.put(key, &nonce(), &kept);
}

fn key_of_text(item: &GatheredItem) -> ReplyKey {
    ReplyKey::of_parts(&["context text 1", &item.reference, &item.digest])
}

fn key(from: &str, reference: &str) -> ReplyKey {
    ReplyKey::of_parts(&["context 1", from, reference])
}

/// Returns the nonce that the cache format requires; entries need none.
fn nonce() -> Nonce {
    Nonce::new([0; 16])
}
