//! Parses server-sent events incrementally
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>). Pure.

/// The unfinished part of a stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Bytes of an unfinished line.
    line: Vec<u8>,
    /// Data of the unfinished event, with a newline after each line.
    data: Vec<u8>,
    /// True if the last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    started: bool,
}

impl Events {
    /// Parses the next bytes, and calls `event` with the data of each completed event. Names and
    /// IDs of events are ignored. Bytes after the last empty line are kept for the next call.
    pub(crate) fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&[u8])) {
        for &b in bytes {
            let swallowed = self.after_return && b == b'\n';
            self.after_return = b == b'\r';
            match b {
                _ if swallowed => {}
                b'\n' | b'\r' => self.end_line(&mut event),
                _ => self.line.push(b),
            }
        }
    }

    fn end_line(&mut self, event: &mut impl FnMut(&[u8])) {
        let mut line = self.line.as_slice();
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if let Some((_, data)) = self.data.split_last() {
                event(data);
            }
            self.data.clear();
        } else if let Some(rest) = line.strip_prefix(b"data") {
            // `data:x`, `data: x`, and `data` alone for an empty line; `database: x` is another
            // field.
            let value = match rest {
                [] => Some(rest),
                [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
                _ => None,
            };
            if let Some(value) = value {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    fn read(parts: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut out = Vec::new();
        for part in parts {
            events.push(part, |data| {
                out.push(String::from_utf8_lossy(data).into_owned());
            });
        }
        out
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let stream = "\u{feff}event: a\r\ndata: {\"x\":1}\r\n\r\n: a comment\n\ndata:two\ndata: \u{e9}lines\n\nid: 1\rdata\r\rdatabase: no\n\ndata: unfinished\n"
            .as_bytes();
        let expected = vec![
            "{\"x\":1}".to_owned(),
            "two\n\u{e9}lines".to_owned(),
            String::new(),
        ];
        assert_eq!(read(&[stream]), expected);
        for at in 0..stream.len() {
            assert_eq!(
                read(&[&stream[..at], &stream[at..]]),
                expected,
                "cut at {at}"
            );
        }
        assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn net_07_an_event_that_was_cut_off_is_no_event() {
        assert_eq!(read(&[b"data: {\"stop\":true}\n"]), Vec::<String>::new());
        assert_eq!(read(&[b"data: {\"stop\":true}"]), Vec::<String>::new());
    }
}
