//! What the client can and wants, read once from its first message.

use std::collections::BTreeMap;

use ls_types::InitializeParams;
use serde_json::Value;

use crate::positions::Encoding;

/// The client's side of the agreement.
#[derive(Debug, Clone)]
pub struct Client {
    /// How columns are counted.
    pub encoding: Encoding,
    /// It asks for diagnostics of open files: they are not pushed.
    pub pulls: bool,
    /// It can be told that diagnostics should be asked for anew.
    pub refreshes_diagnostics: bool,
    /// It can be told that inlay hints should be asked for anew.
    pub refreshes_hints: bool,
    /// It takes snippets in completions.
    pub snippets: bool,
    /// It takes edits that name the version they are for.
    pub versioned_edits: bool,
    /// It takes symbols inside symbols.
    pub nested_symbols: bool,
    /// It folds whole lines only.
    pub line_folding: bool,
    /// It takes a message's code with a link.
    pub related_information: bool,
    /// It watches files for us.
    pub watches_files: bool,
}

impl Client {
    /// Reads the agreement.
    pub fn new(params: &InitializeParams) -> Client {
        let caps = &params.capabilities;
        let (document, workspace) = (caps.text_document.as_ref(), caps.workspace.as_ref());
        let offered = caps.general.as_ref().and_then(|general| general.position_encodings.clone()).unwrap_or_default();
        let push =
            setting(params.initialization_options.as_ref(), "diagnostics").and_then(Value::as_str) == Some("push");
        let yes = |flag: Option<bool>| flag.unwrap_or(false);
        Client {
            encoding: Encoding::choose(&offered),
            pulls: !push && document.is_some_and(|d| d.diagnostic.is_some()),
            refreshes_diagnostics: workspace
                .is_some_and(|w| w.diagnostics.as_ref().is_some_and(|d| yes(d.refresh_support))),
            refreshes_hints: workspace.is_some_and(|w| w.inlay_hint.as_ref().is_some_and(|h| yes(h.refresh_support))),
            snippets: document
                .and_then(|d| d.completion.as_ref()?.completion_item.as_ref())
                .is_some_and(|item| yes(item.snippet_support)),
            versioned_edits: workspace
                .and_then(|w| w.workspace_edit.as_ref())
                .is_some_and(|edit| yes(edit.document_changes)),
            nested_symbols: document
                .and_then(|d| d.document_symbol.as_ref())
                .is_some_and(|s| yes(s.hierarchical_document_symbol_support)),
            line_folding: document.and_then(|d| d.folding_range.as_ref()).is_some_and(|f| yes(f.line_folding_only)),
            related_information: document
                .and_then(|d| d.publish_diagnostics.as_ref())
                .is_none_or(|p| p.related_information != Some(false)),
            watches_files: workspace
                .and_then(|w| w.did_change_watched_files.as_ref())
                .is_some_and(|w| yes(w.dynamic_registration)),
        }
    }
}

/// The values of parameters that the settings give: `{ "params": { "since": "2026-01-01" } }`, also below `dfc`.
pub fn params(settings: Option<&Value>) -> Option<BTreeMap<String, String>> {
    let values = setting(settings, "params")?.as_object()?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(values.iter().map(|(name, value)| (name.clone(), text(value))).collect())
}

/// A setting by its name, also below `dfc`.
fn setting<'v>(settings: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    let settings = settings?;
    settings.get(name).or_else(|| settings.get("dfc")?.get(name))
}
