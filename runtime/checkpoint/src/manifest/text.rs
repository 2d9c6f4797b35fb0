//! A manifest as text: JSON for people, then one line with length and check sum over all before it.

use crate::error::{Damaged, Error};
use crate::manifest::{FORMAT, Manifest, check};

/// Largest manifest that is read, in bytes: a thousand splits, parts and spool files take less than one of it.
pub(crate) const LARGEST: u64 = 64 << 20;

/// The text of a manifest.
pub(crate) fn encode(manifest: &Manifest) -> Vec<u8> {
    // Its types have no maps with keys other than strings and no failing serializers, so it can't fail; an empty text would be refused
    // when it is read.
    let mut bytes = serde_json::to_vec_pretty(manifest).unwrap_or_default();
    bytes.push(b'\n');
    let last = format!("crc32 {:08x} of {} bytes\n", crc32fast::hash(&bytes), bytes.len());
    bytes.extend_from_slice(last.as_bytes());
    bytes
}

/// The manifest of a text that was found at `place` under this number, of this job.
pub(crate) fn decode(bytes: &[u8], place: &str, number: u64, job: &str) -> Result<Manifest, Error> {
    let damaged = |why: String| Error::from(Damaged { number: Some(number), place: place.to_owned(), why });
    let body = body(bytes).map_err(damaged)?;
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| damaged(format!("its JSON: {error}")))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) if format > u64::from(FORMAT) => return Err(Error::Newer { place: place.to_owned(), format }),
        _ => return Err(damaged("it doesn't say its format".into())),
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(|error| damaged(format!("its fields: {error}")))?;
    if manifest.number != number {
        return Err(damaged(format!("it says that it is checkpoint {}", manifest.number)));
    }
    if manifest.pipeline.job != job {
        let (theirs, ours) = (manifest.pipeline.job, job.to_owned());
        return Err(Error::OtherJob { place: place.to_owned(), theirs, ours });
    }
    check::manifest(&manifest).map_err(damaged)?;
    Ok(manifest)
}

/// What the last line vouches for.
fn body(bytes: &[u8]) -> Result<&[u8], String> {
    const SHAPE: &str = "its last line isn't `crc32 … of … bytes`: it was cut off or written over";
    let end = bytes.strip_suffix(b"\n").ok_or(SHAPE)?;
    let start = end.iter().rposition(|&byte| byte == b'\n').ok_or(SHAPE)? + 1;
    let last = std::str::from_utf8(&end[start..]).map_err(|_| SHAPE)?;
    let (crc, length) = last
        .strip_prefix("crc32 ")
        .and_then(|rest| rest.strip_suffix(" bytes"))
        .and_then(|rest| rest.split_once(" of "))
        .ok_or(SHAPE)?;
    let body = &bytes[..start];
    if length != start.to_string() {
        return Err(format!("it has {start} bytes before its last line, which says {length}"));
    }
    if crc != format!("{:08x}", crc32fast::hash(body)) {
        return Err(format!("bytes 0 to {start} don't have the check sum of its last line"));
    }
    Ok(body)
}
