//! What one process' segments say, one block after the other.

use super::Problem;
use super::names::Names;
use super::segment::{Broken, SegmentReader};
use crate::format::{BLOCK_MAX_EVENTS, Frame, Kind, Malformed, decode_columns, width};
use crate::process::{Module, Status};
use gputap_ringbuf::event::{Event, EventKind};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::path::PathBuf;

/// A piece of a recording.
#[derive(Debug)]
pub enum Block<'a> {
    /// Of one kind, in the order in which the recorder got them: nearly in the order of time.
    Events(&'a [Event]),
    Module(Module),
    Status(Status),
}

enum Piece {
    Events,
    Module(Module),
    Status(Status),
    Nothing,
}

/// Reads the segments of one process. A segment that is broken is read up to the break; then comes the next.
pub struct Stream {
    segments: VecDeque<PathBuf>,
    open: Option<(PathBuf, SegmentReader)>,
    kinds: u64,
    between: [u64; 2],
    names: Names,
    problems: Vec<Problem>,
    payload: Vec<u8>,
    columns: Vec<Vec<u64>>,
    events: Vec<Event>,
}

impl Stream {
    pub(super) fn new(segments: impl Iterator<Item = PathBuf>, kinds: u64) -> Stream {
        Stream {
            segments: segments.collect(),
            open: None,
            kinds,
            between: [0, u64::MAX],
            names: Names::default(),
            problems: Vec::new(),
            payload: Vec::new(),
            columns: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Leaves out blocks that have no event between these times, CLOCK_MONOTONIC; others still come whole.
    #[must_use]
    pub fn between(mut self, first_ns: u64, last_ns: u64) -> Stream {
        self.between = [first_ns, last_ns];
        self
    }

    /// The names that the blocks so far refer to.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What could not be read, so far.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The next block; None at the end.
    pub fn next_block(&mut self) -> Option<Block<'_>> {
        loop {
            let (path, mut reader) = match self.open.take() {
                Some(open) => open,
                None => {
                    let path = self.segments.pop_front()?;
                    match SegmentReader::open(&path) {
                        Ok(reader) => (path, reader),
                        Err(broken) => {
                            self.problem(path, broken);
                            continue;
                        }
                    }
                }
            };
            match self.next_of(&mut reader) {
                Ok(None) => {}
                Ok(Some(Piece::Nothing)) => self.open = Some((path, reader)),
                Ok(Some(piece)) => {
                    self.open = Some((path, reader));
                    return Some(match piece {
                        Piece::Module(module) => Block::Module(module),
                        Piece::Status(status) => Block::Status(status),
                        Piece::Events | Piece::Nothing => Block::Events(&self.events),
                    });
                }
                Err(broken) => self.problem(path, broken),
            }
        }
    }

    fn problem(&mut self, path: PathBuf, broken: Broken) {
        self.problems.push(Problem { path, what: broken.to_string() });
    }

    fn next_of(&mut self, reader: &mut SegmentReader) -> Result<Option<Piece>, Broken> {
        let (kinds, [first_ns, last_ns]) = (self.kinds, self.between);
        let wanted = |frame: &Frame| match frame.kind {
            Some(Kind::Events) => {
                frame.event_kind < 64
                    && kinds >> frame.event_kind & 1 == 1
                    && frame.first_ns <= last_ns
                    && frame.last_ns >= first_ns
            }
            Some(Kind::Process) | None => false,
            Some(_) => true,
        };
        let Some(frame) = reader.next(wanted, &mut self.payload)? else { return Ok(None) };
        Ok(Some(match frame.kind {
            Some(Kind::Events) => {
                self.decode(&frame)?;
                Piece::Events
            }
            Some(Kind::Module) => Piece::Module(of_json(&self.payload)?),
            Some(Kind::Status) => Piece::Status(of_json(&self.payload)?),
            Some(Kind::Names) => {
                self.names.learn(&self.payload)?;
                Piece::Nothing
            }
            Some(Kind::Process) | None => Piece::Nothing,
        }))
    }

    fn decode(&mut self, frame: &Frame) -> Result<(), Malformed> {
        self.events.clear();
        let Some(kind) = EventKind::ALL.iter().copied().find(|kind| *kind as u16 == frame.event_kind) else {
            return Ok(());
        };
        let rows = frame.count as usize;
        if rows > BLOCK_MAX_EVENTS {
            return Err(Malformed::Content(format!("{rows} events in a block, more than {BLOCK_MAX_EVENTS}")));
        }
        self.columns.resize_with(width(kind), Vec::new);
        decode_columns(kind, rows, &self.payload, &mut self.columns)?;
        Event::of_columns(kind, &self.columns, &mut self.events);
        Ok(())
    }
}

pub(super) fn of_json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(payload).map_err(|error| Malformed::Content(error.to_string()))
}
