//! The compiler's answers to editors, in the protocol's words.

use dfc_compiler::ide::{self, ActionKind, CompletionKind, HintKind, LensCommand};
use ls_types::*;

use crate::commands;
use crate::snapshot::{Failure, Snapshot};

/// `textDocument/completion`
pub fn completion(snapshot: &Snapshot, params: CompletionParams) -> Result<Option<CompletionResponse>, Failure> {
    let (asked, offset) = snapshot.place(&params.text_document_position)?;
    let found = ide::completion(&snapshot.compiler, &asked.root, &asked.file, offset);
    let is_incomplete = found.iter().filter(|item| item.kind == CompletionKind::Stream).count() >= ide::COMPLETIONS;
    let items = found.into_iter().map(|item| {
        let (text, format) = match item.snippet {
            true if snapshot.client.snippets => (item.insert, InsertTextFormat::SNIPPET),
            true => (plain(&item.insert), InsertTextFormat::PLAIN_TEXT),
            false => (item.insert, InsertTextFormat::PLAIN_TEXT),
        };
        let range = snapshot.range(&asked.text, item.range);
        CompletionItem {
            label: item.label,
            kind: Some(completion_kind(item.kind)),
            detail: item.detail,
            documentation: item.doc.map(|doc| Documentation::MarkupContent(markdown(doc))),
            sort_text: Some(item.sort),
            insert_text_format: Some(format),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text: text })),
            ..CompletionItem::default()
        }
    });
    let items = items.collect();
    Ok(Some(match is_incomplete {
        true => CompletionResponse::List(CompletionList { is_incomplete, items }),
        false => CompletionResponse::Array(items),
    }))
}

/// A snippet without its places: `filter($1)` is `filter()`, `${1:x}` is `x`.
fn plain(snippet: &str) -> String {
    let mut out = String::new();
    let mut chars = snippet.chars().peekable();
    let mut open = 0;
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => {
                let braces = chars.next_if_eq(&'{').is_some();
                while chars.next_if(char::is_ascii_digit).is_some() {}
                if braces && chars.next_if_eq(&':').is_some() {
                    open += 1;
                } else if braces {
                    chars.next_if_eq(&'}');
                }
            }
            '}' if open > 0 => open -= 1,
            c => out.push(c),
        }
    }
    out
}

fn completion_kind(kind: CompletionKind) -> CompletionItemKind {
    match kind {
        CompletionKind::Field => CompletionItemKind::FIELD,
        CompletionKind::Stream => CompletionItemKind::VARIABLE,
        CompletionKind::Side => CompletionItemKind::KEYWORD,
        CompletionKind::Operator => CompletionItemKind::METHOD,
        CompletionKind::Parameter => CompletionItemKind::PROPERTY,
        CompletionKind::EnumValue => CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Function => CompletionItemKind::FUNCTION,
        CompletionKind::Const => CompletionItemKind::CONSTANT,
        CompletionKind::Param => CompletionItemKind::VALUE,
        CompletionKind::Type => CompletionItemKind::TYPE_PARAMETER,
        CompletionKind::Record => CompletionItemKind::STRUCT,
        CompletionKind::Setting => CompletionItemKind::PROPERTY,
        CompletionKind::Keyword => CompletionItemKind::KEYWORD,
        CompletionKind::File => CompletionItemKind::FILE,
        CompletionKind::Folder => CompletionItemKind::FOLDER,
    }
}

fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

/// `textDocument/hover`
pub fn hover(snapshot: &Snapshot, params: HoverParams) -> Result<Option<Hover>, Failure> {
    let (asked, offset) = snapshot.place(&params.text_document_position_params)?;
    Ok(ide::hover(&snapshot.compiler, &asked.root, &asked.file, offset).map(|hover| Hover {
        contents: HoverContents::Markup(markdown(hover.text)),
        range: Some(snapshot.range(&asked.text, hover.range)),
    }))
}

/// `textDocument/signatureHelp`
pub fn signature_help(snapshot: &Snapshot, params: SignatureHelpParams) -> Result<Option<SignatureHelp>, Failure> {
    let (asked, offset) = snapshot.place(&params.text_document_position_params)?;
    let Some(help) = ide::signature_help(&snapshot.compiler, &asked.root, &asked.file, offset) else { return Ok(None) };
    let signatures = help.signatures.into_iter().map(|signature| {
        // Offsets into a label are counted in UTF-16 always.
        let units = |bytes: usize| {
            let end = signature.label.floor_char_boundary(bytes);
            signature.label[..end].encode_utf16().count() as u32
        };
        let parameters = signature.params.iter().map(|param| ParameterInformation {
            label: ParameterLabel::LabelOffsets([units(param.label.start), units(param.label.end)]),
            documentation: param.doc.clone().map(|doc| Documentation::MarkupContent(markdown(doc))),
        });
        SignatureInformation {
            parameters: Some(parameters.collect()),
            documentation: signature.doc.clone().map(|doc| Documentation::MarkupContent(markdown(doc))),
            active_parameter: None,
            label: signature.label,
        }
    });
    Ok(Some(SignatureHelp {
        signatures: signatures.collect(),
        active_signature: Some(help.active as u32),
        active_parameter: help.parameter.map(|index| index as u32),
    }))
}

/// `textDocument/inlayHint`
pub fn inlay_hints(snapshot: &Snapshot, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>, Failure> {
    let asked = snapshot.asked(&params.text_document)?;
    let range = asked.text.bytes(params.range, snapshot.client.encoding);
    let hints =
        ide::inlay_hints(&snapshot.compiler, &asked.root, &asked.file, range).into_iter().map(|hint| InlayHint {
            position: snapshot.position(&asked.text, hint.offset),
            label: InlayHintLabel::String(hint.text),
            kind: (hint.kind == HintKind::Type).then_some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: hint.tooltip.map(|text| InlayHintTooltip::MarkupContent(markdown(text))),
            padding_left: Some(hint.kind == HintKind::Change),
            padding_right: None,
            data: None,
        });
    Ok(Some(hints.collect()))
}

/// `textDocument/codeAction`
pub fn code_actions(snapshot: &Snapshot, params: CodeActionParams) -> Result<Option<CodeActionResponse>, Failure> {
    let asked = snapshot.asked(&params.text_document)?;
    let range = asked.text.bytes(params.range, snapshot.client.encoding);
    let wanted = |kind: &CodeActionKind| match &params.context.only {
        Some(only) => only.iter().any(|only| {
            let (only, kind) = (only.as_str(), kind.as_str());
            only.is_empty() || kind == only || kind.strip_prefix(only).is_some_and(|rest| rest.starts_with('.'))
        }),
        None => true,
    };
    let actions = ide::code_actions(&snapshot.compiler, &asked.root, &asked.file, range).into_iter();
    let shown = actions.filter_map(|action| {
        let kind = match action.kind {
            ActionKind::QuickFix => CodeActionKind::QUICKFIX,
            ActionKind::Extract => CodeActionKind::REFACTOR_EXTRACT,
            ActionKind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        };
        if !wanted(&kind) {
            return None;
        }
        let diagnostics = action.mends.as_ref().and_then(|(code, place)| {
            let at = snapshot.location(place)?.range;
            let same = |d: &&Diagnostic| d.range == at && d.code == Some(NumberOrString::String(code.clone()));
            params.context.diagnostics.iter().find(same).map(|d| vec![d.clone()])
        });
        Some(CodeActionOrCommand::CodeAction(CodeAction {
            title: action.title,
            kind: Some(kind),
            diagnostics,
            edit: Some(snapshot.workspace_edit(&action.edits)?),
            is_preferred: action.preferred.then_some(true),
            ..CodeAction::default()
        }))
    });
    Ok(Some(shown.collect()))
}

/// `textDocument/codeLens`
pub fn code_lenses(snapshot: &Snapshot, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>, Failure> {
    let asked = snapshot.asked(&params.text_document)?;
    let lenses = ide::code_lenses(&snapshot.compiler, &asked.root, &asked.file).into_iter().map(|lens| {
        let command = match lens.command {
            LensCommand::Check => commands::CHECK,
            LensCommand::Run => commands::RUN,
            LensCommand::Plan => commands::PLAN,
        };
        CodeLens {
            range: snapshot.range(&asked.text, lens.range),
            command: Some(Command {
                title: lens.title,
                command: command.to_owned(),
                arguments: Some(vec![params.text_document.uri.as_str().into()]),
            }),
            data: None,
        }
    });
    Ok(Some(lenses.collect()))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_snippet_without_its_places_is_plain_text() {
        for (snippet, text) in [
            ("filter($1)$0", "filter()"),
            ("csv(\"${1:path}\", schema: ${2:Row})", "csv(\"path\", schema: Row)"),
            ("errors { ${1} }", "errors {  }"),
            ("a\\$b\\}", "a$b}"),
            ("f{$0}", "f{}"),
            ("$", ""),
        ] {
            assert_eq!(plain(snippet), text, "{snippet}");
        }
    }
}
