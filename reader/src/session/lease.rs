//! This reader's wish to the shim, kept alive for as long as the session steps.

use crate::clock::Now;
use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::discover::Found;

/// How long to wait before a lease that could not be had is asked for again.
const RETRY_NS: u64 = 1_000_000_000;

pub(super) struct Lease {
    kinds: u64,
    client: Option<ControlClient>,
    tried_ns: u64,
    taken_ns: u64,
    /// Why there is no lease now; empty where there is one, or none is wanted.
    pub trouble: String,
}

impl Lease {
    pub fn new(kinds: u64) -> Lease {
        Lease { kinds, client: None, tried_ns: 0, taken_ns: 0, trouble: String::new() }
    }

    /// Renews the lease, or asks for one where there is none.
    pub fn step(&mut self, found: &Found, now: Now) {
        if self.kinds == 0 {
            return;
        }
        if self.client.as_ref().is_some_and(|client| !client.renew()) {
            // This reader was stopped for so long that the shim let the wish lapse.
            self.client = None;
        }
        let due = self.tried_ns == 0 || now.monotonic_ns.saturating_sub(self.tried_ns) >= RETRY_NS;
        if self.client.is_some() || !due {
            return;
        }
        self.tried_ns = now.monotonic_ns;
        match ControlClient::open(found) {
            Ok(client) => {
                client.want(self.kinds);
                self.client = Some(client);
                self.taken_ns = now.monotonic_ns;
                self.trouble.clear();
            }
            Err(error) => self.trouble = format!("recording could not be asked for: {error}"),
        }
    }

    /// For how long the shim has known the wish; `None` where it does not.
    pub fn held_ns(&self, now: Now) -> Option<u64> {
        self.client.as_ref().map(|_| now.monotonic_ns.saturating_sub(self.taken_ns))
    }

    /// Gives the wish up.
    pub fn release(&mut self) {
        self.client = None;
        self.kinds = 0;
        self.trouble.clear();
    }
}
