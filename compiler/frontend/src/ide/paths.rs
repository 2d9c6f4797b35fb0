//! The files that a path under way may mean: those of the project's folder, seen from the file at hand.

use std::path::Path;

use super::view::View;
use crate::files::normalise;

/// The entries of the folder that a path's last `/` closes: names, and whether each is a folder. Nothing outside of the
/// project's folder (that of the root file) is looked at.
pub fn listed(view: &View<'_>, written: &str) -> Vec<(String, bool)> {
    if written.contains("://") || Path::new(written).is_absolute() {
        return Vec::new();
    }
    let folder = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    let typed = written.rfind('/').map_or("", |at| &written[..at]);
    let project = normalise(&folder(view.root.path(view.db)));
    let wanted = normalise(&folder(view.file.path(view.db)).join(typed));
    let files = view.db.system();
    let inside = |inner: &Path, outer: &Path| {
        outer.as_os_str().is_empty() && !inner.starts_with("..") || inner.starts_with(outer)
    };
    if !inside(&wanted, &project) || !inside(&files.identity(&wanted), &files.identity(&project)) {
        return Vec::new();
    }
    let mut entries: Vec<(String, bool)> =
        files.list(&wanted).into_iter().filter(|(name, _)| !name.starts_with('.')).collect();
    entries.sort_by(|a, b| (!a.1, &a.0).cmp(&(!b.1, &b.0)));
    entries
}
