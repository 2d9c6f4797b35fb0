//! Values of key columns: where a read stands, and where ranges begin and end. It may not know in which order a database has them.

use serde_json::{Map, Value as Json, json};

/// A value of a key column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeyValue {
    Int(i64),
    Real(f64),
    /// Text; in PostgreSQL the text form of any type.
    Text(String),
    Blob(Vec<u8>),
}

/// A row's values of the columns that it is ordered by.
pub(crate) type Key = Vec<KeyValue>;

impl KeyValue {
    /// As JSON that people read and that gives the same value back.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            KeyValue::Int(n) => json!(n),
            KeyValue::Text(text) => json!(text),
            KeyValue::Real(x) => json!({ "real": ryu::Buffer::new().format(*x) }),
            KeyValue::Blob(bytes) => json!({ "hex": hex(bytes) }),
        }
    }

    /// From JSON; `None`: it is no key's value.
    pub(crate) fn from_json(json: &Json) -> Option<KeyValue> {
        match json {
            Json::Number(n) => n.as_i64().map(KeyValue::Int),
            Json::String(text) => Some(KeyValue::Text(text.clone())),
            Json::Object(map) => match (map.get("real"), map.get("hex")) {
                (Some(Json::String(text)), None) => {
                    text.parse().ok().filter(|x: &f64| x.is_finite()).map(KeyValue::Real)
                }
                (None, Some(Json::String(text))) => unhex(text).map(KeyValue::Blob),
                _ => None,
            },
            _ => None,
        }
    }
}

/// For messages and the names of ranges.
impl std::fmt::Display for KeyValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyValue::Int(n) => write!(f, "{n}"),
            KeyValue::Real(x) => f.write_str(ryu::Buffer::new().format(*x)),
            KeyValue::Text(text) => f.write_str(text),
            KeyValue::Blob(bytes) => f.write_str(&hex(bytes)),
        }
    }
}

/// A key by the names of its columns.
pub(crate) fn key_to_json(columns: &[String], key: &Key) -> Json {
    Json::Object(columns.iter().zip(key).map(|(name, value)| (name.clone(), value.to_json())).collect())
}

/// A key as text: the same for the same values, and for no others.
pub(crate) fn key_to_text(key: &Key) -> String {
    list_to_json(key).to_string()
}

/// A key without its columns' names.
pub(crate) fn list_to_json(key: &Key) -> Json {
    key.iter().map(KeyValue::to_json).collect()
}

/// The other way; `None`: it is no key of so many columns.
pub(crate) fn list_from_json(columns: usize, json: &Json) -> Option<Key> {
    let values = json.as_array().filter(|values| values.len() == columns)?;
    values.iter().map(KeyValue::from_json).collect()
}

/// The key of these columns; `None`: it has other ones.
pub(crate) fn key_from_json(columns: &[String], json: &Map<String, Json>) -> Option<Key> {
    let values = columns.iter().map(|name| KeyValue::from_json(json.get(name)?));
    values.collect::<Option<Key>>().filter(|_| json.len() == columns.len())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_json() {
        let columns: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
        let key = vec![
            KeyValue::Int(i64::MIN),
            KeyValue::Real(0.1 + 0.2),
            KeyValue::Text("ä\"".into()),
            KeyValue::Blob(vec![0, 255]),
        ];
        let json = key_to_json(&columns, &key);
        let text = json.to_string();
        let back: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(key_from_json(&columns, back.as_object().unwrap()), Some(key));
        assert_eq!(key_from_json(&columns[..3], back.as_object().unwrap()), None);
        for hostile in [json!({"hex": "0ä"}), json!({"real": "NaN"}), json!([1]), json!(null), json!(1.5), json!(true)]
        {
            assert_eq!(KeyValue::from_json(&hostile), None, "{hostile}");
        }
    }
}
