//! Paths and globs to files, with errors that help: the nearest existing name, what a folder holds.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::ConnectError;

/// A file to read.
#[derive(Debug, Clone)]
pub(crate) struct InputFile {
    /// Where it is; `None` for standard input.
    pub path: Option<PathBuf>,
    /// As the user would name it.
    pub name: Arc<str>,
    /// Its size as stored, in bytes, where that is known.
    pub size: Option<u64>,
}

/// The library's own rule for names that begin with a point is not used: it panics where a folder holds a name that is no
/// UTF-8 (glob 0.3.4). See [`is_hidden`].
const LIKE_A_SHELL: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: false, require_literal_leading_dot: false };

/// The files that a `path` stands for: itself, `-` for standard input, or the matches of a glob, sorted by name.
///
/// # Errors
/// A file that isn't there or is a folder, a glob that matches nothing.
pub(crate) fn expand(path: &str) -> Result<Vec<InputFile>, ConnectError> {
    refuse_nul(path)?;
    if path == "-" {
        return Ok(vec![InputFile { path: None, name: "standard input".into(), size: None }]);
    }
    // A file whose name happens to have a glob's characters is itself.
    if Path::new(path).exists() || !path.contains(['*', '?', '[']) {
        return Ok(vec![input_file(Path::new(path))?]);
    }
    let matches = glob::glob_with(path, LIKE_A_SHELL).map_err(|e| {
        let why = if e.msg.contains("range") { "a `[` has no `]`, or nothing stands between them" } else { e.msg };
        ConnectError::new("R0203", format!("`{path}` is no pattern for files: {why}"))
            .help("`*` stands for any text, `**` for any folders, `?` for one character, `[ab]` for one of some")
    })?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in matches {
        let entry = entry.map_err(|e| io_error("read", &e.path().display().to_string(), e.error()))?;
        if entry.is_file() && !is_hidden(&entry, path) {
            found.push(entry);
        }
    }
    refuse_unreadable_names(path)?;
    if found.is_empty() {
        let error = ConnectError::new("R0203", format!("no file matches `{path}`"));
        return Err(match folder_of_glob(path) {
            folder if !folder.exists() => error.help(format!("the folder `{}` doesn't exist", folder.display())),
            folder => error.help(folder_content(&folder)),
        });
    }
    found.sort();
    found.iter().map(|path| input_file(path)).collect()
}

/// No file can have such a name, and what stands behind the NUL would be cut off by the system.
///
/// # Errors
/// There is one.
pub(crate) fn refuse_nul(path: &str) -> Result<(), ConnectError> {
    if !path.contains('\0') {
        return Ok(());
    }
    Err(ConnectError::new(
        "R0204",
        format!("`{}` can't be the name of a file: it holds a NUL character", path.escape_debug()),
    )
    .help("take the `\\0` out of it"))
}

/// As in a shell: hidden files and folders are meant only by a part of the pattern that begins with a point. What a killed
/// job left behind is hidden.
fn is_hidden(entry: &Path, pattern: &str) -> bool {
    let meant = pattern.split('/').any(|part| part.starts_with('.') && part.contains(['*', '?', '[']));
    let fixed = folder_of_glob(pattern);
    let begins_with_a_point = |part: Component| match part {
        Component::Normal(name) => {
            name.as_encoded_bytes().starts_with(b".") && !fixed.components().any(|named| named == part)
        }
        _ => false,
    };
    !meant && entry.components().any(begins_with_a_point)
}

/// The glob library passes over names that are no UTF-8: a file must not be left out without a word. (Looks at the folder of
/// the pattern's last part; names of folders in between are not looked at.)
fn refuse_unreadable_names(path: &str) -> Result<(), ConnectError> {
    let (folder, last) = match path.rsplit_once('/') {
        Some((folder, last)) => (Path::new(if folder.is_empty() { "/" } else { folder }), last),
        None => (Path::new("."), path),
    };
    let Ok(pattern) = glob::Pattern::new(last) else { return Ok(()) };
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for name in entries.flatten().map(|entry| entry.file_name()) {
        let shown = name.to_string_lossy();
        let matches = pattern.matches_with(&shown, LIKE_A_SHELL) && !is_hidden(Path::new(&name), last);
        if name.to_str().is_none() && matches {
            return Err(ConnectError::new("R0204", format!("can't read `{shown}`: its name is not UTF-8"))
                .help("rename the file, or write a pattern that doesn't match it"));
        }
    }
    Ok(())
}

/// A file by its path.
///
/// # Errors
/// It isn't there, or is a folder.
pub(crate) fn input_file(path: &Path) -> Result<InputFile, ConnectError> {
    let name = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|e| io_error("read", &name, &e))?;
    if meta.is_dir() {
        return Err(ConnectError::new("R0204", format!("can't read `{name}`: it is a folder"))
            .help(format!("for all files in it write `{}`", path.join("*").display())));
    }
    // Pipes and devices say nothing about their size.
    let size = meta.is_file().then_some(meta.len());
    Ok(InputFile { path: Some(path.to_path_buf()), name: name.into(), size })
}

/// Passes a place at which a test may let something fail.
///
/// # Errors
/// What the test asks for: never in a program that is shipped.
pub fn passing(name: &'static str) -> Result<(), ConnectError> {
    dfc_trial::point(name).map_err(|error| io_error("pass", name, &error))
}

/// A failed file operation, with what to do: `verb` is `read`, `write` ….
pub(crate) fn io_error(verb: &str, name: &str, error: &io::Error) -> ConnectError {
    let (code, why) = match error.kind() {
        io::ErrorKind::NotFound => ("R0203", "there is no such file".to_string()),
        io::ErrorKind::PermissionDenied => ("R0204", "permission denied".to_string()),
        io::ErrorKind::IsADirectory => ("R0204", "it is a folder".to_string()),
        io::ErrorKind::NotADirectory => (
            "R0204",
            match Path::new(name).ancestors().skip(1).find(|p| p.is_file()) {
                Some(file) => format!("`{}` is a file, not a folder", file.display()),
                None => "one of its folders is a file".to_string(),
            },
        ),
        io::ErrorKind::AlreadyExists if Path::new(name.trim_end_matches('/')).is_file() => {
            ("R0204", format!("`{}` is a file, not a folder", name.trim_end_matches('/')))
        }
        io::ErrorKind::StorageFull => ("R0206", "no space is left on the disk".to_string()),
        _ => ("R0205", error.to_string()),
    };
    let result = ConnectError::new(code, format!("can't {verb} `{name}`: {why}"));
    match error.kind() {
        io::ErrorKind::NotFound => match nearest(Path::new(name)) {
            Some(help) => result.help(help),
            None => result,
        },
        io::ErrorKind::InvalidData if verb == "read" => {
            result.help("fetch the file again if it is damaged; `compression: none` reads it as it is")
        }
        io::ErrorKind::StorageFull => result.help("make room, or write to another disk"),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory if verb == "write" => {
            result.help("name another folder, or put the file elsewhere")
        }
        io::ErrorKind::PermissionDenied => result.help("give this user the right to it, or name another file"),
        _ => result,
    }
}

/// What the user probably meant by a path that isn't there.
fn nearest(path: &Path) -> Option<String> {
    if let Ok(end) = std::fs::read_link(path) {
        return Some(format!("`{}` is a link to `{}`, which isn't there", path.display(), end.display()));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Some(format!("the folder `{}` doesn't exist", folder.display()));
    }
    let wanted = path.file_name()?.to_string_lossy().to_lowercase();
    let best = names_in(folder)
        .into_iter()
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .min_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    match best {
        Some((d, name)) if d <= 2.max(wanted.chars().count() / 3) => {
            Some(format!("did you mean `{}`?", path.with_file_name(name).display()))
        }
        _ => Some(folder_content(folder)),
    }
}

/// The folder that a pattern looks in; `None`: it is no pattern.
pub(crate) fn glob_folder(path: &str) -> Option<PathBuf> {
    path.contains(['*', '?', '[']).then(|| folder_of_glob(path))
}

fn folder_of_glob(pattern: &str) -> PathBuf {
    let fixed = &pattern[..pattern.find(['*', '?', '[']).unwrap_or(pattern.len())];
    match fixed.rfind('/') {
        Some(0) => PathBuf::from("/"),
        Some(end) => PathBuf::from(&fixed[..end]),
        None => PathBuf::from("."),
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    // A folder may hold millions of files: a look at the first thousand is enough for a hint.
    let mut names: Vec<String> =
        entries.flatten().take(1000).map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn folder_content(folder: &Path) -> String {
    let names = names_in(folder);
    let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => format!("the folder `{}` is empty", folder.display()),
        n if n > 5 => format!("`{}` holds {} and others", folder.display(), shown.join(", ")),
        _ => format!("`{}` holds {}", folder.display(), shown.join(", ")),
    }
}

/// Edit distance (Levenshtein) in characters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
