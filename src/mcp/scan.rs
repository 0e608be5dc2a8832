//! Scans a JSON message while it is read: the number of its values, its top-level ID, and whether
//! it is a request or a response.
//!
//! With this, a message that is too large can be rejected by its own ID without being stored. A
//! message that is small as text and huge as values is rejected before it is parsed. Pure.

/// Bytes of an ID that are kept.
const MOST_OF_AN_ID: usize = 512;

/// The state of the scan of one message.
#[derive(Debug, Default)]
pub(super) struct MessageScan {
    /// Number of open containers.
    depth: usize,
    /// Number of values; a member and its name count as one.
    values: usize,
    in_string: bool,
    escaped: bool,
    /// The last string at depth 1, which may be a member name.
    text: Vec<u8>,
    /// The scan is at depth 1, after `"id":`.
    is_id: bool,
    /// The scan is at depth 1, before a colon.
    is_name: bool,
    id: Vec<u8>,
    /// Number of `"id":` members at depth 1.
    ids: usize,
    /// There is a `"method":` member at depth 1.
    asks: bool,
    /// There is a `"result":` or `"error":` member at depth 1.
    answers: bool,
}

impl MessageScan {
    /// Scans the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.byte(b);
        }
    }

    /// Returns the number of values.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Returns the ID, a string or a number. `None` if the message has several.
    pub(super) fn id(&self) -> Option<serde_json::Value> {
        if self.ids != 1 {
            return None;
        }
        let value: serde_json::Value = serde_json::from_slice(&self.id).ok()?;
        (value.is_string() || value.is_i64()).then_some(value)
    }

    /// Returns true if the message appears to be a request or a notification.
    pub(super) fn asks(&self) -> bool {
        self.asks && !self.answers
    }

    /// Returns true if the message appears to be a response.
    pub(super) fn answers(&self) -> bool {
        self.answers && !self.asks
    }

    /// Returns true if the message appears to be a complete notification, without an ID.
    pub(super) fn notifies(&self) -> bool {
        self.asks() && self.ids == 0 && self.depth == 0 && !self.in_string
    }

    fn byte(&mut self, b: u8) {
        if self.in_string {
            self.keep(b);
            match b {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match b {
            b'"' => {
                self.in_string = true;
                self.text.clear();
                self.keep(b);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.values += 1;
                self.is_name = b == b'{';
                self.keep(b);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.is_id = false;
                }
                self.keep(b);
            }
            b',' => {
                self.values += 1;
                if self.depth == 1 {
                    (self.is_id, self.is_name) = (false, true);
                }
                self.keep(b);
            }
            b':' if self.depth == 1 && self.is_name => {
                self.is_name = false;
                match self.text.as_slice() {
                    b"\"id\"" => {
                        self.is_id = true;
                        self.ids += 1;
                        self.id.clear();
                    }
                    b"\"method\"" => self.asks = true,
                    b"\"result\"" | b"\"error\"" => self.answers = true,
                    _ => {}
                }
            }
            _ => self.keep(b),
        }
    }

    /// Stores a byte of a possible member name or of the ID.
    fn keep(&mut self, b: u8) {
        if self.is_id {
            // A longer ID is cut off, which makes it invalid JSON.
            if self.id.len() < MOST_OF_AN_ID {
                self.id.push(b);
            }
        } else if self.depth == 1
            && self.is_name
            && self.text.len() < 8
            && (self.in_string || b == b'"')
        {
            self.text.push(b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scan(text: &str) -> MessageScan {
        let mut scan = MessageScan::default();
        // In pieces, as a pipe delivers it.
        text.as_bytes().chunks(3).for_each(|c| scan.feed(c));
        scan
    }

    #[test]
    fn finds_the_id_at_the_top_and_no_other() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, json!(7)),
            (
                r#"{"method":"x","params":{"id":1,"a":["id",{"id":2}]}, "id" : "a\"b" }"#,
                json!("a\"b"),
            ),
            (r#"{"params":{"text":"\"id\":9,{[\\"},"id":-3}"#, json!(-3)),
            (r#"{"id":1.5}"#, json!(null)),
            (r#"{"id":null}"#, json!(null)),
            (r#"{"id":{"id":1}}"#, json!(null)),
            (r#"{"ids":4,"xid":5}"#, json!(null)),
            (r#"[{"id":4}]"#, json!(null)),
            (r#"{"a":"id","b":3}"#, json!(null)),
            (r#"{"id":1,"id":2}"#, json!(null)),
            (r#"{"id":"\ud800"}"#, json!(null)),
        ] {
            assert_eq!(scan(text).id().unwrap_or_default(), id, "{text}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(1 << 20));
        let scan = scan(&long);
        assert!(scan.id().is_none() && scan.id.len() <= MOST_OF_AN_ID);
    }

    #[test]
    fn tells_what_asks_from_what_answers() {
        for (text, asks, answers, notifies) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#,
                true,
                false,
                false,
            ),
            (
                r#"{"method":"x","params":{"a":1e400,"result":1}}"#,
                true,
                false,
                true,
            ),
            (r#"{"method":"x","params":{"a":"#, true, false, false),
            (r#"{"method":"x","params":""#, true, false, false),
            (
                r#"{"id":7,"result":{"method":"x","a":1e400}}"#,
                false,
                true,
                false,
            ),
            (r#"{"id":7,"error":{"code":1}}"#, false, true, false),
            (
                r#"{"methods":1,"errors":2,"results":3}"#,
                false,
                false,
                false,
            ),
            (r#"{"method":"x","result":{}}"#, false, false, false),
            ("garbage", false, false, false),
        ] {
            let scan = scan(text);
            assert_eq!(
                (scan.asks(), scan.answers(), scan.notifies()),
                (asks, answers, notifies),
                "{text}"
            );
        }
    }

    #[test]
    fn counts_values_and_not_what_stands_in_strings() {
        assert_eq!(scan(r#"{"a":"[[[,,,{{","b":1}"#).values(), 2);
        assert_eq!(scan("[0,0,0,[],[]]").values(), 7);
    }

    #[test]
    fn is_not_upset_by_what_is_no_json() {
        for text in ["", "]]]}}}", "\"", "{\"id\"", ":::", "{\"id\":", "\\\"{"] {
            assert!(scan(text).id().is_none());
        }
    }
}
