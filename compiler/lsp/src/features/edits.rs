//! Formatting.

use dfc_grammar::ast::Span;
use dfc_grammar::{Formatted, format, format_range};
use ls_types::{DocumentFormattingParams, DocumentRangeFormattingParams, TextEdit};

use crate::positions::Text;
use crate::snapshot::{Failure, Snapshot};

/// `textDocument/formatting`. There is one style: the client's options don't count.
pub fn formatting(snapshot: &Snapshot, params: DocumentFormattingParams) -> Result<Option<Vec<TextEdit>>, Failure> {
    let (_, text) = snapshot.file(&params.text_document.uri)?;
    Ok(Some(edits(snapshot, &text, format(&text.text))))
}

/// `textDocument/rangeFormatting`: the items that the range touches.
pub fn range_formatting(
    snapshot: &Snapshot,
    params: DocumentRangeFormattingParams,
) -> Result<Option<Vec<TextEdit>>, Failure> {
    let (_, text) = snapshot.file(&params.text_document.uri)?;
    let range = text.bytes(params.range, snapshot.client.encoding);
    Ok(Some(edits(snapshot, &text, format_range(&text.text, Span::new(range.start, range.end)))))
}

fn edits(snapshot: &Snapshot, text: &Text, formatted: Formatted) -> Vec<TextEdit> {
    let edits = formatted.edits.into_iter().map(|edit| {
        let bytes = dfc_compiler::ide::TextRange::new(edit.span.start as usize, edit.span.end as usize);
        TextEdit { range: snapshot.range(text, bytes), new_text: edit.text }
    });
    edits.collect()
}
