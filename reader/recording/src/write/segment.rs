//! One segment file that is being written.

use super::{Limits, SegmentFile};
use crate::WriteError;
use crate::format::segment_head;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub struct Segment {
    path: PathBuf,
    file: File,
    bytes: u64,
    began_ns: u64,
    pub events: u64,
}

impl Segment {
    pub fn create(path: &Path, number: u32, now_ns: u64) -> Result<Segment, WriteError> {
        let file = File::options().append(true).create_new(true).open(path).map_err(WriteError::of("make", path))?;
        let mut segment = Segment { path: path.to_owned(), file, bytes: 0, began_ns: now_ns, events: 0 };
        segment.append(&segment_head(number))?;
        Ok(segment)
    }

    /// One write a block: what a kill leaves is a cut, never a hole.
    pub fn append(&mut self, block: &[u8]) -> Result<(), WriteError> {
        if let Err(error) = self.file.write_all(block) {
            // A part of it may be there. Cutting works on a full disk, too; where it does not, readers stop at the part.
            let _ = self.file.set_len(self.bytes);
            return Err(WriteError::of("write", &self.path)(error));
        }
        self.bytes += block.len() as u64;
        Ok(())
    }

    pub fn to_file(&self) -> SegmentFile {
        SegmentFile { path: self.path.clone(), bytes: self.bytes, events: self.events }
    }

    pub fn has_events(&mut self, count: u64) {
        self.events += count;
    }

    pub fn is_full(&self, limits: &Limits, now_ns: u64) -> bool {
        self.bytes >= limits.segment_bytes
            || (self.events > 0 && now_ns.saturating_sub(self.began_ns) >= limits.segment_ns)
    }

    pub fn sync(&self) -> Result<(), WriteError> {
        self.file.sync_data().map_err(WriteError::of("bring to the disk", &self.path))
    }

    pub fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
