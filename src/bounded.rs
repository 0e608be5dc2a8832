//! Reads at most a given number of bytes of a file or stream.
//!
//! A size that was checked before is no bound: a file can grow, and pipes and devices have none.

use std::io::{Read, Result};

/// Reads a stream to its end; `None` if it has more than `most` bytes.
///
/// # Errors
/// The stream cannot be read.
pub fn whole(stream: impl Read, most: u64) -> Result<Option<Vec<u8>>> {
    let bytes = start(stream, most.saturating_add(1))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Reads the first `most` bytes of a stream, or all of a shorter one.
///
/// # Errors
/// The stream cannot be read.
pub fn start(stream: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_up_to_its_bound() {
        assert_eq!(whole(&b"abc"[..], 3).unwrap(), Some(b"abc".to_vec()));
        assert_eq!(whole(&b"abcd"[..], 3).unwrap(), None);
        assert_eq!(whole(std::io::repeat(0), 1 << 16).unwrap(), None);
        assert_eq!(start(std::io::repeat(7), 3).unwrap(), [7; 3]);
        assert_eq!(start(&b"ab"[..], 3).unwrap(), b"ab");
    }
}
