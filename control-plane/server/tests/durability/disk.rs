//! A disk that remembers which writes were synced, can lose the others, and can fill up or fail.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard};

use control_plane::store::{Medium, Part};
use redb::StorageBackend;

/// A write reaches the platter sector by sector.
const SECTOR: usize = 512;

/// A file, whatever its name.
type Inode = usize;

/// One thing that was asked of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    Write(Inode, usize, Vec<u8>),
    Length(Inode, usize),
    Sync(Inode),
    Name(Part, Inode),
    /// What is made becomes the store.
    Publish(Inode),
    SyncNames,
}

impl Op {
    /// The file that a sync of would make this durable; nothing for names.
    fn inode(&self) -> Option<Inode> {
        match self {
            Self::Write(inode, ..) | Self::Length(inode, _) | Self::Sync(inode) => Some(*inode),
            Self::Name(..) | Self::Publish(_) | Self::SyncNames => None,
        }
    }

    /// Whether this makes durable what was asked before.
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::Sync(_) | Self::SyncNames)
    }
}

/// What lies on a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    names: BTreeMap<Part, Inode>,
    files: BTreeMap<Inode, Vec<u8>>,
}

impl Image {
    /// A part's content.
    pub fn file(&mut self, part: Part) -> &mut Vec<u8> {
        self.files.entry(self.names[&part]).or_default()
    }

    /// Takes a part away.
    pub fn remove(&mut self, part: Part) {
        self.names.remove(&part);
    }

    /// Puts a part there, with this content.
    pub fn put(&mut self, part: Part, content: Vec<u8>) {
        let inode = self.files.last_key_value().map_or(0, |(last, _)| last + 1);
        self.names.insert(part, inode);
        self.files.insert(inode, content);
    }

    /// Whether a part is there.
    pub fn has(&self, part: Part) -> bool {
        self.names.contains_key(&part)
    }

    /// Does what was asked.
    pub fn perform(&mut self, op: &Op) {
        match op {
            Op::Write(inode, from, data) => {
                let file = self.files.entry(*inode).or_default();
                if file.len() < from + data.len() {
                    file.resize(from + data.len(), 0);
                }
                file[*from..from + data.len()].copy_from_slice(data);
            }
            Op::Length(inode, length) => self.files.entry(*inode).or_default().resize(*length, 0),
            Op::Name(part, inode) => {
                self.names.insert(*part, *inode);
                self.files.entry(*inode).or_default();
            }
            Op::Publish(inode) => {
                self.names.remove(&Part::Fresh);
                self.names.insert(Part::Store, *inode);
                self.files.entry(*inode).or_default();
            }
            Op::Sync(_) | Op::SyncNames => {}
        }
    }

    /// What a power cut leaves of what was asked and not synced: any of it, in part or whole.
    fn survive<'a>(&mut self, unsynced: impl Iterator<Item = &'a Op>, random: &mut fastrand::Rng) {
        // Most cuts lose a little or keep a little; each way of erring is to come up.
        let kept = [0, 1, 5, 9, 10][random.usize(..5)];
        for op in unsynced {
            match (random.u8(..10) < kept, op) {
                (true, op) => self.perform(op),
                (false, Op::Write(inode, from, data)) if random.u8(..4) == 0 => {
                    for (n, sector) in data.chunks(SECTOR).enumerate() {
                        if random.bool() {
                            self.perform(&Op::Write(*inode, from + n * SECTOR, sector.to_vec()));
                        }
                    }
                }
                (false, _) => {}
            }
        }
    }
}

/// What a cut before operation `at` leaves of a disk on which there was `start`.
pub fn cut(start: &Image, log: &[Op], at: usize, random: &mut fastrand::Rng) -> Image {
    let mut synced: BTreeMap<Option<Inode>, usize> = BTreeMap::new();
    for (n, op) in log[..at].iter().enumerate().filter(|(_, op)| op.is_sync()) {
        synced.insert(op.inode(), n);
    }
    let is_synced = |n: usize, op: &Op| synced.get(&op.inode()).is_some_and(|sync| n <= *sync);
    let mut image = start.clone();
    let ops = || log[..at].iter().enumerate();
    ops().filter(|(n, op)| is_synced(*n, op)).for_each(|(_, op)| image.perform(op));
    image.survive(ops().filter(|(n, op)| !is_synced(*n, op)).map(|(_, op)| op), random);
    image
}

/// How syncs of a file fail.
#[derive(Clone, Copy, Debug)]
pub struct Failing {
    /// So many pass before that.
    pub passing: usize,
    /// So many fail.
    pub count: usize,
    /// Whether what they were to write reaches the disk all the same.
    pub arrives: bool,
}

#[derive(Debug, Default)]
struct State {
    /// What reads see.
    cache: Image,
    /// What a power cut leaves, as far as `unsynced` is lost.
    durable: Image,
    unsynced: Vec<Op>,
    log: Vec<Op>,
    room: Option<usize>,
    failing_syncs: BTreeMap<Inode, Failing>,
    failing_writes: bool,
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    /// A disk with this content, all of it synced.
    pub fn of(content: Image) -> Self {
        Self(Arc::new(Mutex::new(State { cache: content.clone(), durable: content, ..State::default() })))
    }

    /// A disk on which this was asked, and no power was cut: what is not synced is still there, but only to be read.
    pub fn after(log: &[Op]) -> Self {
        let mut state = State::default();
        for op in log {
            if op.is_sync() { state.sync(op) } else { state.ask(op.clone()) }
        }
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// How much was asked of it.
    pub fn ops(&self) -> usize {
        self.state().log.len()
    }

    /// Everything that was asked of it.
    pub fn log(&self) -> Vec<Op> {
        self.state().log.clone()
    }

    /// From now on it holds at most so many bytes.
    pub fn limit(&self, room: Option<usize>) {
        self.state().room = room;
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        self.state().size()
    }

    /// Syncs of a part are to fail, and take what they could not write for written, as kernels do.
    pub fn fail_syncs(&self, part: Part, failing: Failing) {
        let mut state = self.state();
        let inode = state.cache.names[&part];
        state.failing_syncs.insert(inode, failing);
    }

    /// Whether syncs are still to fail.
    pub fn is_failing(&self) -> bool {
        self.state().failing_syncs.values().any(|failing| failing.count > 0)
    }

    /// From now on writes fail, or no longer.
    pub fn fail_writes(&self, fail: bool) {
        self.state().failing_writes = fail;
    }

    /// What is there now.
    pub fn image(&self) -> Image {
        self.state().cache.clone()
    }

    /// What is there after the power went, with every write that was not synced lost.
    pub fn after_power_cut(&self) -> Image {
        self.state().durable.clone()
    }
}

impl Medium for Disk {
    fn open(&self, part: Part, make: bool) -> Result<Option<Box<dyn StorageBackend>>> {
        let mut state = self.state();
        let found = state.cache.names.get(&part).copied();
        if found.is_none() && !make {
            return Ok(None);
        }
        let inode = found.unwrap_or_else(|| {
            let inode = state.cache.files.last_key_value().map_or(0, |(last, _)| last + 1);
            state.cache.files.insert(inode, Vec::new());
            state.ask(Op::Name(part, inode));
            inode
        });
        if part == Part::Fresh {
            state.ask(Op::Length(inode, 0));
        }
        Ok(Some(Box::new(File { disk: self.clone(), inode })))
    }

    fn sync_names(&self) -> Result<()> {
        self.state().sync(&Op::SyncNames);
        Ok(())
    }

    fn publish(&self) -> Result<()> {
        let mut state = self.state();
        state.sync(&Op::SyncNames);
        let inode = state.cache.names[&Part::Fresh];
        state.ask(Op::Publish(inode));
        state.sync(&Op::SyncNames);
        Ok(())
    }
}

/// One open file.
#[derive(Debug)]
struct File {
    disk: Disk,
    inode: Inode,
}

impl StorageBackend for File {
    fn len(&self) -> Result<u64> {
        Ok(self.disk.state().length(self.inode) as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let state = self.disk.state();
        let from = usize::try_from(offset).unwrap();
        let read = state.cache.files.get(&self.inode).and_then(|file| file.get(from..from + out.len()));
        out.copy_from_slice(read.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.disk.state();
        let length = usize::try_from(len).unwrap();
        let others = state.size() - state.length(self.inode);
        if length > state.length(self.inode) && state.room.is_some_and(|room| others + length > room) {
            return Err(Error::from_raw_os_error(28));
        }
        state.ask(Op::Length(self.inode, length));
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.disk.state();
        match state.failing_syncs.get_mut(&self.inode) {
            None | Some(Failing { count: 0, .. }) => {}
            Some(Failing { passing: 0, count, arrives }) => {
                *count -= 1;
                if *arrives {
                    state.sync(&Op::Sync(self.inode));
                } else {
                    state.unsynced.retain(|op| op.inode() != Some(self.inode));
                }
                return Err(Error::from_raw_os_error(5));
            }
            Some(Failing { passing, .. }) => *passing -= 1,
        }
        state.sync(&Op::Sync(self.inode));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.disk.state();
        let from = usize::try_from(offset).unwrap();
        if state.failing_writes {
            return Err(Error::from_raw_os_error(5));
        }
        // A file system that fills up takes what fits; what is overwritten has its place already.
        let free = state.room.map_or(usize::MAX, |room| room.saturating_sub(state.size()));
        let fits = (state.length(self.inode).saturating_add(free).saturating_sub(from)).min(data.len());
        state.ask(Op::Write(self.inode, from, data[..fits].to_vec()));
        if fits < data.len() { Err(Error::from_raw_os_error(28)) } else { Ok(()) }
    }
}

impl State {
    fn size(&self) -> usize {
        self.cache.files.values().map(Vec::len).sum()
    }

    fn length(&self, inode: Inode) -> usize {
        self.cache.files.get(&inode).map_or(0, Vec::len)
    }

    fn ask(&mut self, op: Op) {
        self.cache.perform(&op);
        self.unsynced.push(op.clone());
        self.log.push(op);
    }

    fn sync(&mut self, op: &Op) {
        let (synced, rest): (Vec<Op>, Vec<Op>) =
            std::mem::take(&mut self.unsynced).into_iter().partition(|one| one.inode() == op.inode());
        self.unsynced = rest;
        synced.iter().for_each(|one| self.durable.perform(one));
        self.log.push(op.clone());
    }
}
