//! Bytes of keys and tokens. The build script uses this file too.

/// Returns true for a byte of keys and tokens, and for one of a character beyond ASCII.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=') || byte >= 0x80
}
