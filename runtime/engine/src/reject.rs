//! Rejected rows: counted, kept in a file, and judged by the job's `errors { limit, ratio, to }` (D15).

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use dfc_batch::{Place, RowError};
use dfc_ir::plan::{ErrorPolicy, SiteInfo};
use dfc_ir::stage::StagePlan;
use serde_json::{Map, Value};

use crate::RunError;
use crate::observe::Progress;

/// A ratio is judged while running only after so many rows were read.
const RATIO_AFTER: u64 = 1_000;

/// Takes the rejected rows of all tasks.
pub(crate) struct ErrorHandler {
    policy: ErrorPolicy,
    /// Where expressions stand in the pipeline, by [`dfc_ir::Site`].
    sites: Vec<SiteInfo>,
    progress: Arc<Progress>,
    kept: Mutex<Kept>,
}

struct Kept {
    /// The final name, if rows are kept at all.
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    /// The file has its final name.
    closed: bool,
    count: u64,
    first: Option<RowError>,
    /// An earlier failure to write: said once.
    broken: Option<RunError>,
}

impl ErrorHandler {
    /// `folder`: where the rejected rows go; `None`: nowhere.
    pub(crate) fn new(plan: &StagePlan, folder: Option<PathBuf>, progress: Arc<Progress>) -> ErrorHandler {
        let path = folder.map(|folder| folder.join(format!("{}-rejects.jsonl", plan.job.name)));
        let kept = Kept { path, file: None, closed: false, count: 0, first: None, broken: None };
        ErrorHandler { policy: plan.job.errors.clone(), sites: plan.sites.clone(), progress, kept: Mutex::new(kept) }
    }

    /// Takes rejected rows, and empties the list.
    ///
    /// # Errors
    /// When more were rejected than is tolerated, or they can't be kept.
    pub(crate) fn report(&self, errors: &mut Vec<RowError>) -> Result<(), RunError> {
        if errors.is_empty() {
            return Ok(());
        }
        let mut kept = self.lock();
        let keeps = self.limit() != Some(0);
        for error in errors.drain(..) {
            kept.count += 1;
            if keeps && kept.broken.is_none() {
                kept.broken = kept.write(&error, self.sites.get(error.site.0 as usize)).err();
            }
            // Tasks run side by side: of the rows that were seen the one that stands first is the one to name.
            if kept.first.as_ref().is_none_or(|first| comes_before(&error, first)) {
                kept.first = Some(error);
            }
        }
        self.progress.rejected.store(kept.count, Ordering::Relaxed);
        if let Some(broken) = kept.broken.clone() {
            return Err(broken);
        }
        let over_limit = self.limit().is_some_and(|limit| kept.count > limit);
        let rows = self.progress.rows_in();
        if over_limit || (rows >= RATIO_AFTER && self.over_ratio(kept.count, rows)) {
            return Err(self.stop(&kept));
        }
        Ok(())
    }

    /// Judges the ratio at the end and puts the file of rejected rows in its place: its path, if there is one.
    ///
    /// # Errors
    /// When more were rejected than is tolerated, or they can't be kept.
    pub(crate) fn finish(&self) -> Result<Option<PathBuf>, RunError> {
        let mut kept = self.lock();
        let path = kept.close()?;
        if kept.count == 0 {
            kept.forget_earlier()?;
        }
        // Over the ratio or not: the file is in its place, and says why.
        if self.over_ratio(kept.count, self.progress.rows_in()) {
            return Err(self.stop(&kept));
        }
        Ok(path)
    }

    /// After a failure: the rejected rows so far are kept all the same; a failure by rejected rows gets its last numbers.
    pub(crate) fn conclude(&self, failure: RunError) -> RunError {
        let mut kept = self.lock();
        let closed = kept.close();
        match failure {
            RunError::RowLimit { .. } => {
                let mut failure = self.stop(&kept);
                if let RunError::RowLimit { rejects, .. } = &mut failure {
                    *rejects = closed.ok().flatten();
                }
                failure
            }
            other => other,
        }
    }

    /// Rows rejected so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// `None`: no limit of number.
    fn limit(&self) -> Option<u64> {
        self.policy.limit.or(if self.policy.ratio_ppm.is_none() { Some(0) } else { None })
    }

    fn over_ratio(&self, count: u64, rows: u64) -> bool {
        let Some(ppm) = self.policy.ratio_ppm else { return false };
        u128::from(count) * 1_000_000 > u128::from(ppm) * u128::from(rows)
    }

    fn stop(&self, kept: &Kept) -> RunError {
        let first = kept.first.clone().unwrap_or_else(|| RowError::new("R0199", "a row was rejected"));
        let limit = match self.limit() {
            Some(0) => Some("none".to_owned()),
            Some(1) => Some("1 row".to_owned()),
            limit => limit.map(|limit| format!("{limit} rows")),
        };
        let ratio = self.policy.ratio_ppm.map(|ppm| {
            let percent = format!("{:.4}", ppm as f64 / 10_000.0);
            format!("{} % of the rows", percent.trim_end_matches('0').trim_end_matches('.'))
        });
        let tolerated: Vec<String> = limit.into_iter().chain(ratio).collect();
        let rejects = kept.path.clone().filter(|_| kept.count > 0 && self.limit() != Some(0));
        RunError::RowLimit { first: Box::new(first), count: kept.count, tolerated: tolerated.join(" and "), rejects }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Kept {
    fn write(&mut self, error: &RowError, site: Option<&SiteInfo>) -> Result<(), RunError> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let failed = |e: std::io::Error| RunError::Rejects { path: path.clone(), message: e.to_string() };
        if self.file.is_none() {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|e| match folder.is_file() {
                    true => {
                        RunError::Rejects { path: path.clone(), message: format!("`{}` is a file", folder.display()) }
                    }
                    false => failed(e),
                })?;
            }
            self.file = Some(BufWriter::new(File::create(unfinished(&path)).map_err(failed)?));
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = json(error, site).to_string();
        line.push('\n');
        file.write_all(line.as_bytes()).map_err(failed)
    }

    /// Removes what an earlier run rejected: beside a run without a rejected row it would be taken for this one's.
    fn forget_earlier(&self) -> Result<(), RunError> {
        let Some(path) = &self.path else { return Ok(()) };
        match fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(RunError::Rejects { path: path.clone(), message: e.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Gives the file its final name.
    fn close(&mut self) -> Result<Option<PathBuf>, RunError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if self.closed {
            return Ok(self.path.clone());
        }
        let (Some(path), Some(file)) = (self.path.clone(), self.file.take()) else { return Ok(None) };
        let failed = |e: std::io::Error| RunError::Rejects { path: path.clone(), message: e.to_string() };
        let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        fs::rename(unfinished(&path), &path).map_err(failed)?;
        self.closed = true;
        Ok(Some(path))
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Whether `a` stands before `b`. A row whose place isn't known stands after those that are.
fn comes_before(a: &RowError, b: &RowError) -> bool {
    match (&a.place, &b.place) {
        (Some(a), Some(b)) => position(a) < position(b),
        (Some(_), None) => true,
        (None, _) => false,
    }
}

fn position(place: &Place) -> (&str, Option<u64>, Option<u64>, Option<u64>) {
    (&place.source, place.offset, place.line, place.row)
}

/// A rejected row as it stands in the file of rejects; absent facts are left out.
fn json(error: &RowError, site: Option<&SiteInfo>) -> Value {
    let place = error.place.as_ref();
    // The first site stands for "nowhere".
    let site = site.filter(|site| site.line > 0);
    let text = |value: &str| Some(Value::from(value));
    let facts: [(&str, Option<Value>); 11] = [
        ("operator", text(&error.node)),
        ("source", place.and_then(|p| text(&p.source))),
        ("offset", place.and_then(|p| p.offset).map(Value::from)),
        ("line", place.and_then(|p| p.line).map(Value::from)),
        ("row", place.and_then(|p| p.row).map(Value::from)),
        ("field", error.field.as_deref().and_then(text)),
        ("value", error.value.as_deref().and_then(text)),
        ("rule", text(&error.rule)),
        ("expression", site.and_then(|site| text(&site.text))),
        ("code", text(error.code)),
        ("raw", error.raw.as_deref().and_then(text)),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(facts.collect::<Map<_, _>>())
}
