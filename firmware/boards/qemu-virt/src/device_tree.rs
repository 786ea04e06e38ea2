//! One property of the device tree that the machine hands over: `rng-seed`, random bytes that are new at
//! every start.

/// The first words of a flattened device tree.
const MAGIC: u32 = 0xD00D_FEED;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
/// QEMU gives the tree a megabyte; less means a smaller machine, more means it is none.
const LARGEST: usize = 1 << 20;

/// Folds the seed that the tree at `address` carries into 64 bits.
///
/// # Safety
/// `address` is what the machine put in `a1` at reset.
pub unsafe fn seed(address: usize) -> Option<u64> {
    if address == 0 || !address.is_multiple_of(4) {
        return None;
    }
    // SAFETY: the caller says that the machine gave this address, so a header of ten words can be read.
    let header = unsafe { core::slice::from_raw_parts(address as *const u8, 40) };
    let size = word(header, 4)? as usize;
    if word(header, 0)? != MAGIC || size > LARGEST {
        return None;
    }
    // SAFETY: the tree is as long as its header says, and it lies above the image's memory, where nothing
    // writes.
    let tree = unsafe { core::slice::from_raw_parts(address as *const u8, size) };
    let bytes = property(tree, "rng-seed")?;
    Some(bytes.chunks(8).fold(0, |seed: u64, chunk| {
        chunk.iter().fold(seed.rotate_left(7), |seed, byte| seed.rotate_left(8) ^ u64::from(*byte))
    }))
}

/// The value of the first property `name`, in whichever node.
fn property<'a>(tree: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut at = word(tree, 8)? as usize;
    let strings = tree.get(word(tree, 12)? as usize..)?;
    loop {
        let token = word(tree, at)?;
        at += 4;
        match token {
            BEGIN_NODE => {
                let length = tree.get(at..)?.iter().position(|byte| *byte == 0)?;
                at = (at + length + 1).next_multiple_of(4);
            }
            PROPERTY => {
                let length = word(tree, at)? as usize;
                let label = strings.get(word(tree, at + 4)? as usize..)?;
                let value = tree.get(at + 8..(at + 8).checked_add(length)?)?;
                if label.split(|byte| *byte == 0).next() == Some(name.as_bytes()) {
                    return Some(value);
                }
                at = (at + 8 + length).next_multiple_of(4);
            }
            END_NODE | NOP => {}
            _ => return None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
