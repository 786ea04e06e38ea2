//! A disk that remembers which writes were synced, and can lose the others, fill up, or fail.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// A write reaches the platter sector by sector.
const SECTOR: usize = 512;

/// One thing that was asked of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    Write(usize, Vec<u8>),
    Length(usize),
    Sync,
}

#[derive(Debug, Default)]
struct State {
    /// What reads see.
    cache: Vec<u8>,
    /// What a power cut leaves, as far as `unsynced` is lost.
    durable: Vec<u8>,
    unsynced: Vec<Op>,
    log: Vec<Op>,
    room: Option<usize>,
    /// So many syncs pass, and so many fail after that.
    failing_syncs: (usize, usize),
    failing_writes: bool,
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    /// A disk with this content, all of it synced.
    pub fn of(content: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State { cache: content.clone(), durable: content, ..State::default() })))
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
        self.state().cache.len()
    }

    /// After `passing` more, `count` syncs fail, and take what they could not write for written, as kernels do.
    pub fn fail_syncs(&self, passing: usize, count: usize) {
        self.state().failing_syncs = (passing, count);
    }

    /// Whether syncs are still to fail.
    pub fn is_failing(&self) -> bool {
        self.state().failing_syncs.1 > 0
    }

    /// From now on writes fail, or no longer.
    pub fn fail_writes(&self, fail: bool) {
        self.state().failing_writes = fail;
    }

    /// What is there after the power went, with every write that was not synced lost.
    pub fn after_power_cut(&self) -> Vec<u8> {
        self.state().durable.clone()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64> {
        Ok(self.state().cache.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let state = self.state();
        let from = usize::try_from(offset).unwrap();
        let read = state.cache.get(from..from + out.len());
        out.copy_from_slice(read.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.state();
        let length = usize::try_from(len).unwrap();
        if state.room.is_some_and(|room| length > room) {
            return Err(Error::from_raw_os_error(28));
        }
        state.ask(Op::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.state();
        match &mut state.failing_syncs {
            (0, 0) => {}
            (0, failing) => {
                *failing -= 1;
                state.unsynced.clear();
                return Err(Error::from_raw_os_error(5));
            }
            (passing, _) => *passing -= 1,
        }
        let mut durable = std::mem::take(&mut state.durable);
        state.unsynced.drain(..).for_each(|op| perform(&mut durable, &op));
        state.durable = durable;
        state.log.push(Op::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state();
        let from = usize::try_from(offset).unwrap();
        if state.failing_writes {
            return Err(Error::from_raw_os_error(5));
        }
        // A file system that fills up takes what fits.
        let fits = state.room.map_or(data.len(), |room| room.saturating_sub(from).min(data.len()));
        state.ask(Op::Write(from, data[..fits].to_vec()));
        if fits < data.len() { Err(Error::from_raw_os_error(28)) } else { Ok(()) }
    }
}

impl State {
    fn ask(&mut self, op: Op) {
        perform(&mut self.cache, &op);
        self.unsynced.push(op.clone());
        self.log.push(op);
    }
}

/// Does it to an image.
pub fn perform(image: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(from, data) => {
            if image.len() < from + data.len() {
                image.resize(from + data.len(), 0);
            }
            image[*from..from + data.len()].copy_from_slice(data);
        }
        Op::Length(length) => image.resize(*length, 0),
        Op::Sync => {}
    }
}

/// What the power cut leaves of writes that were not synced: any of them, in part or whole.
pub fn survive(image: &mut Vec<u8>, unsynced: &[Op], random: &mut fastrand::Rng) {
    // Most cuts lose a little or keep a little; each way of erring is to come up.
    let kept = [0, 1, 5, 9, 10][random.usize(..5)];
    for op in unsynced {
        match (random.u8(..10) < kept, op) {
            (true, op) => perform(image, op),
            (false, Op::Write(from, data)) if random.u8(..4) == 0 => {
                for (n, sector) in
                    data.chunks(SECTOR).enumerate().filter(|_| random.bool()).collect::<Vec<_>>()
                {
                    perform(image, &Op::Write(from + n * SECTOR, sector.to_vec()));
                }
            }
            (false, _) => {}
        }
    }
}
