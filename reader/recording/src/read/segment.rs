//! The blocks of one segment file.

use crate::format::{self, Frame, HEAD_BYTES, Malformed, SEGMENT_HEAD_BYTES, parse_segment_head, unseal};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Why a segment ends before its file does.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the last block is cut off")]
    Cut,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no segment of format {}: {found}", format::VERSION)]
    Other { found: String },
}

/// Reads one block after the other.
pub struct SegmentReader {
    file: BufReader<File>,
    pub number: u32,
    stored: Vec<u8>,
}

impl SegmentReader {
    pub fn open(path: &Path) -> Result<SegmentReader, Broken> {
        let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
        let mut head = [0; SEGMENT_HEAD_BYTES];
        if read_whole(&mut file, &mut head)? < head.len() {
            return Err(Broken::Cut);
        }
        match parse_segment_head(&head) {
            Some((format::VERSION, number)) => Ok(SegmentReader { file, number, stored: Vec::new() }),
            Some((version, _)) => Err(Broken::Other { found: format!("it is of format {version}") }),
            None => Err(Broken::Other { found: "it begins otherwise".to_owned() }),
        }
    }

    /// The next block that `wanted` wants, its payload in `payload`; None at the end. Others are passed over unread.
    pub fn next(&mut self, wanted: impl Fn(&Frame) -> bool, payload: &mut Vec<u8>) -> Result<Option<Frame>, Broken> {
        loop {
            let mut head = [0; HEAD_BYTES];
            match read_whole(&mut self.file, &mut head)? {
                0 => return Ok(None),
                HEAD_BYTES => {}
                _ => return Err(Broken::Cut),
            }
            let frame = Frame::parse(&head)?;
            if frame.kind.is_none() || !wanted(&frame) {
                self.file.seek_relative(i64::from(frame.stored_bytes))?;
                continue;
            }
            self.stored.resize(frame.stored_bytes as usize, 0);
            if read_whole(&mut self.file, &mut self.stored)? < self.stored.len() {
                return Err(Broken::Cut);
            }
            unseal(&frame, &self.stored, payload)?;
            return Ok(Some(frame));
        }
    }
}

/// Fills `into` as far as the file goes.
fn read_whole(file: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
