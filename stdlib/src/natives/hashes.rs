//! Hashes, encodings, masks.

use super::Native;
use super::args::{Result, bytes, check_size, refuse, shown, small_int, string, text, value};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use dfc_ir::Value;
use sha2::Digest as _;
use uuid::Uuid;

pub(super) const TABLE: &[Native] = &[
    Native::strict("md5", |args, _| string(hex(&md5::Md5::digest(bytes(args, 0)?)))),
    Native::strict("sha256", |args, _| string(hex(&sha2::Sha256::digest(bytes(args, 0)?)))),
    Native::strict("xxhash64", |args, _| Ok(Value::Int(i128::from(xxhash_rust::xxh64::xxh64(bytes(args, 0)?, 0))))),
    Native::strict("crc32", |args, _| Ok(Value::Int(i128::from(crc32fast::hash(bytes(args, 0)?))))),
    Native::strict("base64_encode", |args, _| {
        let content = bytes(args, 0)?;
        check_size(base64::encoded_len(content.len(), true))?;
        string(BASE64.encode(content))
    }),
    Native::strict("base64_decode", |args, _| {
        let s = text(args, 0)?;
        let decoded = BASE64.decode(s).map_err(|_| {
            refuse(format!("`{}` is no base64: letters, digits, `+` and `/` are expected, in groups of four", shown(s)))
        })?;
        Ok(Value::Bytes(decoded.into()))
    }),
    Native::strict("hex", |args, _| match value(args, 0)? {
        // Negative ones as 64 bits in two's complement.
        Value::Int(n) => string(format!("{:x}", *n as u64)),
        _ => {
            let content = bytes(args, 0)?;
            check_size(content.len().checked_mul(2))?;
            string(hex(content))
        }
    }),
    Native::strict("mask_email", |args, _| {
        let s = text(args, 0)?;
        let masked = s.rsplit_once('@').map(|(local, domain)| {
            let first = local.chars().next().map(String::from).unwrap_or_default();
            format!("{first}***@{domain}")
        });
        string(masked.unwrap_or_else(|| "***".to_owned()))
    }),
    Native::strict("mask_keep", mask_keep),
    Native::strict("uuid_v5", |args, _| {
        let (namespace, name) = (text(args, 0)?, text(args, 1)?);
        let known = NAMESPACES.iter().find(|(known, _)| *known == namespace).map(|(_, uuid)| *uuid);
        let Some(uuid) = known.or_else(|| Uuid::parse_str(namespace).ok()) else {
            return Err(refuse(format!(
                "`{}` is no namespace; it is `dns`, `url`, `oid`, `x500` or a UUID",
                shown(namespace)
            )));
        };
        string(Uuid::new_v5(&uuid, name.as_bytes()).to_string())
    }),
];

/// The namespaces of RFC 9562.
const NAMESPACES: [(&str, Uuid); 4] = [
    ("dns", Uuid::NAMESPACE_DNS),
    ("url", Uuid::NAMESPACE_URL),
    ("oid", Uuid::NAMESPACE_OID),
    ("x500", Uuid::NAMESPACE_X500),
];

/// Writes padding, reads with and without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Two small hex digits a byte.
pub(super) fn hex(content: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    content.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `mask_keep(s, first, last)`.
fn mask_keep(args: &[Value<'_>], _: &super::CallTypes<'_>) -> Result {
    let s = text(args, 0)?;
    let keep = |index: usize| match small_int(args, index)? {
        n @ ..0 => Err(refuse(format!("`mask_keep` cannot keep {n} characters; the count must be 0 or more"))),
        n => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
    };
    let (first, last, length) = (keep(1)?, keep(2)?, s.chars().count());
    let hidden = match first.checked_add(last) {
        Some(kept) if kept < length => first..length - last,
        _ => 0..length,
    };
    string(s.chars().enumerate().map(|(at, c)| if hidden.contains(&at) { '*' } else { c }).collect::<String>())
}
