//! One JSON object a line and diagnostic, for editors and CI.

use serde_json::{Map, Value, json};

use super::FileText;
use crate::{Diagnostic, Place};

/// The diagnostics as JSON lines. Each object holds `code, severity, message, file, line, column, end_line, end_column,
/// labels[], notes[], help, fixes[]`; lines and columns count from 1, columns in characters, ends are exclusive.
pub fn json(diagnostics: &[Diagnostic], files: &[FileText]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let mut object = Map::new();
        object.insert("code".into(), json!(diagnostic.code));
        object.insert("severity".into(), json!(diagnostic.severity));
        object.insert("message".into(), json!(diagnostic.message));
        place(diagnostic.place, files, &mut object);
        let mut labels = vec![labelled(diagnostic.place, &diagnostic.label, files)];
        labels.extend(diagnostic.related.iter().map(|(at, words)| labelled(*at, words, files)));
        object.insert("labels".into(), Value::Array(labels));
        object.insert("notes".into(), json!(diagnostic.notes));
        object.insert("help".into(), json!(diagnostic.help));
        let fixes = diagnostic.fixes.iter().map(|fix| {
            let mut object = Map::new();
            object.insert("title".into(), json!(fix.title));
            place(fix.place, files, &mut object);
            object.insert("text".into(), json!(fix.text));
            Value::Object(object)
        });
        object.insert("fixes".into(), Value::Array(fixes.collect()));
        out.push_str(&Value::Object(object).to_string());
        out.push('\n');
    }
    out
}

fn labelled(at: Place, words: &str, files: &[FileText]) -> Value {
    let mut object = Map::new();
    object.insert("message".into(), json!(words));
    place(at, files, &mut object);
    Value::Object(object)
}

fn place(at: Place, files: &[FileText], object: &mut Map<String, Value>) {
    let Some(file) = files.get(at.file.0 as usize) else { return };
    let (line, column) = file.position(at.start);
    let (end_line, end_column) = file.position(at.end.max(at.start));
    object.insert("file".into(), json!(file.name));
    object.insert("line".into(), json!(line));
    object.insert("column".into(), json!(column));
    object.insert("end_line".into(), json!(end_line));
    object.insert("end_column".into(), json!(end_column));
}
