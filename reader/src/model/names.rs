//! What CUPTI's numbers mean. Source: cupti_activity.h, 11.8 to 13.5, by way of `gputap_cupti`.

use gputap_cupti::constants as cupti;

/// `CUpti_ActivitySynchronizationType`.
pub fn sync_kind(kind: u32) -> &'static str {
    match kind {
        1 => "event",
        2 => "stream waits for event",
        3 => "stream",
        4 => "context",
        _ => "unknown",
    }
}

/// `CUpti_ActivityOverheadKind`.
pub fn overhead_kind(kind: u32) -> &'static str {
    match kind {
        cupti::ACTIVITY_OVERHEAD_DRIVER_COMPILER => "driver compiler",
        cupti::ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH => "buffer flush",
        cupti::ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION => "instrumentation",
        cupti::ACTIVITY_OVERHEAD_CUPTI_RESOURCE => "resources",
        cupti::ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING => "module loading by the runtime",
        cupti::ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING => "lazy loading",
        cupti::ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL => "command buffer full",
        cupti::ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST => "buffer request",
        cupti::ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT => "managed memory",
        _ => "unknown",
    }
}

/// `CUpti_ActivityMemoryKind`.
pub fn memory_kind(kind: u8) -> &'static str {
    match kind {
        1 => "pageable",
        2 => "pinned",
        3 => "device",
        4 => "array",
        5 => "managed",
        6 => "device static",
        7 => "managed static",
        _ => "unknown",
    }
}
