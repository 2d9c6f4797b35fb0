//! For code scanning: one SARIF 2.1.0 log over everything that was checked.
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::FileText;
use crate::codes;
use crate::{Diagnostic, Place, Severity};

/// The diagnostics of several checks, each with its files, as one SARIF log. Columns count characters (`unicodeCodePoints`).
pub fn sarif(checks: &[(&[Diagnostic], &[FileText])]) -> String {
    let used: BTreeSet<&str> = checks.iter().flat_map(|(found, _)| found.iter().map(|d| d.code)).collect();
    let rules = used.iter().map(|code| {
        let title = codes::explain(code).map_or(*code, |page| page.title);
        json!({ "id": code, "shortDescription": { "text": title } })
    });
    let results = checks.iter().flat_map(|(found, files)| found.iter().map(|d| result(d, files)));
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "dfc",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn result(diagnostic: &Diagnostic, files: &[FileText]) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = diagnostic.message.clone();
    for more in diagnostic.notes.iter().chain(&diagnostic.help) {
        text.push('\n');
        text.push_str(more);
    }
    let related = diagnostic.related.iter().enumerate().filter_map(|(k, (place, words))| {
        let mut location = location(*place, files)?;
        location["id"] = json!(k + 1);
        location["message"] = json!({ "text": words });
        Some(location)
    });
    json!({
        "ruleId": diagnostic.code,
        "level": level,
        "message": { "text": text },
        "locations": location(diagnostic.place, files).into_iter().collect::<Vec<_>>(),
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}

fn location(place: Place, files: &[FileText]) -> Option<Value> {
    let file = files.get(place.file.0 as usize)?;
    let (line, column) = file.position(place.start);
    let (end_line, end_column) = file.position(place.end.max(place.start));
    Some(json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&file.name) },
        "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
    } }))
}

/// A path as a relative reference: what a URI can't hold is percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
    path.bytes().map(|b| if keeps(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
