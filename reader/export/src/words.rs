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

/// The runtime's functions that jobs spend their calls on, by CUPTI's numbers of them (`cupti_runtime_cbid.h`), which never
/// change their meaning.
const RUNTIME: &[(u32, &str)] = &[
    (15, "cudaFuncGetAttributes"),
    (16, "cudaSetDevice"),
    (17, "cudaGetDevice"),
    (20, "cudaMalloc"),
    (22, "cudaFree"),
    (25, "cudaMallocHost"),
    (26, "cudaFreeHost"),
    (27, "cudaHostAlloc"),
    (31, "cudaMemcpy"),
    (41, "cudaMemcpyAsync"),
    (49, "cudaMemset"),
    (51, "cudaMemsetAsync"),
    (126, "cudaThreadSynchronize"),
    (129, "cudaStreamCreate"),
    (131, "cudaStreamSynchronize"),
    (133, "cudaEventCreate"),
    (134, "cudaEventCreateWithFlags"),
    (135, "cudaEventRecord"),
    (136, "cudaEventDestroy"),
    (137, "cudaEventSynchronize"),
    (138, "cudaEventQuery"),
    (147, "cudaStreamWaitEvent"),
    (151, "cudaPointerGetAttributes"),
    (161, "cudaMemcpyPeerAsync"),
    (165, "cudaDeviceSynchronize"),
    (198, "cudaStreamCreateWithFlags"),
    (200, "cudaDeviceGetAttribute"),
    (202, "cudaStreamCreateWithPriority"),
    (206, "cudaMallocManaged"),
    (211, "cudaLaunchKernel"),
    (215, "cudaMemcpy"),
    (233, "cudaMemset"),
    (269, "cudaLaunchCooperativeKernel"),
    (311, "cudaGraphLaunch"),
    (317, "cudaStreamIsCapturing"),
    (373, "cudaMallocAsync"),
    (375, "cudaFreeAsync"),
    (430, "cudaLaunchKernelExC"),
];

/// The driver's (`cupti_driver_cbid.h`).
const DRIVER: &[(u32, &str)] = &[
    (17, "cuCtxSynchronize"),
    (19, "cuModuleLoadData"),
    (115, "cuLaunch"),
    (116, "cuLaunchGrid"),
    (117, "cuLaunchGridAsync"),
    (119, "cuEventRecord"),
    (120, "cuEventQuery"),
    (121, "cuEventSynchronize"),
    (126, "cuStreamSynchronize"),
    (216, "cuMemsetD8Async"),
    (220, "cuMemsetD32Async"),
    (243, "cuMemAlloc"),
    (245, "cuMemFree"),
    (277, "cuMemcpyHtoDAsync"),
    (279, "cuMemcpyDtoHAsync"),
    (281, "cuMemcpyDtoDAsync"),
    (295, "cuStreamWaitEvent"),
    (306, "cuMemcpyAsync"),
    (307, "cuLaunchKernel"),
    (418, "cuMemcpyAsync"),
    (442, "cuLaunchKernel"),
    (477, "cuLaunchCooperativeKernel"),
    (478, "cuLaunchCooperativeKernel"),
    (480, "cuLaunchCooperativeKernelMultiDevice"),
    (514, "cuGraphLaunch"),
    (515, "cuGraphLaunch"),
    (652, "cuLaunchKernelEx"),
    (653, "cuLaunchKernelEx"),
];

/// The runtime's function of a CUPTI number, where it is one that matters.
pub fn runtime(callback_id: u32) -> Option<&'static str> {
    of(RUNTIME, callback_id)
}

/// The driver's function of a CUPTI number.
pub fn driver(callback_id: u32) -> Option<&'static str> {
    of(DRIVER, callback_id)
}

fn of(table: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    table.binary_search_by_key(&number, |(known, _)| *known).ok().map(|at| table[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_number() {
        assert!([RUNTIME, DRIVER].iter().all(|table| table.is_sorted_by_key(|(number, _)| *number)));
        assert_eq!(
            (runtime(211), runtime(15), runtime(430)),
            (Some("cudaLaunchKernel"), Some("cudaFuncGetAttributes"), Some("cudaLaunchKernelExC"))
        );
        assert_eq!((driver(307), driver(653), driver(1)), (Some("cuLaunchKernel"), Some("cuLaunchKernelEx"), None));
    }
}
