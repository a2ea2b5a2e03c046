//! Kernel names that live as long as the process, one copy each.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

#[derive(Default)]
pub struct Names {
    known: HashSet<&'static CStr>,
}

impl Names {
    /// The one copy of `name`. Leaks it on purpose: records point at it for ever. Bounded by the number of distinct
    /// names that a process loads.
    pub fn intern(&mut self, name: &str) -> &'static CStr {
        let Ok(name) = CString::new(name) else { return c"" };
        if let Some(known) = self.known.get(name.as_c_str()) {
            return known;
        }
        let kept: &'static CStr = Box::leak(name.into_boxed_c_str());
        self.known.insert(kept);
        kept
    }
}
