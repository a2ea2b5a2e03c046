//! The functions of libcupti that the tap calls. What a CUPTI lacks costs the feature that needs it, not the tap.

use gputap_cupti::abi;
use std::ffi::c_void;

/// Without these there is no tap.
#[derive(Clone, Copy)]
pub struct Calls {
    pub subscribe: abi::Subscribe,
    pub unsubscribe: abi::Unsubscribe,
    pub enable_callback: abi::EnableCallback,
    pub activity: Option<ActivityCalls>,
    pub finalize: Option<abi::Finalize>,
    /// Tells who else is subscribed; before 13.0 nothing does.
    pub subscribe_named: Option<abi::SubscribeV2>,
    pub clock: Option<ClockCalls>,
}

/// For everything but module loads.
#[derive(Clone, Copy)]
pub struct ActivityCalls {
    pub register_callbacks: abi::ActivityRegisterCallbacks,
    pub enable: abi::ActivityEnable,
    pub disable: abi::ActivityDisable,
    pub flush_all: abi::ActivityFlushAll,
    pub next_record: abi::ActivityGetNextRecord,
    pub dropped_records: Option<abi::ActivityGetNumDroppedRecords>,
}

/// For times of CLOCK_MONOTONIC.
#[derive(Clone, Copy)]
pub struct ClockCalls {
    pub register_timestamp: abi::ActivityRegisterTimestampCallback,
    pub timestamp: abi::GetTimestamp,
}

/// A function's address by its name, if the library has it.
pub trait Symbols {
    fn find(&self, name: &'static str) -> Option<*const c_void>;
}

/// `T` is the type of the functions called so, the same from 11.8 to 13.5.
macro_rules! function {
    ($symbols:expr, $missing:expr, $name:literal) => {{
        let found = $symbols.find($name);
        if found.is_none() {
            $missing.push($name);
        }
        // SAFETY: a function pointer is as wide as an address, this one is of a function of that name, and what it is
        // assigned to is that function's type (gputap_cupti::abi).
        found.map(|address| unsafe { std::mem::transmute(address) })
    }};
}

impl Calls {
    /// The calls, and a line for each feature that is missing; or the name of the function without which there is no tap.
    pub fn of(symbols: &impl Symbols) -> Result<(Calls, Vec<String>), &'static str> {
        let mut missing = Vec::new();
        let essential = (|| {
            Some(Calls {
                subscribe: function!(symbols, missing, "cuptiSubscribe")?,
                unsubscribe: function!(symbols, missing, "cuptiUnsubscribe")?,
                enable_callback: function!(symbols, missing, "cuptiEnableCallback")?,
                activity: None,
                finalize: None,
                subscribe_named: None,
                clock: None,
            })
        })();
        let Some(essential) = essential else { return Err(missing[0]) };
        let mut notes = Vec::new();
        let mut say = |missing: &mut Vec<&'static str>, what: &str| {
            let names = std::mem::take(missing);
            notes.extend((!names.is_empty()).then(|| format!("libcupti has no {}: {what}", names.join(", no "))));
        };
        let activity = ActivityCalls::of(symbols, &mut missing);
        let what = if activity.is_some() { "what CUPTI drops is not counted" } else { "only module loads are seen" };
        say(&mut missing, what);
        let finalize = function!(symbols, missing, "cuptiFinalize");
        say(&mut missing, "the tap cannot give way to another tool (`gputap ctl PID yield`)");
        let clock = ClockCalls::of(symbols, &mut missing);
        say(&mut missing, "times follow the wall clock, and are converted");
        let subscribe_named = function!(symbols, missing, "cuptiSubscribe_v2");
        Ok((Calls { activity, finalize, subscribe_named, clock, ..essential }, notes))
    }
}

impl ActivityCalls {
    fn of(symbols: &impl Symbols, missing: &mut Vec<&'static str>) -> Option<ActivityCalls> {
        Some(ActivityCalls {
            register_callbacks: function!(symbols, missing, "cuptiActivityRegisterCallbacks")?,
            enable: function!(symbols, missing, "cuptiActivityEnable")?,
            disable: function!(symbols, missing, "cuptiActivityDisable")?,
            flush_all: function!(symbols, missing, "cuptiActivityFlushAll")?,
            next_record: function!(symbols, missing, "cuptiActivityGetNextRecord")?,
            dropped_records: function!(symbols, missing, "cuptiActivityGetNumDroppedRecords"),
        })
    }
}

impl ClockCalls {
    fn of(symbols: &impl Symbols, missing: &mut Vec<&'static str>) -> Option<ClockCalls> {
        Some(ClockCalls {
            register_timestamp: function!(symbols, missing, "cuptiActivityRegisterTimestampCallback")?,
            timestamp: function!(symbols, missing, "cuptiGetTimestamp")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library that has everything but these.
    struct Without(&'static [&'static str]);

    impl Symbols for Without {
        fn find(&self, name: &'static str) -> Option<*const c_void> {
            (!self.0.contains(&name)).then_some(std::ptr::without_provenance(8))
        }
    }

    fn of(missing: &'static [&'static str]) -> (Calls, Vec<String>) {
        Calls::of(&Without(missing)).expect("a tap")
    }

    #[test]
    fn a_whole_cupti_has_every_feature() {
        let (calls, notes) = of(&[]);
        assert!(calls.finalize.is_some() && calls.clock.is_some() && notes.is_empty());
        assert!(calls.activity.is_some_and(|activity| activity.dropped_records.is_some()));
    }

    #[test]
    fn a_missing_function_costs_its_feature_and_is_named() {
        let (calls, notes) = of(&["cuptiFinalize", "cuptiGetTimestamp", "cuptiActivityGetNumDroppedRecords"]);
        assert!(calls.finalize.is_none() && calls.clock.is_none());
        assert!(calls.activity.is_some_and(|activity| activity.dropped_records.is_none()));
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("cuptiActivityGetNumDroppedRecords: what CUPTI drops is not counted"), "{notes:?}");
        assert!(notes[1].contains("cuptiFinalize") && notes[2].contains("cuptiGetTimestamp"), "{notes:?}");
    }

    #[test]
    fn without_activity_there_are_modules_and_without_subscribing_nothing() {
        let (calls, notes) = of(&["cuptiActivityFlushAll"]);
        assert!(calls.activity.is_none());
        assert_eq!(notes, ["libcupti has no cuptiActivityFlushAll: only module loads are seen"]);
        assert_eq!(Calls::of(&Without(&["cuptiEnableCallback"])).err(), Some("cuptiEnableCallback"));
    }
}
