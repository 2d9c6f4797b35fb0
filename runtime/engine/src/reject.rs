//! Rejected rows: counted, kept in a file, and judged by the job's `errors { limit, ratio, to }` (D15).
//!
//! With checkpoints they are part of them (D12): the file grows under a hidden name up to each barrier; what a task rejects behind a barrier
//! that others haven't passed waits in memory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use dfc_batch::{Place, RowError};
use dfc_connect::{Sealed, SpoolFile};
use dfc_ir::plan::{ErrorPolicy, SiteInfo};
use dfc_ir::stage::StagePlan;
use dfc_trial::{Planted, planted, turns};
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
    /// How many of them came from tasks whose last barrier was this one: behind it they are no part of its checkpoint, kept or not.
    behind: BTreeMap<u64, u64>,
    first: Option<RowError>,
    /// An earlier failure to write: said once.
    broken: Option<RunError>,
    /// With checkpoints: how far they are.
    epochs: Option<Epochs>,
}

/// Rejected rows as part of checkpoints.
struct Epochs {
    /// The hidden name, which carries the lineage.
    part: PathBuf,
    /// The last barrier up to which the file was closed, and its length there.
    sealed: u64,
    from: u64,
    bytes: u64,
    /// Over what was written since.
    crc: crc32fast::Hasher,
    /// Lines behind barriers that aren't complete, by the barrier.
    later: BTreeMap<u64, Vec<u8>>,
}

impl ErrorHandler {
    /// `folder`: where the rejected rows go; `None`: nowhere.
    pub(crate) fn new(plan: &StagePlan, folder: Option<PathBuf>, progress: Arc<Progress>) -> ErrorHandler {
        let path = folder.map(|folder| folder.join(dfc_ir::plan::ErrorPolicy::file_name(&plan.job.name)));
        let kept = Kept {
            path,
            file: None,
            closed: false,
            count: 0,
            behind: BTreeMap::new(),
            first: None,
            broken: None,
            epochs: None,
        };
        ErrorHandler { policy: plan.job.errors.clone(), sites: plan.sites.clone(), progress, kept: Mutex::new(kept) }
    }

    /// The job takes checkpoints: `lineage` names its hidden file, `resume` is what the checkpoint says from which it goes on: the barrier,
    /// how many rows were rejected until then, and the closed epochs.
    ///
    /// # Errors
    /// When the file isn't what the checkpoint says.
    pub(crate) fn take_checkpoints(
        &self,
        lineage: &str,
        resume: Option<(u64, u64, &[Sealed])>,
    ) -> Result<(), RunError> {
        let resume = resume.map(|(number, count, sealed)| match planted(Planted::RejectCountForgotten) {
            true => (number, 0, sealed),
            false => (number, count, sealed),
        });
        let mut kept = self.lock();
        let Some(path) = kept.path.clone() else {
            kept.count = resume.map_or(0, |(_, count, _)| count);
            self.progress.rejected.store(kept.count, Ordering::Relaxed);
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = path.with_file_name(format!(".{name}.dfc-{}.part", &lineage[..lineage.len().min(12)]));
        let failed = |e: std::io::Error| unkept(&part, &e);
        let (sealed, count, files) = resume.unwrap_or((0, 0, &[]));
        let length = files.iter().flat_map(|sealed| &sealed.files).map(|file| file.to).max().unwrap_or(0);
        if length > 0 {
            let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
            // A run that was killed in its last steps, or that has ended since, gave the file its final name.
            let published = !part.exists() && path.exists();
            let mut file = open(if published { &path } else { &part }).map_err(failed)?;
            for SpoolFile { from, to, crc, .. } in files.iter().flat_map(|sealed| &sealed.files) {
                if checksum(&mut file, *from, *to).map_err(failed)? != *crc {
                    let why = format!("bytes {from} to {to} are not those that the checkpoint kept");
                    return Err(RunError::Rejects {
                        path: part.clone(),
                        message: if published { "it is gone".into() } else { why },
                        help: "put the file back as it was, or start anew with `--fresh`".into(),
                    });
                }
            }
            if published {
                // It is taken back under its hidden name, and what was rejected later is rejected again.
                let copy = unfinished(&path);
                let taken = fs::copy(&path, &copy).and_then(|_| fs::rename(&copy, &part)).and_then(|()| open(&part));
                file = taken.map_err(failed)?;
            }
            file.set_len(length).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
            kept.file = Some(BufWriter::new(file));
        } else if let Err(e) = fs::remove_file(&part)
            && !matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        {
            return Err(failed(e));
        }
        kept.count = count;
        self.progress.rejected.store(count, Ordering::Relaxed);
        let crc = crc32fast::Hasher::new();
        kept.epochs = Some(Epochs { part, sealed, from: length, bytes: length, crc, later: BTreeMap::new() });
        Ok(())
    }

    /// Closes what was rejected before a complete barrier: how many rows in all, and the closed epoch, if there is a file.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn seal(&self, number: u64) -> Result<(u64, Option<Sealed>), RunError> {
        let mut kept = self.lock();
        kept.seal(number)
    }

    /// Takes rejected rows of a task whose last barrier was `passed`, and empties the list.
    ///
    /// # Errors
    /// When more were rejected than is tolerated, or they can't be kept.
    pub(crate) fn report(&self, errors: &mut Vec<RowError>, passed: u64) -> Result<(), RunError> {
        if errors.is_empty() {
            return Ok(());
        }
        turns::pass();
        let mut kept = self.lock();
        let keeps = self.limit() != Some(0);
        for error in errors.drain(..) {
            kept.count += 1;
            *kept.behind.entry(passed).or_default() += 1;
            if keeps && kept.broken.is_none() {
                kept.broken = kept.write(&error, self.sites.get(error.site.0 as usize), passed).err();
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

    /// Judges the ratio when all rows were read, before anything of the last checkpoint becomes visible.
    ///
    /// # Errors
    /// When more were rejected than is tolerated.
    pub(crate) fn judge(&self) -> Result<(), RunError> {
        let kept = self.lock();
        match self.over_ratio(kept.count, self.progress.rows_in()) {
            true => Err(self.stop(&kept)),
            false => Ok(()),
        }
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
    ///
    /// `goes_on`: the next run goes on from a checkpoint.
    pub(crate) fn conclude(&self, failure: RunError, goes_on: bool) -> RunError {
        let mut kept = self.lock();
        let closed = match kept.epochs {
            // The next run goes on with the hidden file: people get a copy.
            Some(_) if goes_on => kept.show(),
            _ => kept.close(),
        };
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
        let rows = self.progress.rows_in();
        let exceeded = match (self.limit(), self.policy.ratio_ppm) {
            (Some(0), _) => None,
            (Some(1), _) if kept.count > 1 => Some("1 row".to_owned()),
            (Some(limit), _) if kept.count > limit => Some(format!("{limit} rows")),
            (_, ppm) => ppm.map(|ppm| {
                let percent = format!("{:.4}", ppm as f64 / 10_000.0);
                let percent = percent.trim_end_matches('0').trim_end_matches('.');
                format!("{percent} % of the rows, of which {rows} were read")
            }),
        };
        let rejects = kept.path.clone().filter(|_| kept.count > 0 && self.limit() != Some(0));
        RunError::RowLimit { first: Box::new(first), count: kept.count, exceeded, rejects }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Kept {
    fn write(&mut self, error: &RowError, site: Option<&SiteInfo>, passed: u64) -> Result<(), RunError> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let failed = |e: std::io::Error| unkept(&path, &e);
        if self.file.is_none() {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|e| match folder.is_file() {
                    true => {
                        let message = format!("`{}` is a file", folder.display());
                        RunError::Rejects { path: path.clone(), message, help: NAME_A_FOLDER.into() }
                    }
                    false => failed(e),
                })?;
            }
            self.file = Some(BufWriter::new(File::create(self.unfinished(&path)).map_err(failed)?));
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = json(error, site).to_string();
        line.push('\n');
        match &mut self.epochs {
            Some(epochs) if passed > epochs.sealed && !planted(Planted::RejectsNotStaged) => {
                epochs.later.entry(passed).or_default().extend_from_slice(line.as_bytes());
                return Ok(());
            }
            Some(epochs) => epochs.note(line.as_bytes()),
            None => {}
        }
        file.write_all(line.as_bytes()).map_err(failed)
    }

    fn seal(&mut self, number: u64) -> Result<(u64, Option<Sealed>), RunError> {
        self.behind = self.behind.split_off(&number);
        let count = self.count - self.behind.values().sum::<u64>();
        let (Some(path), Some(epochs)) = (self.path.clone(), &mut self.epochs) else { return Ok((count, None)) };
        let failed = |e: std::io::Error| unkept(&path, &e);
        // What stands behind barriers that were given up is part of this one.
        let behind = epochs.later.split_off(&number);
        for lines in std::mem::replace(&mut epochs.later, behind).into_values() {
            epochs.note(&lines);
            if let Some(file) = &mut self.file {
                file.write_all(&lines).map_err(failed)?;
            }
        }
        let sealed = match &mut self.file {
            Some(file) => {
                file.flush().map_err(failed)?;
                file.get_ref().sync_all().map_err(failed)?;
                let crc = std::mem::take(&mut epochs.crc).finalize();
                // Whoever looks for it stands in another folder.
                let path = fs::canonicalize(&epochs.part).map_err(failed)?.display().to_string();
                let part = SpoolFile { path, from: epochs.from, to: epochs.bytes, crc };
                let bytes = part.to - part.from;
                epochs.from = epochs.bytes;
                Some(Sealed { number, rows: 0, bytes, files: vec![part], state: Value::Null })
            }
            None => None,
        };
        epochs.sealed = number;
        for lines in std::mem::take(&mut epochs.later).into_values() {
            epochs.note(&lines);
            if let Some(file) = &mut self.file {
                file.write_all(&lines).map_err(failed)?;
            }
        }
        Ok((count, sealed.filter(|sealed| sealed.bytes > 0)))
    }

    /// Lets people see what was rejected so far under the final name; the hidden file stays.
    fn show(&mut self) -> Result<Option<PathBuf>, RunError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let (Some(path), Some(file), Some(epochs)) = (self.path.clone(), &mut self.file, &self.epochs) else {
            return Ok(None);
        };
        let failed = |e: std::io::Error| unkept(&path, &e);
        for lines in epochs.later.values() {
            file.write_all(lines).map_err(failed)?;
        }
        file.flush().map_err(failed)?;
        let copy = unfinished(&path);
        fs::copy(&epochs.part, &copy).and_then(|_| fs::rename(&copy, &path)).map_err(failed)?;
        Ok(Some(path))
    }

    fn unfinished(&self, path: &Path) -> PathBuf {
        self.epochs.as_ref().map_or_else(|| unfinished(path), |epochs| epochs.part.clone())
    }

    /// Removes what an earlier run rejected: beside a run without a rejected row it would be taken for this one's.
    fn forget_earlier(&self) -> Result<(), RunError> {
        let Some(path) = &self.path else { return Ok(()) };
        match fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(unkept(path, &e)),
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
        let failed = |e: std::io::Error| unkept(&path, &e);
        let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        fs::rename(self.unfinished(&path), &path).map_err(failed)?;
        self.closed = true;
        Ok(Some(path))
    }
}

impl Epochs {
    fn note(&mut self, line: &[u8]) {
        self.bytes += line.len() as u64;
        self.crc.update(line);
    }
}

/// CRC-32 of a part of a file.
fn checksum(file: &mut File, from: u64, to: u64) -> std::io::Result<u32> {
    file.seek(SeekFrom::Start(from))?;
    let mut hasher = crc32fast::Hasher::new();
    let mut part = file.take(to.saturating_sub(from));
    let mut block = vec![0; 1 << 16];
    loop {
        match part.read(&mut block)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&block[..read]),
        }
    }
}

const NAME_A_FOLDER: &str = "`to` of `errors` must name a folder that can be written";

/// Rejected rows that the system doesn't take.
fn unkept(path: &Path, error: &std::io::Error) -> RunError {
    let (message, help) = match error.kind() {
        std::io::ErrorKind::StorageFull => {
            ("no space is left on the disk".into(), "make room, or name a folder on another disk as `to` of `errors`")
        }
        _ => (error.to_string(), NAME_A_FOLDER),
    };
    RunError::Rejects { path: path.to_path_buf(), message, help: help.into() }
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
