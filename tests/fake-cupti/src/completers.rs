//! Who calls the client's completed-callback: the worker alone, or several threads in turn.
//!
//! Either way all buffers of a pass are back with the client when [`complete`] returns.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::buffers::{Buffer, Client};
use crate::counters;
use crate::settings::settings;

type Job = (Buffer, Client, Sender<()>);

/// Gives the buffers back, on the calling thread or on the completers.
pub fn complete(client: Client, buffers: Vec<Buffer>) {
    let (done, all_done) = channel();
    for buffer in buffers {
        match completer() {
            Some(thread) => _ = thread.send((buffer, client, done.clone())),
            None => buffer.complete(&client),
        }
    }
    drop(done);
    // Ends when the last sender is gone, with the last buffer.
    all_done.iter().for_each(drop);
}

/// The next thread in turn; None where the worker does it itself.
fn completer() -> Option<Sender<Job>> {
    static THREADS: OnceLock<Mutex<Vec<Sender<Job>>>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| Mutex::new((0..settings().completers).filter_map(start).collect()));
    let mut threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
    let next = threads.first()?.clone();
    threads.rotate_left(1);
    Some(next)
}

fn start(number: usize) -> Option<Sender<Job>> {
    let (jobs, received) = channel::<Job>();
    let name = format!("cupti-done-{number}");
    let run = move || {
        for (buffer, client, done) in received {
            buffer.complete(&client);
            // Kept until here: the pass waits for it.
            drop(done);
        }
    };
    std::thread::Builder::new().name(name).spawn(run).ok()?;
    counters::COMPLETERS.add(1);
    Some(jobs)
}
