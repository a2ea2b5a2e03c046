//! The guard: the right to call CUPTI. There is one, the timer owns it, and every call takes it by `&mut`; so calls
//! never overlap, and there is no lock that a callback, or anybody, could wait for.

use crate::library::Calls;
use gputap_callbacks::door;
use gputap_cupti::{
    abi::SubscriberHandle,
    constants::{ACTIVITY_FLAG_FLUSH_FORCED, CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED, CuptiResult},
};

/// The one right to call CUPTI outside callbacks.
pub struct Guard {
    calls: Calls,
    subscriber: Option<SubscriberHandle>,
}

// SAFETY: the subscriber handle is a number to us; CUPTI lets any thread use it.
unsafe impl Send for Guard {}

/// A CUPTI call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    pub call: &'static str,
    pub result: CuptiResult,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} gave error {}", self.call, self.result.0)?;
        self.result.name().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

fn checked(call: &'static str, result: CuptiResult) -> Result<(), Failed> {
    if result == CuptiResult::SUCCESS { Ok(()) } else { Err(Failed { call, result }) }
}

impl Guard {
    /// To be made once, by start-up.
    pub fn new(calls: Calls) -> Guard {
        Guard { calls, subscriber: None }
    }

    /// Subscribes to module loads and hands over the buffer callbacks.
    pub fn subscribe(&mut self) -> Result<(), Failed> {
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: `subscriber` may be written; the callback is of CUPTI's type and never goes away.
        let result = unsafe { (self.calls.subscribe)(&mut subscriber, door::on_callback, std::ptr::null_mut()) };
        checked("cuptiSubscribe", result)?;
        self.subscriber = Some(subscriber);
        // SAFETY: the subscriber is the one just made.
        let result =
            unsafe { (self.calls.enable_callback)(1, subscriber, CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED) };
        checked("cuptiEnableCallback(MODULE_LOADED)", result)?;
        // SAFETY: both callbacks are of CUPTI's types and never go away.
        let result = unsafe { (self.calls.register_callbacks)(door::on_buffer_requested, door::on_buffer_completed) };
        checked("cuptiActivityRegisterCallbacks", result)
    }

    pub fn unsubscribe(&mut self) -> Result<(), Failed> {
        let Some(subscriber) = self.subscriber.take() else { return Ok(()) };
        // SAFETY: the subscriber is ours and not used again.
        checked("cuptiUnsubscribe", unsafe { (self.calls.unsubscribe)(subscriber) })
    }

    /// Unsubscribes and takes CUPTI down, so that another tool can have it. Only on explicit request. CUPTI forgets the
    /// buffers that it holds: they are to be flushed before.
    pub fn leave(&mut self) -> Result<(), Failed> {
        self.unsubscribe()?;
        // SAFETY: this thread makes every CUPTI call of ours but those of callbacks that are running now, which CUPTI
        // waits for.
        checked("cuptiFinalize", unsafe { (self.calls.finalize)() })
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    pub fn enable(&mut self, activity_kind: u32) -> Result<(), Failed> {
        // SAFETY: takes a number.
        checked("cuptiActivityEnable", unsafe { (self.calls.enable)(activity_kind) })
    }

    pub fn disable(&mut self, activity_kind: u32) -> Result<(), Failed> {
        // SAFETY: takes a number.
        checked("cuptiActivityDisable", unsafe { (self.calls.disable)(activity_kind) })
    }

    /// Asks for the buffers that hold no unfinished record.
    pub fn flush(&mut self) -> Result<(), Failed> {
        // SAFETY: takes a number. Waits for CUPTI's own threads, which wait for nothing of ours.
        checked("cuptiActivityFlushAll", unsafe { (self.calls.flush_all)(0) })
    }

    /// Asks for all buffers, unfinished records included, which do not come again: for the end, of the process or of our
    /// being there, only.
    pub fn flush_forced(&mut self) -> Result<(), Failed> {
        // SAFETY: as for `flush`.
        checked("cuptiActivityFlushAll(forced)", unsafe { (self.calls.flush_all)(ACTIVITY_FLAG_FLUSH_FORCED) })
    }
}
