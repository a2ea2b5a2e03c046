//! One process' events in the order of their starts.

use crate::reorder::{Reorder, WINDOW};
use crate::times::Span;
use crate::{ExportError, Exported};
use gputap_recording::{Block, Names, Recorded};
use gputap_ringbuf::event::Event;

/// Gives `take` every event of `kinds` that has a place in time, in the order of their starts as far as [`WINDOW`] allows;
/// counts all into `exported`, and says there what could not be read.
pub fn each_sorted(
    recorded: &Recorded,
    kinds: u64,
    exported: &mut Exported,
    mut take: impl FnMut(Span, &Event, &Names) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut reorder = Reorder::default();
    let mut stream = recorded.stream(kinds);
    let mut pending: Vec<Event> = Vec::new();
    while let Some(block) = stream.next_block() {
        let Block::Events(events) = block else { continue };
        pending.clear();
        pending.extend_from_slice(events);
        exported.events += pending.len() as u64;
        for event in &pending {
            let Some(span) = Span::of(event) else {
                exported.flawed += 1;
                continue;
            };
            if reorder.is_full() {
                reorder.give(false, |span, event| take(span, event, stream.names()))?;
            }
            reorder.push(span, event);
        }
    }
    reorder.give(true, |span, event| take(span, event, stream.names()))?;
    exported.notes.extend(stream.problems().iter().map(|problem| format!("could not be read: {problem}")));
    if reorder.late() > 0 {
        exported.notes.push(format!(
            "{}: {} events were recorded after more than {WINDOW} that began later",
            recorded.process.label(),
            reorder.late()
        ));
    }
    Ok(())
}
