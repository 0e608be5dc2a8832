//! What a review in CI starts from: objects that are fetched, and events of the systems that run it.

mod fetch;
