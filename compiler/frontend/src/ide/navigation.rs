//! Where names are declared and used, and giving them others.
//!
//! A name is followed through the whole program: a field from the record or the step that gave it its name along every
//! chain to the sink. What is renamed is checked before it is offered: the program with the new name must have no error
//! that it did not have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_diagnostics::Severity;
use dfc_typeck::Namespace;

use super::cursor::Cursor;
use super::meanings::{Meaning, Meanings, Word, field, meanings};
use super::place::{Place, place};
use super::rows::rows;
use super::view::{View, range};
use super::{FileEdit, FileRange, TextEdit, TextRange};
use crate::Compiler;
use crate::check::stream_columns;
use crate::db::Given;
use crate::files::{FileSystem, RealFiles, normalise};
use crate::items::{ItemNode, parse, program};

/// A place where something is named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The name.
    pub place: FileRange,
    /// Whether it is declared there.
    pub declares: bool,
}

/// Where the name at a place is declared.
pub fn definition(compiler: &Compiler, root: &Path, file: &Path, offset: usize) -> Vec<FileRange> {
    let view = View::new(compiler, root, file);
    let offset = view.offset(offset);
    if let Some(used) = used_file(&view, offset) {
        return vec![FileRange { file: used, range: TextRange::default() }];
    }
    let Some((_, word)) = word_at(&view, offset) else { return in_broken(&view, offset) };
    let places: BTreeSet<FileRange> = word.meanings.iter().filter_map(|meaning| declared(&view, meaning)).collect();
    places.into_iter().collect()
}

/// A name, as one program sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The program's root file.
    pub root: PathBuf,
    /// The file that the name stands in.
    pub file: PathBuf,
    /// Where, in bytes.
    pub offset: usize,
}

/// The name at a place in every program that knows it: those of `roots_of` its own file, and those of the files that it is
/// declared in.
pub fn everywhere(
    compiler: &Compiler,
    file: &Path,
    offset: usize,
    roots_of: impl Fn(&Path) -> Vec<PathBuf>,
) -> Vec<Named> {
    let mut out: Vec<Named> = Vec::new();
    let here = roots_of(file).into_iter().map(|root| Named { root, file: file.to_path_buf(), offset });
    out.extend(here);
    let mut declared = BTreeSet::new();
    for named in &out {
        let view = View::new(compiler, &named.root, file);
        let Some((_, word)) = word_at(&view, view.offset(offset)) else { continue };
        let occurrences = occurrences(&view, &word.meanings).occurrences;
        declared.extend(occurrences.into_iter().filter(|found| found.declares).map(|found| found.place));
    }
    for place in declared {
        for root in roots_of(&place.file) {
            if !out.iter().any(|named| named.root == root) {
                out.push(Named { root, file: place.file.clone(), offset: place.range.start });
            }
        }
    }
    out
}

/// Every place that means the same as a name, in these programs.
pub fn references(compiler: &Compiler, names: &[Named]) -> Vec<Occurrence> {
    let mut found = BTreeSet::new();
    for Named { root, file, offset } in names {
        let view = View::new(compiler, root, file);
        if let Some((_, word)) = word_at(&view, view.offset(*offset)) {
            found.extend(occurrences(&view, &word.meanings).occurrences);
        }
    }
    found.into_iter().collect()
}

/// The name at a place, if it can have another one.
///
/// # Errors
/// Why it can't, in words for the user.
pub fn prepare_rename(
    compiler: &Compiler,
    root: &Path,
    file: &Path,
    offset: usize,
) -> Result<(TextRange, String), String> {
    let view = View::new(compiler, root, file);
    let (item, word) = word_at(&view, view.offset(offset)).ok_or("there is no name here that could be another")?;
    let span = range(word.span.shift(item.start(view.db)));
    let name = unquoted(&view.text[span.start..span.end]).to_owned();
    if word.meanings.is_empty() {
        return Err(format!("`{name}` belongs to the language and keeps its name"));
    }
    if !word.meanings.iter().any(|meaning| declared(&view, meaning).is_some()) {
        return Err(format!("`{name}` is called so where it is read; write `rename(new: {name})` behind its source"));
    }
    Ok((span, name))
}

/// The changes that give a name another one, in these programs.
///
/// # Errors
/// Why it can't have that name, in words for the user.
pub fn rename(compiler: &Compiler, names: &[Named], new: &str) -> Result<Vec<FileEdit>, String> {
    let new = unquoted(new.trim());
    if new.is_empty() || new.contains(['`', '\n', '\r']) {
        return Err("a name has at least one character, and no backticks".to_owned());
    }
    let written = if is_plain(new) { new.to_owned() } else { format!("`{new}`") };
    let mut edits: BTreeMap<PathBuf, BTreeMap<TextRange, String>> = BTreeMap::new();
    let mut places: Vec<BTreeSet<FileRange>> = Vec::new();
    for Named { root, file, offset } in names {
        let (_, old) = prepare_rename(compiler, root, file, *offset)?;
        if old == new {
            return Ok(Vec::new());
        }
        let view = View::new(compiler, root, file);
        unfinished(&view, &old)?;
        let Some((_, word)) = word_at(&view, view.offset(*offset)) else { continue };
        lost(&view, &old, word)?;
        let found = occurrences(&view, &word.meanings);
        for Occurrence { place, .. } in &found.occurrences {
            edits.entry(place.file.clone()).or_default().insert(place.range, written.clone());
        }
        places.push(found.occurrences.into_iter().map(|found| found.place).collect());
        // What is read and written keeps its name outside.
        for place in found.unnamed {
            edits.entry(place.file).or_default().insert(place.range, format!(" = \"{}\"", escaped(&old)));
        }
    }
    let edits: Vec<FileEdit> = edits
        .into_iter()
        .map(|(file, edits)| {
            let edits = edits.into_iter().map(|(range, text)| TextEdit { range, text }).collect();
            FileEdit { file, edits }
        })
        .collect();
    for (Named { root, .. }, places) in names.iter().zip(&places) {
        same_meaning(compiler, root, &edits, places, new)?;
    }
    Ok(edits)
}

/// Whether a name stands in an item that is broken now: nobody knows what it means there.
fn unfinished(view: &View<'_>, name: &str) -> Result<(), String> {
    for file in &program(view.db, view.root).files {
        let (Ok(text), parsed) = (file.text(view.db), parse(view.db, *file)) else { continue };
        for token in &parsed.tokens {
            let named = unquoted(token.text(text)) == name;
            let inside = |item: &dfc_grammar::Broken| range(item.span).touches(token.span.start as usize);
            if named && parsed.broken.iter().any(inside) {
                return Err(hidden(name, text, token.span.start as usize, file.path(view.db)));
            }
        }
    }
    Ok(())
}

/// Whether a field's name stands where a mistake hides which field is meant.
fn lost(view: &View<'_>, name: &str, word: &Word) -> Result<(), String> {
    if word.meanings.iter().all(|meaning| matches!(meaning, Meaning::Item(_))) {
        return Ok(());
    }
    for item in program(view.db, view.root).flows(view.db).filter(|item| !item.remembered(view.db)) {
        let lost = &meanings(view.db, view.root, item).lost;
        let Some((span, _)) = lost.iter().find(|(_, lost)| lost == name) else { continue };
        let Some(file) = view.file_of(item.key(view.db)) else { continue };
        let Ok(text) = file.text(view.db) else { continue };
        let start = span.shift(item.start(view.db)).start as usize;
        return Err(hidden(name, text, start, file.path(view.db)));
    }
    Ok(())
}

/// Why a name can't be followed.
fn hidden(name: &str, text: &str, at: usize, file: &Path) -> String {
    let line = text[..at].matches('\n').count() + 1;
    format!(
        "`{name}` also stands in line {line} of `{}`, where a mistake hides what it means: mend that first",
        file.display()
    )
}

/// The item and the word at an offset of a sound item.
fn word_at<'a>(view: &View<'a>, offset: usize) -> Option<(ItemNode, &'a Word)> {
    let item = view.item_at(offset)?;
    let start = item.start(view.db) as usize;
    let found: &Arc<Meanings> = meanings(view.db, view.root, item);
    Some((item, found.at((offset - start) as u32)?))
}

/// The file that a `use` around an offset names.
fn used_file(view: &View<'_>, offset: usize) -> Option<PathBuf> {
    let item = view.item_at(offset)?;
    let dfc_grammar::ast::ItemKind::Use(used) = item.kind(view.db).as_ref() else { return None };
    let library = crate::items::used_file(view.db, view.file, &used.path);
    library.text(view.db).is_ok().then(|| library.path(view.db).clone())
}

/// Where something is declared: its name there. `None` for fields that are named outside only.
fn declared(view: &View<'_>, meaning: &Meaning) -> Option<FileRange> {
    let (Meaning::Item(key) | Meaning::Field(key, ..) | Meaning::Local(key, _)) = meaning;
    let item = *program(view.db, view.root).items.iter().find(|item| item.key(view.db) == key)?;
    let words = &meanings(view.db, view.root, item).words;
    let word = words.iter().find(|word| word.declares && word.meanings.contains(meaning))?;
    place_of(view, item, word)
}

/// A word's place in its file. `None` in an item that is broken now: its places are those of an older text.
fn place_of(view: &View<'_>, item: ItemNode, word: &Word) -> Option<FileRange> {
    if item.remembered(view.db) {
        // Its name is still where it was, behind the item word.
        let declares = word.declares && matches!(word.meanings.as_slice(), [Meaning::Item(_)]);
        if !declares {
            return None;
        }
    }
    let file = view.file_of(item.key(view.db))?;
    let span = word.span.shift(item.start(view.db));
    let text = file.text(view.db).as_ref().ok()?;
    text.get(span.start as usize..span.end as usize)?;
    Some(FileRange { file: file.path(view.db).clone(), range: range(span) })
}

/// What [`occurrences`] found.
struct Found {
    occurrences: Vec<Occurrence>,
    /// Where the names outside can be written of declared fields that have none.
    unnamed: Vec<FileRange>,
}

/// Everything in the program that means one of these, or what must have the same name.
fn occurrences(view: &View<'_>, wanted: &[Meaning]) -> Found {
    let items = &program(view.db, view.root).items;
    let all: Vec<(ItemNode, &Arc<Meanings>)> =
        items.iter().map(|item| (*item, meanings(view.db, view.root, *item))).collect();
    let wanted = with_same(wanted, all.iter().flat_map(|(_, found)| &found.same));
    let mut found = Found { occurrences: Vec::new(), unnamed: Vec::new() };
    for (item, words) in all {
        for word in words.words.iter().filter(|word| word.meanings.iter().any(|m| wanted.contains(m))) {
            if let Some(place) = place_of(view, item, word) {
                found.occurrences.push(Occurrence { place, declares: word.declares });
            }
        }
        for unnamed in words.unnamed.iter().filter(|unnamed| wanted.contains(&unnamed.field)) {
            let end = (unnamed.end + item.start(view.db)) as usize;
            if let Some(file) = view.file_of(item.key(view.db)) {
                let file = file.path(view.db).clone();
                found.unnamed.push(FileRange { file, range: TextRange::empty(end) });
            }
        }
    }
    found
}

/// These and everything that is tied to them.
fn with_same<'m>(wanted: &[Meaning], same: impl Iterator<Item = &'m (Meaning, Meaning)>) -> BTreeSet<Meaning> {
    let mut ties: HashMap<&Meaning, Vec<&Meaning>> = HashMap::new();
    for (a, b) in same {
        ties.entry(a).or_default().push(b);
        ties.entry(b).or_default().push(a);
    }
    let mut out: BTreeSet<Meaning> = BTreeSet::new();
    let mut open: Vec<&Meaning> = wanted.iter().collect();
    while let Some(meaning) = open.pop() {
        if out.insert(meaning.clone()) {
            open.extend(ties.get(meaning).into_iter().flatten().copied());
        }
    }
    out
}

/// The declaration of a name in an item that is broken: of a field there, else of anything of that name.
fn in_broken(view: &View<'_>, offset: usize) -> Vec<FileRange> {
    let broken = &parse(view.db, view.file).broken;
    if !broken.iter().any(|item| range(item.span).touches(offset)) {
        return Vec::new();
    }
    let end = view.tokens.iter().find(|t| range(t.span).touches(offset) && !t.kind.is_trivia()).map(|t| range(t.span));
    let Some(word) = end else { return Vec::new() };
    let name = unquoted(&view.text[word.start..word.end]);
    let cursor = Cursor::new(view.text, view.tokens, word.start);
    if let Place::Arg(arg) = place(&cursor) {
        let rows = rows(view, &cursor, &arg);
        let columns = rows.left.iter().chain(rows.right.iter().flatten());
        let column = columns.into_iter().find(|column| column.name == name);
        if let Some(place) = column.and_then(field).and_then(|meaning| declared(view, &meaning)) {
            return vec![place];
        }
    }
    let spaces =
        [Namespace::Stream, Namespace::Value, Namespace::Record, Namespace::Fn, Namespace::Operator, Namespace::Job];
    let item = spaces.into_iter().find_map(|space| view.find(space, name));
    item.and_then(|item| declared(view, &Meaning::Item(item.key(view.db).clone()))).into_iter().collect()
}

/// A name without its backticks.
fn unquoted(name: &str) -> &str {
    name.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or(name)
}

/// Whether a name needs no backticks.
fn is_plain(name: &str) -> bool {
    let tokens = dfc_grammar::lex(name);
    matches!(tokens.as_slice(), [token] if token.kind == dfc_grammar::TokenKind::Name)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Files with some of them changed.
struct Changed {
    texts: HashMap<PathBuf, String>,
}

impl FileSystem for Changed {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.texts.get(&self.identity(path)) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => RealFiles.read(path),
        }
    }

    fn identity(&self, path: &Path) -> PathBuf {
        normalise(path)
    }
}

/// Whether a program has no error after these changes that it did not have before, and means the same: the new name stands for one
/// thing at exactly these places, and every stream has as many fields as it had.
fn same_meaning(
    compiler: &Compiler,
    root: &Path,
    edits: &[FileEdit],
    places: &BTreeSet<FileRange>,
    new: &str,
) -> Result<(), String> {
    let before = compiler.findings(root);
    let errors = |found: &crate::editor::Findings| -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for diagnostic in found.diagnostics.iter().filter(|d| d.severity == Severity::Error) {
            *counts.entry(diagnostic.code).or_default() += 1;
        }
        counts
    };
    let texts = before.files.iter().map(|(path, text)| {
        let edits = edits.iter().filter(|edit| edit.file == *path).flat_map(|edit| &edit.edits);
        (normalise(path), applied(text, edits))
    });
    let mut changed = Compiler::with_files(Arc::new(Changed { texts: texts.collect() }));
    changed.set_catalog(compiler.db.asked().catalog());
    changed.set_params(Given::get(&compiler.db).values(&compiler.db).clone());
    let after = changed.findings(root);
    let (had, has) = (errors(&before), errors(&after));
    let worse = after.diagnostics.iter().find(|d| d.severity == Severity::Error && has.get(d.code) > had.get(d.code));
    if let Some(error) = worse {
        return Err(format!("`{new}` can't be the name: {}", error.message));
    }
    let moved: BTreeSet<(PathBuf, usize)> = places.iter().map(|place| moved(place, edits)).collect();
    if let Some((file, offset)) = moved.first() {
        let view = View::new(&changed, root, file);
        if let Some((_, word)) = word_at(&view, view.offset(*offset)) {
            let found = occurrences(&view, &word.meanings).occurrences;
            let found: BTreeSet<_> =
                found.into_iter().map(|found| (found.place.file, found.place.range.start)).collect();
            if found != moved {
                return Err(format!("`{new}` can't be the name: something else is called `{new}` where this is used"));
            }
        }
    }
    let widths = |compiler: &Compiler| -> Vec<Option<usize>> {
        let view = View::new(compiler, root, root);
        let flows = view.program().flows(view.db);
        flows.map(|item| stream_columns(view.db, view.root, item).as_ref().map(|columns| columns.len())).collect()
    };
    if widths(compiler) != widths(&changed) {
        return Err(format!("`{new}` can't be the name: a stream that this goes through has a field `{new}` already"));
    }
    Ok(())
}

/// Where a place is after changes.
fn moved(place: &FileRange, edits: &[FileEdit]) -> (PathBuf, usize) {
    let edits = edits.iter().filter(|edit| edit.file == place.file).flat_map(|edit| &edit.edits);
    let before = edits.filter(|edit| edit.range.start < place.range.start);
    let start = before.fold(place.range.start, |at, edit| at + edit.text.len() - (edit.range.end - edit.range.start));
    (place.file.clone(), start)
}

/// A text with changes, which are in order and don't overlap.
fn applied<'e>(text: &str, edits: impl Iterator<Item = &'e TextEdit>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        out.push_str(text.get(done..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        done = edit.range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}
