//! Compares the tables of `gputap_cupti` with what NVIDIA's headers say. Run by `.ci/layouts`.
//!
//! ```text
//! check_layouts [--self-check] EXPECTED RECORDS
//! ```
//! EXPECTED holds "key value" lines and RECORDS the structs they tell of, both written by a C program that was compiled
//! against the headers of one version. With `--self-check` every offset in turn is moved by a byte: the comparison
//! must report that very field, or it is not to be trusted.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::process::ExitCode;

use gputap_cupti::abi::{CallbackData, GetCubinCrcParams, ModuleResourceData, ResourceData, SubscriberParams};
use gputap_cupti::layout::{self, Field, Layouts};
use gputap_cupti::{constants, version};

/// Records of each family in the file.
const ROUNDS: usize = 4;

/// In the order of their records in the file.
macro_rules! for_each_family {
    ($visit:ident) => {
        $visit!(kernel memcpy memset memcpy_ptop synchronization graph_trace memory memory_pool overhead marker api)
    };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--self-check", expected, records] => {
            Headers::load(expected, records).and_then(|headers| self_check(&headers))
        }
        [expected, records] => Headers::load(expected, records).and_then(|headers| check(&headers)),
        _ => Err("usage: check_layouts [--self-check] EXPECTED RECORDS".to_owned()),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            println!("{trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that the headers say must be what we have, and nothing may be left that nobody compared.
fn check(headers: &Headers) -> Result<String, String> {
    let layouts = headers.layouts()?;
    let mut comparison = Comparison::of(headers);
    comparison.equal("exact", &layouts.exact.to_string(), "true");
    macro_rules! compare {
        ($($family:ident)*) => {
            $($family::compare(&mut comparison, headers, layouts.$family);)*
        };
    }
    for_each_family!(compare);
    compare_constants(&mut comparison);
    compare_later_constants(&mut comparison, headers.version);
    compare_abi(&mut comparison);
    compare_subscriber_params(&mut comparison, headers.version);
    compare_later_functions(&mut comparison, headers.version);
    compare_versions(&mut comparison, headers.version);
    let unread: Vec<String> = comparison.expected.keys().map(|key| format!("{key}: nothing here reads it")).collect();
    comparison.mismatches.extend(unread);
    if !comparison.mismatches.is_empty() {
        return Err(comparison.mismatches.join("\n"));
    }
    let structures = structures(&layouts).join(", ");
    Ok(format!("CUPTI version {}: {structures}; {} values alike", headers.version, comparison.compared))
}

/// NVIDIA's names, less what they share.
fn structures(layouts: &Layouts) -> Vec<&'static str> {
    macro_rules! structures {
        ($($family:ident)*) => { vec![$(layouts.$family.structure.trim_start_matches("CUpti_Activity"),)*] };
    }
    for_each_family!(structures)
}

fn self_check(headers: &Headers) -> Result<String, String> {
    let layouts = headers.layouts()?;
    let mut unseen = Vec::new();
    let mut shifted = 0;
    macro_rules! shift {
        ($($family:ident)*) => {
            $(shifted += $family::self_check(headers, layouts.$family, &mut unseen);)*
        };
    }
    for_each_family!(shift);
    if unseen.is_empty() && shifted > 0 {
        Ok(format!("each of {shifted} offsets, moved by a byte, was reported"))
    } else {
        Err(format!("moved by a byte and not reported as the only mismatch: {}", unseen.join(", ")))
    }
}

/// What the C program wrote.
struct Headers {
    version: u32,
    expected: BTreeMap<String, String>,
    records: Vec<u8>,
}

impl Headers {
    fn load(expected: &str, records: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(expected).map_err(|error| format!("{expected}: {error}"))?;
        let records = std::fs::read(records).map_err(|error| format!("{records}: {error}"))?;
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let mut expected: BTreeMap<_, _> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let version = expected.remove("version").and_then(|version| version.parse().ok()).ok_or("no version")?;
        Ok(Self { version, expected, records })
    }

    fn layouts(&self) -> Result<Layouts, String> {
        layout::for_version(self.version).map_err(|error| error.to_string())
    }

    fn number(&self, key: &str) -> usize {
        self.expected.get(key).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// The `round`-th record of a family, at an odd address: CUPTI promises 8 bytes of alignment, we rely on none.
    fn record_at_odd_address(&self, family: &str, round: usize) -> Vec<u8> {
        macro_rules! names {
            ($($family:ident)*) => { [$(stringify!($family),)*] };
        }
        let families = for_each_family!(names);
        let before = families.iter().take_while(|other| **other != family);
        let start: usize = before.map(|other| ROUNDS * self.number(&format!("{other}.stride_bytes"))).sum();
        let stride = self.number(&format!("{family}.stride_bytes"));
        let record = self.records.get(start + round * stride..start + (round + 1) * stride).unwrap_or(&[]);
        [&[0][..], record].concat()
    }
}

struct Comparison {
    /// What nothing has read yet.
    expected: BTreeMap<String, String>,
    compared: usize,
    mismatches: Vec<String>,
}

impl Comparison {
    fn of(headers: &Headers) -> Self {
        Self { expected: headers.expected.clone(), compared: 0, mismatches: Vec::new() }
    }

    /// Compares what we have with what the headers say under `key`.
    fn header_says(&mut self, key: &str, ours: &str) {
        let theirs = self.expected.remove(key).unwrap_or_else(|| "nothing".to_owned());
        self.equal(key, ours, &theirs);
    }

    fn equal(&mut self, key: &str, ours: &str, theirs: &str) {
        self.compared += 1;
        if ours != theirs {
            self.mismatches.push(format!("{key}: ours is {ours}, the header says {theirs}"));
        }
    }
}

/// A field's bytes, zero-extended, as the C program prints them.
trait Bits: Copy {
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($Type:ty => |$value:ident| $bits:expr;)*) => {
        $(impl Bits for $Type { fn bits(self) -> u64 { let $value = self; $bits } })*
    };
}

bits! {
    u8 => |value| value.into();
    u16 => |value| value.into();
    u32 => |value| value.into();
    i32 => |value| value.cast_unsigned().into();
    u64 => |value| value;
    *const std::ffi::c_char => |value| value.addr() as u64;
    *mut std::ffi::c_void => |value| value.addr() as u64;
}

/// The comparison of one family. The record is taken apart field by field, so that a field left out does not compile.
macro_rules! family {
    ($family:ident: $Layout:ident, $Record:ident { $($field:ident)* } later { $($later:ident)* }) => {
        mod $family {
            use super::*;
            use gputap_cupti::layout::{$Layout, $Record};

            const NAME: &str = stringify!($family);

            pub fn compare(comparison: &mut Comparison, headers: &Headers, table: &$Layout) {
                comparison.header_says(&format!("{NAME}.structure"), table.structure);
                comparison.header_says(&format!("{NAME}.size_bytes"), &table.size_bytes.to_string());
                comparison.expected.remove(&format!("{NAME}.stride_bytes"));
                for round in 0..ROUNDS {
                    compare_record(comparison, headers, table, round);
                }
            }

            fn compare_record(comparison: &mut Comparison, headers: &Headers, table: &$Layout, round: usize) {
                let bytes = headers.record_at_odd_address(NAME, round);
                let record = bytes.get(1..).unwrap_or(&[]);
                assert!(table.fits(), "a table whose fields lie outside the record");
                // SAFETY: `record` is readable for its length, nothing writes it, and the table fits.
                let Some(record) = (unsafe { table.read(record.as_ptr(), record.len()) }) else {
                    let trouble = format!("{NAME}.{round}: the record is shorter than the table says");
                    return comparison.mismatches.push(trouble);
                };
                let $Record { $($field,)* $($later,)* } = record;
                let key = |field: &str| format!("{NAME}.{round}.{field}");
                $(comparison.header_says(&key(stringify!($field)), &$field.bits().to_string());)*
                $(
                    let ours = $later.map_or("absent".to_owned(), |value| value.bits().to_string());
                    comparison.header_says(&key(stringify!($later)), &ours);
                )*
            }

            /// Moves each offset in turn; returns how many it moved.
            pub fn self_check(headers: &Headers, table: &$Layout, unseen: &mut Vec<String>) -> usize {
                let mut shifted = 0;
                let mut expect_report = |field: &str, table: $Layout| {
                    let mut comparison = Comparison::of(headers);
                    compare(&mut comparison, headers, &table);
                    let of_field = |mismatch: &String| mismatch.contains(&format!(".{field}: "));
                    if comparison.mismatches.is_empty() || !comparison.mismatches.iter().all(of_field) {
                        unseen.push(format!("{NAME}.{field}"));
                    }
                    shifted += 1;
                };
                $(expect_report(stringify!($field), $Layout { $field: one_byte_before(table.$field), ..*table });)*
                $(if let Some(later) = table.$later {
                    expect_report(stringify!($later), $Layout { $later: Some(one_byte_before(later)), ..*table });
                })*
                shifted
            }
        }
    };
}

fn one_byte_before<T>(field: Field<T>) -> Field<T> {
    // The kind comes first in every record, so no field begins at 0 and the shifted one still lies inside.
    Field::at(field.offset_bytes().saturating_sub(1))
}

family! {
    kernel: KernelLayout, KernelRecord {
        start_ns end_ns completed_ns device_id context_id stream_id correlation_id grid_x grid_y grid_z block_x block_y
        block_z registers_per_thread static_shared_memory_bytes dynamic_shared_memory_bytes
        shared_memory_executed_bytes local_memory_per_thread_bytes local_memory_total_bytes name graph_node_id graph_id
        channel_id channel_type launch_type cluster_x cluster_y cluster_z
    } later { device_launched priority execution_model source_graph_id source_graph_node_id }
}

family! {
    memcpy: MemcpyLayout, MemcpyRecord {
        copy_kind src_kind dst_kind flags copied_bytes start_ns end_ns device_id context_id stream_id correlation_id
        runtime_correlation_id graph_node_id graph_id channel_id channel_type
    } later { copy_count device_launched source_graph_id source_graph_node_id }
}

family! {
    memset: MemsetLayout, MemsetRecord {
        value filled_bytes start_ns end_ns device_id context_id stream_id correlation_id flags memory_kind graph_node_id
        graph_id channel_id channel_type
    } later { device_launched source_graph_id source_graph_node_id }
}

family! {
    memcpy_ptop: MemcpyPtopLayout, MemcpyPtopRecord {
        copy_kind src_kind dst_kind flags copied_bytes start_ns end_ns device_id context_id stream_id src_device_id
        src_context_id dst_device_id dst_context_id correlation_id graph_node_id graph_id channel_id channel_type
    } later {}
}

family! {
    synchronization: SynchronizationLayout, SynchronizationRecord {
        synchronization_type start_ns end_ns correlation_id context_id stream_id cuda_event_id
    } later { cuda_event_sync_id return_value }
}

family! {
    graph_trace: GraphTraceLayout, GraphTraceRecord {
        correlation_id start_ns end_ns device_id graph_id context_id stream_id
    } later { end_device_id end_context_id }
}

family! {
    memory: MemoryLayout, MemoryRecord {
        operation_type memory_kind correlation_id address allocated_bytes timestamp_ns process_id device_id context_id
        stream_id name is_async pool_type pool_address pool_release_threshold_bytes pool_size_bytes_or_process_id
        pool_utilized_bytes
    } later { source }
}

family! {
    memory_pool: MemoryPoolLayout, MemoryPoolRecord {
        operation_type pool_type correlation_id process_id device_id min_bytes_to_keep address pool_size_bytes
        release_threshold_bytes timestamp_ns utilized_bytes
    } later { is_managed }
}

family! {
    overhead: OverheadLayout, OverheadRecord {
        overhead_kind object_kind process_id thread_id start_ns end_ns
    } later { correlation_id details }
}

family! {
    marker: MarkerLayout, MarkerRecord {
        flags timestamp_ns id object_kind process_id thread_id name domain
    } later {}
}

family! {
    api: ApiLayout, ApiRecord {
        callback_id start_ns end_ns process_id thread_id correlation_id return_value
    } later {}
}

fn compare_constants(comparison: &mut Comparison) {
    macro_rules! constants {
        ($($name:ident)*) => {
            $(comparison.header_says(concat!("constant.", stringify!($name)), &constants::$name.to_string());)*
        };
    }
    constants! {
        ACTIVITY_KIND_MEMCPY ACTIVITY_KIND_MEMSET ACTIVITY_KIND_KERNEL ACTIVITY_KIND_DRIVER ACTIVITY_KIND_RUNTIME
        ACTIVITY_KIND_CONCURRENT_KERNEL ACTIVITY_KIND_MEMCPY2
        ACTIVITY_FLAG_FLUSH_FORCED ACTIVITY_FLAG_MEMCPY_ASYNC ACTIVITY_FLAG_MEMSET_ASYNC
        ACTIVITY_ATTR_DEVICE_BUFFER_SIZE ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT
        ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE
        CB_DOMAIN_DRIVER_API CB_DOMAIN_RUNTIME_API CB_DOMAIN_RESOURCE
        CBID_RESOURCE_CONTEXT_CREATED CBID_RESOURCE_CONTEXT_DESTROY_STARTING CBID_RESOURCE_STREAM_CREATED
        CBID_RESOURCE_STREAM_DESTROY_STARTING CBID_RESOURCE_MODULE_LOADED CBID_RESOURCE_MODULE_UNLOAD_STARTING
        API_ENTER API_EXIT
        TIMESTAMP_UNKNOWN INVALID_CHANNEL_ID SYNCHRONIZATION_INVALID_VALUE
        ACTIVITY_KIND_MARKER ACTIVITY_KIND_MARKER_DATA ACTIVITY_KIND_OVERHEAD ACTIVITY_KIND_SYNCHRONIZATION
        ACTIVITY_KIND_EXTERNAL_CORRELATION ACTIVITY_KIND_MEMORY2 ACTIVITY_KIND_MEMORY_POOL ACTIVITY_KIND_GRAPH_TRACE
        ACTIVITY_FLAG_MARKER_INSTANTANEOUS ACTIVITY_FLAG_MARKER_START ACTIVITY_FLAG_MARKER_END
        ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_SUCCESS
        ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_FAILED ACTIVITY_FLAG_MARKER_SYNC_RELEASE
        ACTIVITY_OBJECT_UNKNOWN ACTIVITY_OBJECT_PROCESS ACTIVITY_OBJECT_THREAD ACTIVITY_OBJECT_DEVICE
        ACTIVITY_OBJECT_CONTEXT ACTIVITY_OBJECT_STREAM
        ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE
        ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
        ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE
        ACTIVITY_MEMORY_OPERATION_TYPE_INVALID ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
        ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
        ACTIVITY_MEMORY_KIND_UNKNOWN ACTIVITY_MEMORY_KIND_PAGEABLE ACTIVITY_MEMORY_KIND_PINNED
        ACTIVITY_MEMORY_KIND_DEVICE ACTIVITY_MEMORY_KIND_ARRAY ACTIVITY_MEMORY_KIND_MANAGED
        ACTIVITY_MEMORY_KIND_DEVICE_STATIC ACTIVITY_MEMORY_KIND_MANAGED_STATIC
        ACTIVITY_MEMORY_POOL_TYPE_INVALID ACTIVITY_MEMORY_POOL_TYPE_LOCAL ACTIVITY_MEMORY_POOL_TYPE_IMPORTED
        ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED
        ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED
        ACTIVITY_OVERHEAD_UNKNOWN ACTIVITY_OVERHEAD_DRIVER_COMPILER ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH
        ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION ACTIVITY_OVERHEAD_CUPTI_RESOURCE
        DRIVER_TRACE_CBID_cuLaunch DRIVER_TRACE_CBID_cuLaunchGrid DRIVER_TRACE_CBID_cuLaunchGridAsync
        DRIVER_TRACE_CBID_cuLaunchKernel DRIVER_TRACE_CBID_cuLaunchKernel_ptsz
        DRIVER_TRACE_CBID_cuLaunchCooperativeKernel DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz
        DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice
        DRIVER_TRACE_CBID_cuGraphLaunch DRIVER_TRACE_CBID_cuGraphLaunch_ptsz
        DRIVER_TRACE_CBID_cuLaunchKernelEx DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz
    }
    // An older header lacks the newest results; those that it has must agree with ours, and we name only some.
    for (result, name) in constants::NAMED_RESULTS {
        if comparison.expected.contains_key(&format!("result.{name}")) {
            comparison.header_says(&format!("result.{name}"), &result.0.to_string());
        }
    }
    comparison.expected.retain(|key, _| !key.starts_with("result."));
}

/// The constants that differ between versions: those that changed, and those that older headers lack.
fn compare_later_constants(comparison: &mut Comparison, cupti_version: u32) {
    macro_rules! constants {
        ($($name:ident from $since:literal)*) => {$(
            let ours = if cupti_version < $since { "absent".to_owned() } else { constants::$name.to_string() };
            comparison.header_says(concat!("constant.", stringify!($name)), &ours);
        )*};
    }
    constants! {
        ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING from 21
        ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING from 21
        ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL from 22
        ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST from 24
        ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT from 26
        SUBSCRIBER_NAME_MAX_LEN from 130_000
        OLD_SUBSCRIBER_NAME_MIN_LEN from 130_000
    }
    for name in ["INVALID_CONTEXT_ID", "INVALID_STREAM_ID"] {
        comparison.header_says(&format!("constant.{name}"), &constants::invalid_id(cupti_version).to_string());
    }
}

/// The functions that libraries before a version lack. The C program compares the parameters.
fn compare_later_functions(comparison: &mut Comparison, cupti_version: u32) {
    let later = [
        ("cuptiActivityEnableDeviceGraph", 21),
        ("cuptiActivityEnableDriverApi", 23),
        ("cuptiActivityEnableRuntimeApi", 23),
        ("cuptiActivityEnableAllocationSource", 24),
        ("cuptiActivityEnableAllSyncRecords", 26),
        ("cuptiSubscribe_v2", 130_000),
    ];
    for (function, since) in later {
        let ours = if cupti_version < since { "absent" } else { "present" };
        comparison.header_says(&format!("function.{function}"), ours);
    }
}

/// Every number that the header lists, and what this version's library knows.
fn compare_versions(comparison: &mut Comparison, cupti_version: u32) {
    let keys = comparison.expected.keys();
    let numbers_after =
        |prefix: &str| -> Vec<u32> { keys.clone().filter_map(|key| key.strip_prefix(prefix)?.parse().ok()).collect() };
    let (listed, architectures) = (numbers_after("cuda_version."), numbers_after("knows_architecture."));
    comparison.equal("the header lists versions", &(listed.len() >= 18).to_string(), "true");
    for listed in listed {
        let ours =
            version::cuda_version_of(listed).map_or("none".to_owned(), |(major, minor)| format!("{major}.{minor}"));
        comparison.header_says(&format!("cuda_version.{listed}"), &ours);
    }
    for architecture in architectures {
        let ours = version::knows_architecture(cupti_version, architecture);
        let ours = ours.map_or("unknown".to_owned(), |knows| knows.to_string());
        comparison.header_says(&format!("knows_architecture.{architecture}"), &ours);
    }
    let newest = version::newest_architecture(cupti_version).map_or("none".to_owned(), |newest| newest.to_string());
    comparison.header_says("newest_architecture", &newest);
}

/// The struct that grew: what `size_bytes` leaves out is what the header lacks.
fn compare_subscriber_params(comparison: &mut Comparison, cupti_version: u32) {
    let known_bytes = SubscriberParams::size_bytes(cupti_version);
    let size = known_bytes.map_or("absent".to_owned(), |known_bytes| known_bytes.to_string());
    comparison.header_says("abi.SubscriberParams.sizeof", &size);
    if known_bytes.is_some() {
        comparison.header_says("abi.SubscriberParams.STRUCT_SIZE", &size);
    }
    macro_rules! fields {
        ($($field:ident)*) => {$(
            let offset = offset_of!(SubscriberParams, $field);
            let width = width_bytes(|value: &SubscriberParams| &value.$field);
            let known = known_bytes.is_some_and(|known_bytes| offset < known_bytes);
            let ours = if known { format!("{offset}+{width}") } else { "absent".to_owned() };
            comparison.header_says(concat!("abi.SubscriberParams.", stringify!($field)), &ours);
        )*};
    }
    fields! {
        size_bytes subscriber_name old_subscriber_name old_subscriber_size_bytes allow_multiple_subscribers padding
    }
}

fn compare_abi(comparison: &mut Comparison) {
    macro_rules! structs {
        ($($Struct:ident { $($field:ident)* })*) => {$(
            let ours = size_of::<$Struct>().to_string();
            comparison.header_says(concat!("abi.", stringify!($Struct), ".sizeof"), &ours);
            $(
                let width = width_bytes(|value: &$Struct| &value.$field);
                let ours = format!("{}+{width}", offset_of!($Struct, $field));
                comparison.header_says(concat!("abi.", stringify!($Struct), ".", stringify!($field)), &ours);
            )*
        )*};
    }
    structs! {
        CallbackData {
            callback_site function_name function_params function_return_value symbol_name context context_uid
            correlation_data correlation_id
        }
        ResourceData { context stream resource_descriptor }
        ModuleResourceData { module_id cubin_size_bytes cubin }
        GetCubinCrcParams { size_bytes cubin_size_bytes cubin cubin_crc }
    }
}

/// Padding can hide a field of the wrong width from its offset and its neighbours'.
fn width_bytes<S, T>(_field: fn(&S) -> &T) -> usize {
    size_of::<T>()
}
