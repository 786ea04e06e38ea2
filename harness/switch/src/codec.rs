//! Frames on a byte stream, as QEMU's `-netdev stream` has them: the length in four bytes, big-endian, then the frame.

/// Longest frame an emulator may send, in bytes, as QEMU's own limit; what is longer is no frame.
pub const LONGEST: usize = 4096 + 65536;

/// A length that no frame has: the stream has lost its beat for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes, where none is longer than {LONGEST}")]
pub struct Absurd(pub usize);

/// Splits a stream into frames.
#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
    /// Bytes of `pending` that were given out.
    taken: usize,
}

impl Reader {
    /// Takes in bytes as they came.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.drain(..std::mem::take(&mut self.taken));
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole frame, if one is in; frames of no bytes are passed over.
    ///
    /// # Errors
    /// The stream is not one of frames; what comes later is not either.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Absurd> {
        loop {
            let Some((length, rest)) = self.pending[self.taken..].split_first_chunk() else {
                return Ok(None);
            };
            let length = u32::from_be_bytes(*length) as usize;
            if length > LONGEST {
                return Err(Absurd(length));
            }
            if rest.len() < length {
                return Ok(None);
            }
            let begin = self.taken + 4;
            self.taken = begin + length;
            if length > 0 {
                return Ok(Some(&self.pending[begin..self.taken]));
            }
        }
    }
}

/// Appends a frame to what is to be written.
pub fn write(frame: &[u8], out: &mut impl Extend<u8>) {
    let length = u32::try_from(frame.len()).expect("frames are short");
    out.extend(length.to_be_bytes());
    out.extend(frame.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_come_whole_however_the_stream_is_split(
            frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..12),
            size in 1_usize..500,
        ) {
            let mut stream = Vec::new();
            for frame in &frames {
                write(frame, &mut stream);
            }
            let mut reader = Reader::default();
            let mut read = Vec::new();
            for piece in stream.chunks(size) {
                reader.feed(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    read.push(frame.to_vec());
                }
            }
            let expected: Vec<_> = frames.into_iter().filter(|frame| !frame.is_empty()).collect();
            prop_assert_eq!(read, expected);
            prop_assert!(reader.pending.len() <= size + 204, "what was read is not kept");
        }
    }

    #[test]
    fn an_absurd_length_is_an_error_that_stays() {
        let mut reader = Reader::default();
        reader.feed(&[0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff, 1, 2]);
        assert_eq!(reader.next_frame(), Ok(Some(&[7][..])));
        assert_eq!(reader.next_frame(), Err(Absurd(0xffff_ffff)));
        reader.feed(&[0, 0, 0, 1, 7]);
        assert_eq!(reader.next_frame(), Err(Absurd(0xffff_ffff)));
    }
}
