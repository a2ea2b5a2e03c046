//! Which kernels are written: those whose demangled name matches.

use crate::symbols::demangle;
use gputap_ringbuf::event::{Event, NO_NAME};
use regex_lite::Regex;
use std::collections::HashSet;

/// A pattern for demangled names of kernels. It may match anywhere in the name.
#[derive(Clone, Debug)]
pub struct Filter {
    pattern: Regex,
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        Regex::new(text).map(|pattern| Filter { pattern }).map_err(|error| error.to_string())
    }
}

impl Filter {
    pub fn as_str(&self) -> &str {
        self.pattern.as_str()
    }
}

/// A filter, and which of one process' names passed it.
#[derive(Debug)]
pub(super) struct Sieve {
    filter: Filter,
    passed: HashSet<u32>,
}

impl Sieve {
    pub fn new(filter: Filter) -> Sieve {
        Sieve { filter, passed: HashSet::new() }
    }

    pub fn name(&mut self, slot: u32, mangled: &[u8]) {
        if self.filter.pattern.is_match(&demangle(mangled)) {
            self.passed.insert(slot);
        }
    }

    /// Whether an event is written. All that is no kernel's is; a launch without a name is a graph's.
    pub fn passes(&self, event: &Event) -> bool {
        match event {
            Event::Kernel(kernel) => self.passed.contains(&kernel.name_id),
            Event::Launch(launch) => launch.name_id == NO_NAME || self.passed.contains(&launch.name_id),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::event::{KernelEvent, LaunchEvent, MemcpyEvent};

    #[test]
    fn kernels_pass_by_their_demangled_names_and_all_else_passes() {
        let mut sieve = Sieve::new("^vec.*float".parse().expect("a pattern"));
        sieve.name(1, b"_Z6vecaddPfS_i");
        sieve.name(2, b"_Z6matmulPfS_i");
        let kernel = |name_id| Event::Kernel(KernelEvent { name_id, ..Default::default() });
        let launch = |name_id| Event::Launch(LaunchEvent { name_id, ..Default::default() });
        let passed = [kernel(1), launch(1), launch(NO_NAME), Event::Memcpy(MemcpyEvent::default())];
        assert!(passed.iter().all(|event| sieve.passes(event)));
        let held = [kernel(2), launch(2), kernel(NO_NAME), kernel(3)];
        assert!(!held.iter().any(|event| sieve.passes(event)));
        assert!("(".parse::<Filter>().is_err());
    }
}
