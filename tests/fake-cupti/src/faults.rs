//! Scripted faults: `FAKE_CUPTI_FAULTS="subscribe=39*2,flush=999,enable=1@3"` (the crate's head has the names).

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::result::CuptiResult;

struct Fault {
    name: String,
    code: CuptiResult,
    /// Which calls it hits, from 0.
    hits: Range<u64>,
    calls: AtomicU64,
}

/// The code that a call of `name` must return instead of doing its work, if one is scripted.
pub fn hit(name: &str) -> Option<CuptiResult> {
    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
    let faults = FAULTS.get_or_init(|| parse(&std::env::var("FAKE_CUPTI_FAULTS").unwrap_or_default()));
    // Every fault of this name counts the call, hit or not.
    let hit = |fault: &&Fault| fault.hits.contains(&fault.calls.fetch_add(1, Ordering::Relaxed));
    faults.iter().filter(|fault| fault.name == name).filter(hit).last().map(|fault| fault.code)
}

/// Returns from the calling function with the scripted code, if there is one.
macro_rules! fault {
    ($name:expr) => {
        if let Some(code) = $crate::faults::hit($name) {
            return code;
        }
    };
}
pub(crate) use fault;

fn parse(text: &str) -> Vec<Fault> {
    let one = |word: &str| {
        let (name, what) = word.trim().split_once('=')?;
        let (code, hits) = if let Some((code, first)) = what.split_once('*') {
            (code, 0..first.parse().ok()?)
        } else if let Some((code, nth)) = what.split_once('@') {
            let nth: u64 = nth.parse().ok().filter(|&nth| nth > 0)?;
            (code, nth - 1..nth)
        } else {
            (what, 0..u64::MAX)
        };
        Some(Fault { name: name.to_owned(), code: code.parse().ok()?, hits, calls: AtomicU64::new(0) })
    };
    text.split(',')
        .filter(|word| !word.trim().is_empty())
        .filter_map(|word| {
            let fault = one(word);
            if fault.is_none() {
                eprintln!(
                    "fake-cupti: cannot read the fault {word:?}, expected name=code, name=code*times or name=code@nth"
                );
            }
            fault
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_faults() {
        let faults = parse("subscribe=39*2, flush=999,rubbish,enable.MEMCPY=x,crc=1@3,crc=1@0");
        let read: Vec<_> = faults.iter().map(|f| (f.name.as_str(), f.code, f.hits.clone())).collect();
        assert_eq!(read, [("subscribe", 39, 0..2), ("flush", 999, 0..u64::MAX), ("crc", 1, 2..3)]);
    }
}
