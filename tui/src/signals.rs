//! Signals that end gputap, turned into a word that the loops look at: the terminal is restored and the recording is
//! complete before it goes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Error, Result};

#[derive(Clone, Debug)]
pub struct Signals {
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// SIGTERM and SIGHUP. A ^C is a key as long as a view has the terminal.
    pub fn of_a_view() -> Result<Signals> {
        Signals::watch(&[SIGTERM, SIGHUP])
    }

    /// SIGINT as well.
    pub fn all() -> Result<Signals> {
        Signals::watch(&[SIGTERM, SIGHUP, SIGINT])
    }

    /// The signal that asks gputap to end, if one came.
    pub fn ending(&self) -> Option<i32> {
        // SYNC: pairs with the handler of signal-hook in this same process; one word, ordering nothing else.
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// The same, and forgets it.
    pub fn take(&self) -> Option<i32> {
        // SYNC: as above.
        match self.last.swap(0, Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    fn watch(signals: &[i32]) -> Result<Signals> {
        let last = Arc::new(AtomicUsize::new(0));
        for &signal in signals {
            let registered: io::Result<_> =
                signal_hook::flag::register_usize(signal, Arc::clone(&last), signal as usize);
            registered.map_err(|source| Error::Signals { source })?;
        }
        Ok(Signals { last })
    }
}
