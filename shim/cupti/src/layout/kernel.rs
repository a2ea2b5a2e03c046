//! Kernel records (`CONCURRENT_KERNEL`, and the serialising `KERNEL`).

use std::ffi::c_char;

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a kernel record lie.
    layout KernelLayout;
    /// One execution of a kernel.
    record KernelRecord;
    always {
        /// 0 where CUPTI has no time, or the kernel has not finished.
        start_ns: u64,
        /// 0 where CUPTI has no time, or the kernel has not finished.
        end_ns: u64,
        /// With its child kernels; 0 where unknown.
        completed_ns: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        /// The launching call's; 32 bits, so it wraps within hours.
        correlation_id: u32,
        // Dimensions and shared memory are signed in CUPTI and never negative.
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        registers_per_thread: u16,
        static_shared_memory_bytes: u32,
        dynamic_shared_memory_bytes: u32,
        /// What the driver set aside, which may be more than what was asked for.
        shared_memory_executed_bytes: u32,
        local_memory_per_thread_bytes: u32,
        local_memory_total_bytes: u64,
        /// Mangled, NUL-terminated, owned by CUPTI, shared by the records of one kernel.
        name: *const c_char,
        /// 0 where no graph launched it.
        graph_node_id: u64,
        /// 0 where no graph launched it.
        graph_id: u32,
        /// `INVALID_CHANNEL_ID` where launched from the device.
        channel_id: u32,
        /// `CUpti_ChannelType`: 1 compute, 2 asynchronous copies.
        channel_type: u32,
        /// `CUpti_ActivityLaunchType`: 0 regular, 1 cooperative, 2 cooperative on several devices, 3 command list.
        launch_type: u8,
        /// Clusters: valid from compute capability 9.0 on.
        cluster_x: u32,
        cluster_y: u32,
        cluster_z: u32,
    }
    later {
        /// 1 as part of a graph that was launched from the device. From 13.0 on.
        device_launched: u8,
        /// The launch's priority. From 13.1 on.
        priority: i32,
        /// `CUpti_FuncExecutionModel`: 0 unknown, 1 SIMT, 2 tile, 3 both. From 13.3 on.
        execution_model: u32,
        /// The graph that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_id: u32,
        /// The node that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_node_id: u64,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static KernelLayout {
    match cupti_version {
        ..=18 => &KERNEL8,
        19..130_000 => &KERNEL9,
        130_000..130_100 => &KERNEL10,
        130_100..130_300 => &KERNEL11,
        130_300..130_400 => &KERNEL12,
        130_400.. => &KERNEL13,
    }
}

const KERNEL8: KernelLayout = KernelLayout {
    structure: "CUpti_ActivityKernel8",
    size_bytes: 200,
    start_ns: Field::at(16),
    end_ns: Field::at(24),
    completed_ns: Field::at(32),
    device_id: Field::at(40),
    context_id: Field::at(44),
    stream_id: Field::at(48),
    correlation_id: Field::at(92),
    grid_x: Field::at(52),
    grid_y: Field::at(56),
    grid_z: Field::at(60),
    block_x: Field::at(64),
    block_y: Field::at(68),
    block_z: Field::at(72),
    registers_per_thread: Field::at(6),
    static_shared_memory_bytes: Field::at(76),
    dynamic_shared_memory_bytes: Field::at(80),
    shared_memory_executed_bytes: Field::at(140),
    local_memory_per_thread_bytes: Field::at(84),
    // The 64-bit one: the field of 32 bits at 88 has been deprecated since 11.8.
    local_memory_total_bytes: Field::at(192),
    name: Field::at(104),
    graph_node_id: Field::at(144),
    graph_id: Field::at(156),
    channel_id: Field::at(168),
    channel_type: Field::at(172),
    launch_type: Field::at(136),
    cluster_x: Field::at(176),
    cluster_y: Field::at(180),
    cluster_z: Field::at(184),
    device_launched: None,
    priority: None,
    execution_model: None,
    source_graph_id: None,
    source_graph_node_id: None,
};

const KERNEL9: KernelLayout = KernelLayout { structure: "CUpti_ActivityKernel9", size_bytes: 208, ..KERNEL8 };

const KERNEL10: KernelLayout = KernelLayout {
    structure: "CUpti_ActivityKernel10",
    size_bytes: 216,
    device_launched: Some(Field::at(208)),
    ..KERNEL9
};

const KERNEL11: KernelLayout =
    KernelLayout { structure: "CUpti_ActivityKernel11", size_bytes: 224, priority: Some(Field::at(216)), ..KERNEL10 };

const KERNEL12: KernelLayout = KernelLayout {
    structure: "CUpti_ActivityKernel12",
    size_bytes: 232,
    execution_model: Some(Field::at(224)),
    ..KERNEL11
};

const KERNEL13: KernelLayout = KernelLayout {
    structure: "CUpti_ActivityKernel13",
    size_bytes: 248,
    source_graph_id: Some(Field::at(232)),
    source_graph_node_id: Some(Field::at(240)),
    ..KERNEL12
};

const _: () = assert!(KERNEL8.fits() && KERNEL9.fits() && KERNEL10.fits());
const _: () = assert!(KERNEL11.fits() && KERNEL12.fits() && KERNEL13.fits());
