//! A disk in memory that crashes: what was not synced may be lost, torn or kept, as a seed says. For simulations and tests.
//!
//! It promises less than any real file system: after a power failure each change of a name that no later sync of its folder covers may
//! have happened or not, independently of the others (a rename is one change); and a file that was not synced has any mixture of its
//! durable and its written bytes. It may not know what is kept on it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, Entry, LockKind, Locked};

/// How a machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed: what it wrote stays.
    Process,
    /// The power fails: what it didn't sync may be lost.
    Power,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct ModelDisk(Arc<Mutex<State>>);

struct State {
    random: u64,
    /// Changes so far.
    operations: u64,
    /// Before the operation of this number the machine stops.
    crash_at: Option<(u64, Crash)>,
    /// The operation of this number fails in this way, once.
    fault_at: Option<(u64, io::ErrorKind)>,
    /// It has stopped in this way: nothing works until it is started again.
    stopped: Option<Crash>,
    /// Which start of the machine this is: handles of earlier ones are dead.
    generation: u64,
    next_id: u64,
    files: HashMap<u64, Bytes>,
    folders: BTreeMap<PathBuf, Folder>,
    locks: HashMap<PathBuf, Vec<(u64, LockKind)>>,
}

#[derive(Default, Clone)]
struct Bytes {
    written: Vec<u8>,
    durable: Vec<u8>,
}

/// The names in a folder. What is durable is what they were at the last sync, plus any of the changes since.
#[derive(Default, Clone)]
struct Folder {
    names: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    File(u64),
    Folder,
}

/// Names that change together: what each is afterwards.
type Change = Vec<(String, Option<Node>)>;

impl ModelDisk {
    /// An empty disk with the folder `/`; everything that chance decides follows from the seed.
    pub fn new(seed: u64) -> ModelDisk {
        ModelDisk(Arc::new(Mutex::new(State {
            random: seed ^ 0x9e37_79b9_7f4a_7c15,
            operations: 0,
            crash_at: None,
            fault_at: None,
            stopped: None,
            generation: 0,
            next_id: 0,
            files: HashMap::new(),
            folders: BTreeMap::from([(PathBuf::from("/"), Folder::default())]),
            locks: HashMap::new(),
        })))
    }

    /// Something else on the same machine does something to the outside world: a change like any other, which may be the last one.
    ///
    /// # Errors
    /// The machine has stopped, or this change fails.
    pub fn elsewhere(&self) -> io::Result<()> {
        self.state().change()
    }

    /// Changes so far: each of them is a point where it can crash or fail.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Stops the machine before its change of this number (the next is [`ModelDisk::operations`]).
    pub fn crash_at(&self, operation: u64, crash: Crash) {
        self.state().crash_at = Some((operation, crash));
    }

    /// Lets the change of this number fail once, with nothing done.
    pub fn fault_at(&self, operation: u64, kind: io::ErrorKind) {
        self.state().fault_at = Some((operation, kind));
    }

    /// Whether the machine has stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped.is_some()
    }

    /// Stops the machine now, and starts it again: every open file and lock of before is dead.
    pub fn restart(&self, crash: Crash) {
        let mut state = self.state();
        if state.stopped.take().unwrap_or(crash) == Crash::Power {
            state.lose();
        }
        state.crash_at = None;
        state.fault_at = None;
        state.generation += 1;
        state.locks.clear();
    }

    /// Every file with its bytes, in order.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.state();
        let mut all = Vec::new();
        for (path, folder) in &state.folders {
            for (name, node) in &folder.names {
                if let Node::File(id) = node {
                    all.push((path.join(name), state.files[id].written.clone()));
                }
            }
        }
        all
    }

    /// Puts bytes in the place of a file's, durably, past all rules: damage.
    pub fn damage(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        if let Ok(id) = state.file(path) {
            state.files.insert(id, Bytes { written: bytes.to_vec(), durable: bytes.to_vec() });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, state: &State, id: u64) -> Box<dyn DiskFile> {
        Box::new(Handle { disk: self.clone(), generation: state.generation, id })
    }
}

impl State {
    /// Every change passes here first.
    fn change(&mut self) -> io::Result<()> {
        self.reading()?;
        let number = self.operations;
        self.operations += 1;
        if let Some((at, crash)) = self.crash_at
            && number >= at
        {
            self.stopped = Some(crash);
            return self.reading();
        }
        match self.fault_at {
            Some((at, kind)) if number == at => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn reading(&self) -> io::Result<()> {
        if self.stopped.is_some() { Err(io::Error::other("the machine has stopped")) } else { Ok(()) }
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        self.folders.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let (folder, name) = split(path).ok()?;
        self.folders.get(folder)?.names.get(name).copied()
    }

    fn file(&self, path: &Path) -> io::Result<u64> {
        match self.node(path) {
            Some(Node::File(id)) => Ok(id),
            Some(Node::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn set(&mut self, folder: &Path, change: Change) -> io::Result<()> {
        let folder = self.folder(folder)?;
        for (name, node) in &change {
            put(&mut folder.names, name, *node);
        }
        folder.pending.push(change);
        Ok(())
    }

    /// What a power failure leaves.
    fn lose(&mut self) {
        let mut random = self.random;
        let mut chance = move |of: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % of
        };
        for folder in self.folders.values_mut() {
            let mut names = std::mem::take(&mut folder.durable);
            for change in std::mem::take(&mut folder.pending) {
                if chance(2) == 0 {
                    for (name, node) in change {
                        put(&mut names, &name, node);
                    }
                }
            }
            (folder.names, folder.durable) = (names.clone(), names);
        }
        let mut ids: Vec<_> = self.files.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(file) = self.files.get_mut(&id) else { continue };
            if file.written == file.durable {
                continue;
            }
            let kept = match chance(3) {
                0 => file.durable.clone(),
                1 => file.written.clone(),
                _ => torn(file, &mut chance),
            };
            *file = Bytes { written: kept.clone(), durable: kept };
        }
        // A folder whose name is lost is lost with all that is in it.
        loop {
            let lost: Vec<_> =
                self.folders.keys().filter(|path| *path != Path::new("/") && !self.has(path)).cloned().collect();
            if lost.is_empty() {
                break;
            }
            self.folders.retain(|path, _| !lost.contains(path));
        }
        let live: HashSet<u64> = self
            .folders
            .values()
            .flat_map(|folder| folder.names.values())
            .filter_map(|node| match node {
                Node::File(id) => Some(*id),
                Node::Folder => None,
            })
            .collect();
        self.files.retain(|id, _| live.contains(id));
        self.random = chance(u64::MAX);
    }

    fn has(&self, path: &Path) -> bool {
        self.node(path) == Some(Node::Folder)
    }
}

/// Somewhere between the durable and the written bytes, perhaps with a hole where blocks never arrived.
fn torn(file: &Bytes, chance: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let (old, new) = (file.durable.len() as u64, file.written.len() as u64);
    let (low, high) = (old.min(new), old.max(new));
    let end = (low + chance(high - low + 1)) as usize;
    let mut bytes = file.written.clone();
    bytes.resize(end.max(bytes.len()), 0);
    bytes.truncate(end);
    let first = (old as usize).min(end);
    if first < end && chance(2) == 0 {
        let from = first + chance((end - first) as u64) as usize;
        bytes[from..].fill(0);
    }
    bytes
}

fn put(names: &mut BTreeMap<String, Node>, name: &str, node: Option<Node>) {
    match node {
        Some(node) => drop(names.insert(name.to_owned(), node)),
        None => drop(names.remove(name)),
    }
}

fn split(path: &Path) -> io::Result<(&Path, &str)> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok((folder, name))
}

impl Disk for ModelDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.change()?;
        let (folder, name) = split(path)?;
        if state.node(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = state.next_id;
        state.set(folder, vec![(name.to_owned(), Some(Node::File(id)))])?;
        state.next_id += 1;
        state.files.insert(id, Bytes::default());
        Ok(self.handle(&state, id))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        state.reading()?;
        Ok(self.handle(&state, state.file(path)?))
    }

    fn read(&self, path: &Path, from: u64, limit: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        state.reading()?;
        let bytes = &state.files[&state.file(path)?].written;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
        let end = from.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(bytes.len());
        Ok(bytes[from..end].to_vec())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.reading()?;
        Ok(state.files[&state.file(path)?].written.len() as u64)
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let id = state.file(path)?;
        if let Some(file) = state.files.get_mut(&id) {
            file.written.resize(usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?, 0);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let id = state.file(from)?;
        let ((from_folder, from_name), (to_folder, to_name)) = (split(from)?, split(to)?);
        let (gone, there) = ((from_name.to_owned(), None), (to_name.to_owned(), Some(Node::File(id))));
        if from_folder == to_folder {
            return state.set(to_folder, vec![gone, there]);
        }
        state.set(to_folder, vec![there])?;
        state.set(from_folder, vec![gone])
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let id = state.file(from)?;
        if state.node(to).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (folder, name) = split(to)?;
        state.set(folder, vec![(name.to_owned(), Some(Node::File(id)))])
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.file(path)?;
        let (folder, name) = split(path)?;
        state.set(folder, vec![(name.to_owned(), None)])
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut state = self.state();
        state.reading()?;
        let names = state.folder(folder)?.names.clone();
        let entry = |(name, node): (String, Node)| match node {
            Node::Folder => Entry { name, folder: true, bytes: 0 },
            Node::File(id) => Entry { name, folder: false, bytes: state.files[&id].written.len() as u64 },
        };
        Ok(names.into_iter().map(entry).collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let (folder, name) = split(path)?;
        if state.node(path).is_some() || path == Path::new("/") {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.set(folder, vec![(name.to_owned(), Some(Node::Folder))])?;
        state.folders.insert(path.to_owned(), Folder::default());
        Ok(())
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.state().folders.contains_key(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let folder = state.folder(folder)?;
        folder.durable = folder.names.clone();
        folder.pending.clear();
        Ok(())
    }

    fn try_lock(&self, path: &Path, how: LockKind) -> io::Result<Option<Box<dyn Locked>>> {
        let mut state = self.state();
        if state.node(path).is_none() {
            drop(state);
            self.create_new(path)?;
            state = self.state();
        }
        state.reading()?;
        let id = state.file(path)?;
        let (owner, generation) = (state.next_id, state.generation);
        state.next_id += 1;
        let holders = state.locks.entry(path.to_owned()).or_default();
        let free = match how {
            LockKind::Exclusive => holders.is_empty(),
            LockKind::Shared => holders.iter().all(|(_, kind)| *kind == LockKind::Shared),
        };
        if !free {
            return Ok(None);
        }
        holders.push((owner, how));
        let file = Handle { disk: self.clone(), generation, id };
        Ok(Some(Box::new(Lock { file, path: path.to_owned(), owner })))
    }

    fn token(&self) -> u128 {
        let mut state = self.state();
        let mut word = || {
            // SplitMix64.
            state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state.random;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        u128::from(word()) << 64 | u128::from(word())
    }
}

struct Handle {
    disk: ModelDisk,
    generation: u64,
    id: u64,
}

impl Handle {
    fn with(&self, change: impl FnOnce(&mut Bytes)) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        if state.generation != self.generation {
            return Err(io::Error::other("the machine has been started again since"));
        }
        // A file without a name lives on while it is open.
        if let Some(file) = state.files.get_mut(&self.id) {
            change(file);
        }
        Ok(())
    }
}

impl DiskFile for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with(|file| file.written.extend_from_slice(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(|file| file.durable = file.written.clone())
    }
}

struct Lock {
    file: Handle,
    path: PathBuf,
    owner: u64,
}

impl Locked for Lock {
    fn set_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.with(|file| file.written = bytes.to_vec())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.file.disk.state();
        if state.generation == self.file.generation
            && let Some(holders) = state.locks.get_mut(&self.path)
        {
            holders.retain(|(owner, _)| *owner != self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(disk: &ModelDisk, path: &str, bytes: &[u8], sync: bool) {
        let mut file = disk.create_new(Path::new(path)).unwrap();
        file.write(bytes).unwrap();
        if sync {
            file.sync().unwrap();
        }
    }

    #[test]
    fn what_is_synced_stays_and_the_rest_may_not() {
        let (mut named, mut unnamed, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let disk = ModelDisk::new(seed);
            write(&disk, "/whole", b"whole", true);
            disk.sync_folder(Path::new("/")).unwrap();
            write(&disk, "/nameless", b"nameless", true);
            disk.append(Path::new("/whole")).unwrap().write(b" and more").unwrap();
            disk.restart(Crash::Power);
            let whole = disk.read(Path::new("/whole"), 0, 100).unwrap();
            assert_eq!(&whole[..5], b"whole");
            torn += u32::from(whole.len() > 5 && whole != b"whole and more");
            match disk.read(Path::new("/nameless"), 0, 100) {
                Ok(bytes) => {
                    assert_eq!(bytes, b"nameless");
                    named += 1;
                }
                Err(_) => unnamed += 1,
            }
        }
        assert!(named > 50 && unnamed > 50 && torn > 20, "{named} {unnamed} {torn}");
    }

    #[test]
    fn a_killed_process_loses_nothing_but_its_handles_and_locks() {
        let disk = ModelDisk::new(1);
        let mut file = disk.create_new(Path::new("/a")).unwrap();
        file.write(b"a").unwrap();
        let lock = disk.try_lock(Path::new("/lock"), LockKind::Exclusive).unwrap().unwrap();
        assert!(disk.try_lock(Path::new("/lock"), LockKind::Shared).unwrap().is_none());
        disk.crash_at(disk.operations() + 1, Crash::Process);
        file.write(b"b").unwrap();
        file.write(b"c").unwrap_err();
        assert!(disk.is_stopped() && disk.len(Path::new("/a")).is_err());
        disk.restart(Crash::Process);
        assert_eq!(disk.read(Path::new("/a"), 0, 9).unwrap(), b"ab");
        file.write(b"d").unwrap_err();
        let again = disk.try_lock(Path::new("/lock"), LockKind::Exclusive).unwrap();
        drop(lock);
        assert!(again.is_some() && disk.try_lock(Path::new("/lock"), LockKind::Shared).unwrap().is_none());
    }

    #[test]
    fn an_injected_fault_happens_once() {
        let disk = ModelDisk::new(1);
        disk.fault_at(0, io::ErrorKind::StorageFull);
        let error = disk.create_new(Path::new("/a")).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        write(&disk, "/a", b"", true);
    }
}
