//! The guard: the right to call CUPTI. There is one, the timer owns it, and every call takes it by `&mut`; so calls
//! never overlap, and there is no lock that a callback, or anybody, could wait for.

use crate::library::{ActivityCalls, Calls};
use gputap_callbacks::{clock, door};
use gputap_cupti::{
    abi::{SubscribeV2, SubscriberHandle, SubscriberParams, TimestampFn},
    constants::{
        ACTIVITY_FLAG_FLUSH_FORCED, CB_DOMAIN_DRIVER_API, CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED, CuptiResult,
        DRIVER_LAUNCHES, OLD_SUBSCRIBER_NAME_MIN_LEN,
    },
};

use std::ffi::CStr;

/// The one right to call CUPTI outside callbacks.
pub struct Guard {
    calls: Calls,
    cupti_version: u32,
    subscriber: Option<SubscriberHandle>,
}

// SAFETY: the subscriber handle is a number to us; CUPTI lets any thread use it.
unsafe impl Send for Guard {}

/// A CUPTI call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub call: &'static str,
    pub result: CuptiResult,
    /// Who is subscribed instead, where CUPTI says.
    pub holder: Option<String>,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} gave error {}", self.call, self.result.0)?;
        self.result.name().map_or(Ok(()), |name| write!(f, " ({name})"))?;
        self.holder.as_ref().map_or(Ok(()), |holder| write!(f, ": {holder} is subscribed"))
    }
}

impl Failed {
    fn missing(call: &'static str) -> Failed {
        Failed { call, result: CuptiResult::NOT_SUPPORTED, holder: None }
    }
}

fn checked(call: &'static str, result: CuptiResult) -> Result<(), Failed> {
    if result == CuptiResult::SUCCESS { Ok(()) } else { Err(Failed { call, result, holder: None }) }
}

impl Guard {
    /// To be made once, by start-up.
    pub fn new(calls: Calls, cupti_version: u32) -> Guard {
        Guard { calls, cupti_version, subscriber: None }
    }

    /// Subscribes to module loads and hands over the buffer callbacks.
    pub fn subscribe(&mut self) -> Result<(), Failed> {
        let subscriber = self.subscriber_or_holder()?;
        self.subscriber = Some(subscriber);
        // SAFETY: the subscriber is the one just made.
        let result =
            unsafe { (self.calls.enable_callback)(1, subscriber, CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED) };
        checked("cuptiEnableCallback(MODULE_LOADED)", result)?;
        let Some(activity) = self.calls.activity else { return Ok(()) };
        // SAFETY: both callbacks are of CUPTI's types and never go away.
        let result = unsafe { (activity.register_callbacks)(door::on_buffer_requested, door::on_buffer_completed) };
        checked("cuptiActivityRegisterCallbacks", result)
    }

    fn subscriber_or_holder(&self) -> Result<SubscriberHandle, Failed> {
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: `subscriber` may be written; the callback is of CUPTI's type and never goes away.
        let result = unsafe { (self.calls.subscribe)(&mut subscriber, door::on_callback, std::ptr::null_mut()) };
        let named = self.calls.subscribe_named.zip(SubscriberParams::size_bytes(self.cupti_version));
        match named {
            Some((subscribe, size_bytes)) if result == CuptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
                Self::subscribe_by_name(subscribe, size_bytes)
            }
            _ => checked("cuptiSubscribe", result).map(|()| subscriber),
        }
    }

    /// Asks once more, in the way in which CUPTI says who has it.
    fn subscribe_by_name(subscribe: SubscribeV2, size_bytes: usize) -> Result<SubscriberHandle, Failed> {
        let mut subscriber = std::ptr::null_mut();
        let mut holder = [0; OLD_SUBSCRIBER_NAME_MIN_LEN];
        let mut params = SubscriberParams {
            size_bytes,
            subscriber_name: c"gputap".as_ptr(),
            old_subscriber_name: holder.as_mut_ptr().cast(),
            old_subscriber_size_bytes: holder.len(),
            allow_multiple_subscribers: 0,
            padding: [0; 7],
        };
        // SAFETY: `subscriber`, and as many bytes of the name as are told, may be written; the strings are
        // NUL-terminated; the callback is of CUPTI's type and never goes away.
        let result = unsafe { subscribe(&mut subscriber, door::on_callback, std::ptr::null_mut(), &mut params) };
        let name = CStr::from_bytes_until_nul(&holder).unwrap_or_default().to_string_lossy();
        let holder = (!name.is_empty()).then(|| name.into_owned());
        checked("cuptiSubscribe", result).map(|()| subscriber).map_err(|failed| Failed { holder, ..failed })
    }

    pub fn unsubscribe(&mut self) -> Result<(), Failed> {
        let Some(subscriber) = self.subscriber.take() else { return Ok(()) };
        // SAFETY: the subscriber is ours and not used again.
        checked("cuptiUnsubscribe", unsafe { (self.calls.unsubscribe)(subscriber) })
    }

    /// Unsubscribes and takes CUPTI down, so that another tool can have it. Only on explicit request. CUPTI forgets the
    /// buffers that it holds: they are to be flushed before.
    pub fn leave(&mut self) -> Result<(), Failed> {
        let finalize = self.calls.finalize.ok_or(Failed::missing("cuptiFinalize"))?;
        self.unsubscribe()?;
        // SAFETY: this thread makes every CUPTI call of ours but those of callbacks that are running now, which CUPTI
        // waits for.
        checked("cuptiFinalize", unsafe { finalize() })
    }

    pub fn can_leave(&self) -> bool {
        self.calls.finalize.is_some()
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    pub fn enable(&mut self, activity_kind: u32) -> Result<(), Failed> {
        let activity = self.activity()?;
        // SAFETY: takes a number.
        checked("cuptiActivityEnable", unsafe { (activity.enable)(activity_kind) })
    }

    pub fn disable(&mut self, activity_kind: u32) -> Result<(), Failed> {
        let activity = self.activity()?;
        // SAFETY: takes a number.
        checked("cuptiActivityDisable", unsafe { (activity.disable)(activity_kind) })
    }

    /// Asks for the buffers that hold no unfinished record.
    pub fn flush(&mut self) -> Result<(), Failed> {
        let activity = self.activity()?;
        // SAFETY: takes a number. Waits for CUPTI's own threads, which wait for nothing of ours.
        checked("cuptiActivityFlushAll", unsafe { (activity.flush_all)(0) })
    }

    /// Asks for all buffers, unfinished records included, which do not come again: for the end, of the process or of our
    /// being there, only.
    pub fn flush_forced(&mut self) -> Result<(), Failed> {
        let activity = self.activity()?;
        // SAFETY: as for `flush`.
        checked("cuptiActivityFlushAll(forced)", unsafe { (activity.flush_all)(ACTIVITY_FLAG_FLUSH_FORCED) })
    }

    fn activity(&self) -> Result<ActivityCalls, Failed> {
        self.calls.activity.ok_or(Failed::missing("CUPTI's activity functions"))
    }

    /// Has CUPTI read CLOCK_MONOTONIC for its records, and looks whether it does; `None` where it cannot be told to.
    pub fn use_monotonic_clock(&mut self) -> Option<bool> {
        let clock = self.calls.clock?;
        self.register_clock(clock::read_monotonic).ok()?;
        // SAFETY: none is needed.
        let before_ns = unsafe { clock::read_monotonic() };
        let mut seen_ns = 0;
        // SAFETY: `seen_ns` may be written.
        let result = unsafe { (clock.timestamp)(&mut seen_ns) };
        // SAFETY: none is needed.
        let after_ns = unsafe { clock::read_monotonic() };
        Some(result == CuptiResult::SUCCESS && (before_ns..=after_ns).contains(&seen_ns))
    }

    /// Has CUPTI read the wall clock again, as whoever has it after us expects.
    pub fn use_wall_clock(&mut self) -> Result<(), Failed> {
        self.register_clock(clock::read_realtime)
    }

    fn register_clock(&mut self, read: TimestampFn) -> Result<(), Failed> {
        let clock = self.calls.clock.ok_or(Failed::missing("cuptiActivityRegisterTimestampCallback"))?;
        // SAFETY: the function is of CUPTI's type and never goes away.
        checked("cuptiActivityRegisterTimestampCallback", unsafe { (clock.register_timestamp)(read) })
    }

    /// Has the application's launches call us, or no more.
    pub fn enable_launches(&mut self, on: bool) -> Result<(), Failed> {
        let Some(subscriber) = self.subscriber else { return Ok(()) };
        for id in DRIVER_LAUNCHES {
            // SAFETY: the subscriber is ours and still subscribed.
            let result = unsafe { (self.calls.enable_callback)(u32::from(on), subscriber, CB_DOMAIN_DRIVER_API, id) };
            // An id that this CUPTI does not have.
            if result != CuptiResult::INVALID_PARAMETER {
                checked("cuptiEnableCallback(launches)", result)?;
            }
        }
        Ok(())
    }
}
