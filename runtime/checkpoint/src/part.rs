//! A stored piece of state: a header, then the bytes, compressed where that pays. It may not know what the bytes mean.
//!
//! ```text
//! 0  magic "dfcpart\n"   8  version u32   12  codec u32   16  schema u64   24  raw length u64   32  CRC-32 of the raw bytes u32
//! 36 CRC-32 of bytes 0 to 36 u32          40  the bytes, as the codec has them
//! ```
//! Numbers are little-endian. The manifest has the CRC of all of it.

use std::io::{Cursor, Read};

use crate::manifest::Part;
use crate::words::{self, Packed};

const MAGIC: [u8; 8] = *b"dfcpart\n";
const VERSION: u32 = 1;
const HEADER: usize = 40;
const PLAIN: u32 = 0;
const ZSTD: u32 = 1;
/// As [`crate::words`] packs them; the blocks that it doesn't follow as they are, or where they are fewer bytes so, by zstd.
const WORDS: u32 = 2;
/// zstd's fastest ordinary level: several times as fast as a disk takes its output.
const LEVEL: i32 = 1;
/// State rarely shrinks more than to one byte of so many: memory for what claims more isn't taken before it is there.
const LIKELY: u64 = 32;
/// A piece of this many bytes is tried first: what doesn't shrink there is stored as it is.
const SAMPLE: usize = 64 << 10;

/// The stored form of `raw`, in memory that was used before, and its check sum.
pub(crate) fn encode(schema: u64, raw: &[u8], bytes: &mut Vec<u8>) -> u32 {
    bytes.clear();
    bytes.resize(HEADER, 0);
    let mut rest = Vec::new();
    let codec = if words::pack(raw, bytes, &mut rest) {
        squeeze(&rest, bytes);
        WORDS
    } else if squeeze(raw, bytes) {
        ZSTD
    } else {
        PLAIN
    };
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&codec.to_le_bytes());
    header.extend_from_slice(&schema.to_le_bytes());
    header.extend_from_slice(&(raw.len() as u64).to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(raw).to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
    bytes[..HEADER].copy_from_slice(&header);
    crc32fast::hash(bytes)
}

/// Appends `raw` compressed, or as it is where that doesn't pay; whether it was compressed.
fn squeeze(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let before = out.len();
    // Of large ones a piece from the middle says whether it is worth a try.
    let middle = raw.len().saturating_sub(SAMPLE) / 2;
    let tried = raw.len() <= 4 * SAMPLE || compress(&raw[middle..middle + SAMPLE], &mut Vec::with_capacity(SAMPLE));
    if tried && compress(raw, out) {
        return true;
    }
    out.truncate(before);
    out.extend_from_slice(raw);
    false
}

/// Appends the compressed form; whether it is at least a tenth smaller. What was appended is of no use if it isn't.
fn compress(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let before = out.len();
    out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
    let mut room = Cursor::new(out);
    room.set_position(before as u64);
    let packed = zstd::bulk::Compressor::new(LEVEL).and_then(|mut zstd| zstd.compress_to_buffer(raw, &mut room));
    packed.is_ok_and(|bytes| bytes < raw.len() / 10 * 9)
}

/// A part as it is stored, every byte of it what the manifest says; still packed.
#[derive(Debug, Clone)]
pub struct StoredPart {
    stored: Vec<u8>,
    codec: u32,
    length: u64,
    crc: u32,
}

impl StoredPart {
    /// Looks at a part as it was read; if it isn't what was written, or holds more than `limit` bytes, why.
    pub(crate) fn new(part: &Part, stored: Vec<u8>, limit: u64) -> Result<StoredPart, String> {
        if stored.len() as u64 != part.bytes {
            return Err(format!("it has {} bytes, the manifest says {}", stored.len(), part.bytes));
        }
        if crc32fast::hash(&stored) != part.crc {
            return Err(format!("bytes 0 to {} don't have the check sum that the manifest says", stored.len()));
        }
        let Some((header, _)) = stored.split_at_checked(HEADER) else {
            return Err(format!("its header has {} bytes of {HEADER}", stored.len()));
        };
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if header[..8] != MAGIC {
            return Err("bytes 0 to 8 aren't those of a part".into());
        }
        if word(36) != crc32fast::hash(&header[..36]) {
            return Err("bytes 0 to 36 don't have the check sum that follows them".into());
        }
        if word(8) != VERSION {
            return Err(format!("its form is {}, this dfc knows {VERSION}", word(8)));
        }
        if long(16) != part.schema {
            return Err(format!("its schema is {:016x}, the manifest says {:016x}", long(16), part.schema));
        }
        let (codec, length, crc) = (word(12), long(24), word(32));
        if length != part.raw_bytes {
            return Err(format!("it holds {length} bytes, the manifest says {}", part.raw_bytes));
        }
        if length > limit {
            return Err(format!("it holds {length} bytes, more than the {limit} that may be there"));
        }
        if codec > WORDS {
            return Err(format!("its codec is {codec}, this dfc knows {PLAIN} to {WORDS}"));
        }
        Ok(StoredPart { stored, codec, length, crc })
    }

    /// The bytes that it holds.
    ///
    /// # Errors
    /// Why they can't be had, as a half-sentence: only where whoever wrote it was mistaken, or is hostile.
    pub fn unpack(mut self) -> Result<Vec<u8>, String> {
        let mut raw = Vec::new();
        match self.codec {
            PLAIN => raw = self.stored.split_off(HEADER),
            _ => self.unpack_to(&mut raw)?,
        }
        self.check(&raw)?;
        Ok(raw)
    }

    /// The same, to be looked at: in `room`, memory that was used before, where it is packed.
    ///
    /// # Errors
    /// As with [`StoredPart::unpack`].
    pub fn unpack_in<'r>(&'r self, room: &'r mut Vec<u8>) -> Result<&'r [u8], String> {
        let raw: &[u8] = match self.codec {
            PLAIN => &self.stored[HEADER..],
            _ => {
                self.unpack_to(room)?;
                room
            }
        };
        self.check(raw)?;
        Ok(raw)
    }

    /// Of a part that is packed.
    fn unpack_to(&self, raw: &mut Vec<u8>) -> Result<(), String> {
        let body = &self.stored[HEADER..];
        if self.codec == ZSTD {
            return decompress(body, self.length, raw);
        }
        let fail = |why| format!("it can't be unpacked: {why}");
        let packed = Packed::new(body, self.length).map_err(fail)?;
        let (bytes, mut rest) = (packed.rest_bytes(), Vec::new());
        // What is as long as it was isn't compressed.
        let rest = match packed.rest.len() == bytes {
            true => packed.rest,
            false => {
                decompress(packed.rest, bytes as u64, &mut rest)?;
                &rest
            }
        };
        raw.clear();
        raw.reserve(usize::try_from(self.length.min(body.len() as u64 * LIKELY)).unwrap_or(0));
        packed.unpack(rest, raw).map_err(fail)
    }

    fn check(&self, raw: &[u8]) -> Result<(), String> {
        if raw.len() as u64 != self.length {
            return Err(format!("it holds {} bytes, its header says {}", raw.len(), self.length));
        }
        if crc32fast::hash(raw) != self.crc {
            return Err("what it holds doesn't have the check sum of its header".into());
        }
        Ok(())
    }
}

/// At most `length` bytes and one: what claims to be small isn't given more memory than that, nor what claims to be large before it is.
fn decompress(body: &[u8], length: u64, raw: &mut Vec<u8>) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("it can't be decompressed: {error}");
    raw.clear();
    if raw.capacity() as u64 > length {
        // The memory is there: it can be written at once.
        let unpacked = zstd::bulk::Decompressor::new().and_then(|mut zstd| zstd.decompress_to_buffer(body, raw));
        return unpacked.map(drop).map_err(fail);
    }
    let likely = length.min(body.len() as u64 * LIKELY) + 1;
    raw.reserve(usize::try_from(likely).unwrap_or(0));
    zstd::Decoder::new(body).map_err(fail)?.take(length + 1).read_to_end(raw).map(drop).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(part: &Part, stored: &[u8], limit: u64) -> Result<Vec<u8>, String> {
        StoredPart::new(part, stored.to_vec(), limit)?.unpack()
    }

    fn written(raw: &[u8]) -> (Part, Vec<u8>) {
        let mut stored = Vec::new();
        let crc = encode(7, raw, &mut stored);
        let part = Part {
            name: "p".into(),
            bytes: stored.len() as u64,
            raw_bytes: raw.len() as u64,
            crc,
            schema: 7,
            rows: 0,
            created_by: 1,
        };
        (part, stored)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(raw in proptest::collection::vec(any::<u8>(), 0..5000), repeat in 1usize..200) {
            let raw = raw.repeat(repeat);
            let (part, stored) = written(&raw);
            prop_assert_eq!(&decode(&part, &stored, u64::MAX).unwrap(), &raw);
            // In memory that was used before too, as much of it as there happens to be.
            let mut room = vec![7; repeat * 1000];
            let stored = StoredPart::new(&part, stored, u64::MAX).unwrap();
            prop_assert_eq!(stored.unpack_in(&mut room).unwrap(), raw);
        }

        /// Even with a manifest that vouches for it no damaged part panics or gives other bytes.
        #[test]
        fn hostile_parts_are_refused(at in 0usize..1000, with in 1u8.., lie: bool) {
            let raw: Vec<u8> = (0..4000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
            let (mut part, mut stored) = written(&raw);
            let at = at % stored.len();
            stored[at] ^= with;
            if lie {
                part.crc = crc32fast::hash(&stored);
            }
            match decode(&part, &stored, 1 << 20) {
                Err(_) => {}
                // The compressed form has bits that mean nothing.
                Ok(same) => prop_assert!(lie && same == raw),
            }
        }
    }

    #[test]
    fn cut_parts_and_limits() {
        let (part, stored) = written(&[5; 3000]);
        // Also in memory that was used before.
        let mut room = Vec::with_capacity(10_000);
        assert_eq!(StoredPart::new(&part, stored.clone(), u64::MAX).unwrap().unpack_in(&mut room).unwrap(), [5; 3000]);
        for cut in 0..stored.len() {
            let error = decode(&part, &stored[..cut], u64::MAX).unwrap_err();
            assert_eq!(error, format!("it has {cut} bytes, the manifest says {}", part.bytes));
            let mut lied = part.clone();
            (lied.bytes, lied.crc) = (cut as u64, crc32fast::hash(&stored[..cut]));
            assert!(decode(&lied, &stored[..cut], u64::MAX).is_err());
            let lied = StoredPart::new(&lied, stored[..cut].to_vec(), u64::MAX);
            assert!(lied.is_err() || lied.unwrap().unpack_in(&mut room).is_err());
        }
        let error = decode(&part, &stored, 2999).unwrap_err();
        assert_eq!(error, "it holds 3000 bytes, more than the 2999 that may be there");
    }

    #[test]
    fn what_shrinks_is_compressed() {
        assert!(written(&vec![1; 1 << 20]).1.len() < 1000);
        let noise: Vec<u8> = (0..100_000u32).flat_map(|n| n.wrapping_mul(2_654_435_769).to_le_bytes()).collect();
        assert!(written(&noise).1.len() <= noise.len() + HEADER);
    }
}
