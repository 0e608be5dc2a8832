//! Backends with a known address: names that work without a `[backend.NAME]` table.

use super::BackendKind;

/// An OpenAI-compatible server with a known address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// Without a trailing slash.
    pub base_url: &'static str,
    /// The variable that contains the key; `None`: the server needs none.
    pub key_variable: Option<&'static str>,
    /// The product, for documentation.
    pub about: &'static str,
}

/// All presets, sorted by name. The ports are the defaults in the documentation of each server.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_variable: None,
        about: "The server of llama.cpp on this machine.",
    },
    Preset {
        name: "lmstudio",
        base_url: "http://127.0.0.1:1234/v1",
        key_variable: None,
        about: "LM Studio on this machine.",
    },
    Preset {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key_variable: None,
        about: "Ollama on this machine.",
    },
    Preset {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        key_variable: Some("OPENROUTER_API_KEY"),
        about: "OpenRouter. The key is in OPENROUTER_API_KEY by default.",
    },
];

/// Returns the names of the backends that need no table.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BackendKind::ALL
        .into_iter()
        .map(BackendKind::name)
        .chain(PRESETS.iter().map(|p| p.name))
}

/// Returns the preset of that name.
pub(super) fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}
