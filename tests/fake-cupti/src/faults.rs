//! Scripted faults: `FAKE_CUPTI_FAULTS="subscribe=39*2,flush=999"` (the crate's head has the names).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::result::CuptiResult;

struct Fault {
    name: String,
    code: CuptiResult,
    /// How many more calls it hits.
    left: AtomicU64,
}

/// The code that a call of `name` must return instead of doing its work, if one is scripted.
pub fn hit(name: &str) -> Option<CuptiResult> {
    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
    let faults = FAULTS.get_or_init(|| parse(&std::env::var("FAKE_CUPTI_FAULTS").unwrap_or_default()));
    let fault = faults.iter().find(|fault| fault.name == name)?;
    let took = fault.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    took.is_ok().then_some(fault.code)
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
        let (code, times) = what.split_once('*').map_or((what, Some(u64::MAX)), |(code, n)| (code, n.parse().ok()));
        Some(Fault { name: name.to_owned(), code: code.parse().ok()?, left: AtomicU64::new(times?) })
    };
    text.split(',')
        .filter(|word| !word.trim().is_empty())
        .filter_map(|word| {
            let fault = one(word);
            if fault.is_none() {
                eprintln!("fake-cupti: cannot read the fault {word:?}, expected name=code or name=code*times");
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
        let faults = parse("subscribe=39*2, flush=999,rubbish,enable.MEMCPY=x");
        let read: Vec<_> = faults.iter().map(|f| (f.name.as_str(), f.code, f.left.load(Ordering::Relaxed))).collect();
        assert_eq!(read, [("subscribe", 39, 2), ("flush", 999, u64::MAX)]);
    }
}
