//! One segment file that is being written.

use super::Limits;
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
    pub last_ns: u64,
}

impl Segment {
    pub fn create(path: &Path, number: u32, now_ns: u64) -> Result<Segment, WriteError> {
        let file = File::create_new(path).map_err(WriteError::of("make", path))?;
        let mut segment = Segment { path: path.to_owned(), file, bytes: 0, began_ns: now_ns, events: 0, last_ns: 0 };
        segment.append(&segment_head(number))?;
        Ok(segment)
    }

    /// One write a block: what a kill leaves is a cut, never a hole.
    pub fn append(&mut self, block: &[u8]) -> Result<(), WriteError> {
        self.file.write_all(block).map_err(WriteError::of("write", &self.path))?;
        self.bytes += block.len() as u64;
        Ok(())
    }

    pub fn has_events(&mut self, count: u64, times: [u64; 2]) {
        self.events += count;
        self.last_ns = self.last_ns.max(times[1]);
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
