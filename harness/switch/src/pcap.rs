//! What a monitor port of the switch would see, as a capture file that Wireshark and tcpdump read.
//!
//! Of a long trial the end is kept, since that is where things go wrong.

use crate::switch::Frame;
use std::collections::VecDeque;

/// Size of the file's own header.
const FILE_HEADER: usize = 24;

/// Size of the header before each frame.
const FRAME_HEADER: usize = 16;

/// Frames, up to a bound in bytes of the file.
#[derive(Debug)]
pub struct Capture {
    frames: VecDeque<(u64, Frame)>,
    bytes: usize,
    bound: usize,
}

impl Capture {
    /// A capture whose file is never longer than `bound` bytes.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { frames: VecDeque::new(), bytes: FILE_HEADER, bound }
    }

    /// Keeps a frame that was seen at `at` microseconds; the oldest ones make room.
    pub fn push(&mut self, at: u64, frame: Frame) {
        self.bytes += FRAME_HEADER + frame.len();
        self.frames.push_back((at, frame));
        while self.bytes > self.bound
            && let Some((_, oldest)) = self.frames.pop_front()
        {
            self.bytes -= FRAME_HEADER + oldest.len();
        }
    }

    /// The file: pcap with microseconds, Ethernet, big-endian. `zero` is the wall time of microsecond 0, in
    /// microseconds since 1970.
    #[must_use]
    pub fn file(&self, zero: u64) -> Vec<u8> {
        let mut file = Vec::with_capacity(self.bytes);
        let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_be_bytes());
        // Magic number; version 2.4; time zone and accuracy, both 0 by custom; longest frame; Ethernet.
        for value in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 0x0004_0000, 1] {
            word(&mut file, value);
        }
        for (at, frame) in &self.frames {
            let at = zero + at;
            let length = frame.len() as u32;
            for value in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length] {
                word(&mut file, value);
            }
            file.extend_from_slice(frame);
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The frames of a file, with their instants in microseconds since 1970.
    fn read(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
        assert_eq!(file[..4], [0xa1, 0xb2, 0xc3, 0xd4]);
        assert_eq!((word(4), word(20)), (0x0002_0004, 1));
        let mut frames = Vec::new();
        let mut at = FILE_HEADER;
        while at < file.len() {
            let length = word(at + 8) as usize;
            assert!(length as u32 <= word(16) && word(at + 12) as usize == length);
            let micros = u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4));
            at += FRAME_HEADER;
            frames.push((micros, file[at..at + length].to_vec()));
            at += length;
        }
        frames
    }

    proptest! {
        #[test]
        fn a_file_holds_the_latest_frames_within_its_bound(
            frames in proptest::collection::vec((0_u64..5_000_000, proptest::collection::vec(any::<u8>(), 14..90)), 0..60),
            bound in 24_usize..4000,
        ) {
            let mut capture = Capture::new(bound);
            for (at, frame) in &frames {
                capture.push(*at, frame[..].into());
            }
            let zero = 1_700_000_000_999_999;
            let file = capture.file(zero);
            prop_assert!(file.len() <= bound);
            let found = read(&file);
            let kept = frames.len() - found.len();
            let expected: Vec<_> = frames[kept..].iter().map(|(at, frame)| (zero + at, frame.clone())).collect();
            prop_assert_eq!(&found, &expected);
            if kept > 0 {
                prop_assert!(file.len() + FRAME_HEADER + frames[kept - 1].1.len() > bound, "more would have fitted");
            }
        }
    }
}
