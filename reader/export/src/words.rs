//! CUPTI's numbers in words, as `cupti_activity.h` explains them.

/// Of a `CUpti_ActivityMemcpyKind`: the copy's name as torch.profiler writes it.
pub fn copy(kind: u8) -> &'static str {
    match kind {
        1 => "Memcpy HtoD",
        2 => "Memcpy DtoH",
        3 => "Memcpy HtoA",
        4 => "Memcpy AtoH",
        5 => "Memcpy AtoA",
        6 => "Memcpy AtoD",
        7 => "Memcpy DtoA",
        8 => "Memcpy DtoD",
        9 => "Memcpy HtoH",
        10 => "Memcpy PtoP",
        _ => "Memcpy Unknown",
    }
}

/// Of a `CUpti_ActivityMemoryKind`.
pub fn memory(kind: u8) -> &'static str {
    match kind {
        1 => "Pageable",
        2 => "Pinned",
        3 => "Device",
        4 => "Array",
        5 => "Managed",
        6 => "Device Static",
        7 => "Managed Static",
        _ => "Unknown",
    }
}

/// Of a `CUpti_ActivitySynchronizationType`, as torch.profiler writes it.
pub fn sync(kind: u32) -> &'static str {
    match kind {
        1 => "Event Sync",
        2 => "Stream Wait Event",
        3 => "Stream Sync",
        4 => "Context Sync",
        _ => "Unknown Sync",
    }
}

/// Of a `CUpti_ActivityOverheadKind`.
pub fn overhead(kind: u32) -> &'static str {
    match kind {
        1 => "Driver Compiler",
        0x1_0000 => "Buffer Flush",
        0x2_0000 => "Instrumentation",
        0x3_0000 => "Resource",
        0x4_0000 => "Runtime Triggered Module Loading",
        0x5_0000 => "Lazy Function Loading",
        0x6_0000 => "Command Buffer Full",
        0x7_0000 => "Activity Buffer Request",
        0x8_0000 => "UVM Activity Initialization",
        _ => "Unknown Overhead",
    }
}
