#!/usr/bin/env python3
"""Writes, for each set of CUPTI headers, a C program that shows what those headers say.

    layouts.py OUT_DIR NAME=HEADER_DIR...

Each OUT_DIR/NAME.c, compiled against its own headers, fills NVIDIA's structs with distinctive values, writes them to
the file named in its argument, and prints "key value" lines of what a reader of that file must find. It also prints the
constants, the structs of the callbacks, and what the headers' text and the library's say of versions and GPUs.
`shim/cupti/examples/check_layouts.rs` reads both.

Only names of members are written here; offsets and sizes come from the compiler.
"""

import hashlib
import pathlib
import re
import sys

# Per family: the activity kinds whose header comments name its struct, and our field names with NVIDIA's members. Of
# several members that share a place (unions), one stands for all.
FAMILIES = {
    "kernel": (["CONCURRENT_KERNEL"], {
        "start_ns": "start", "end_ns": "end", "completed_ns": "completed",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId", "correlation_id": "correlationId",
        "grid_x": "gridX", "grid_y": "gridY", "grid_z": "gridZ",
        "block_x": "blockX", "block_y": "blockY", "block_z": "blockZ",
        "registers_per_thread": "registersPerThread",
        "static_shared_memory_bytes": "staticSharedMemory", "dynamic_shared_memory_bytes": "dynamicSharedMemory",
        "shared_memory_executed_bytes": "sharedMemoryExecuted",
        "local_memory_per_thread_bytes": "localMemoryPerThread", "local_memory_total_bytes": "localMemoryTotal_v2",
        "name": "name", "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType", "launch_type": "launchType",
        "cluster_x": "clusterX", "cluster_y": "clusterY", "cluster_z": "clusterZ",
        "device_launched": "isDeviceLaunched", "priority": "priority", "execution_model": "executionModel",
        "source_graph_id": "sourceGraphId", "source_graph_node_id": "sourceGraphNodeId",
    }),
    "memcpy": (["MEMCPY"], {
        "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind", "flags": "flags",
        "copied_bytes": "bytes", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId", "correlation_id": "correlationId",
        "runtime_correlation_id": "runtimeCorrelationId", "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType",
        "copy_count": "copyCount", "device_launched": "isDeviceLaunched",
        "source_graph_id": "sourceGraphId", "source_graph_node_id": "sourceGraphNodeId",
    }),
    "memset": (["MEMSET"], {
        "value": "value", "filled_bytes": "bytes", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId", "correlation_id": "correlationId",
        "flags": "flags", "memory_kind": "memoryKind", "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType",
        "device_launched": "isDeviceLaunched",
        "source_graph_id": "sourceGraphId", "source_graph_node_id": "sourceGraphNodeId",
    }),
    "memcpy_ptop": (["MEMCPY2"], {
        "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind", "flags": "flags",
        "copied_bytes": "bytes", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId",
        "src_device_id": "srcDeviceId", "src_context_id": "srcContextId",
        "dst_device_id": "dstDeviceId", "dst_context_id": "dstContextId", "correlation_id": "correlationId",
        "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType",
    }),
    "synchronization": (["SYNCHRONIZATION"], {
        "synchronization_type": "type", "start_ns": "start", "end_ns": "end", "correlation_id": "correlationId",
        "context_id": "contextId", "stream_id": "streamId", "cuda_event_id": "cudaEventId",
        "cuda_event_sync_id": "cudaEventSyncId", "return_value": "returnValue",
    }),
    "graph_trace": (["GRAPH_TRACE"], {
        "correlation_id": "correlationId", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "graph_id": "graphId", "context_id": "contextId", "stream_id": "streamId",
        "end_device_id": "endDeviceId", "end_context_id": "endContextId",
    }),
    "memory": (["MEMORY2"], {
        "operation_type": "memoryOperationType", "memory_kind": "memoryKind", "correlation_id": "correlationId",
        "address": "address", "allocated_bytes": "bytes", "timestamp_ns": "timestamp", "process_id": "processId",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId",
        "name": "name", "is_async": "isAsync",
        "pool_type": "memoryPoolConfig.memoryPoolType", "pool_address": "memoryPoolConfig.address",
        "pool_release_threshold_bytes": "memoryPoolConfig.releaseThreshold",
        "pool_size_bytes_or_process_id": "memoryPoolConfig.pool.size",
        "pool_utilized_bytes": "memoryPoolConfig.utilizedSize", "source": "source",
    }),
    "memory_pool": (["MEMORY_POOL"], {
        "operation_type": "memoryPoolOperationType", "pool_type": "memoryPoolType", "correlation_id": "correlationId",
        "process_id": "processId", "device_id": "deviceId", "min_bytes_to_keep": "minBytesToKeep",
        "address": "address", "pool_size_bytes": "size", "release_threshold_bytes": "releaseThreshold",
        "timestamp_ns": "timestamp", "utilized_bytes": "utilizedSize", "is_managed": "isManagedPool",
    }),
    "overhead": (["OVERHEAD"], {
        "overhead_kind": "overheadKind", "object_kind": "objectKind",
        "process_id": "objectId.pt.processId", "thread_id": "objectId.pt.threadId",
        "start_ns": "start", "end_ns": "end", "correlation_id": "correlationId", "details": "overheadData",
    }),
    "marker": (["MARKER"], {
        "flags": "flags", "timestamp_ns": "timestamp", "id": "id", "object_kind": "objectKind",
        "process_id": "objectId.pt.processId", "thread_id": "objectId.pt.threadId",
        "name": "name", "domain": "domain",
    }),
    "api": (["RUNTIME", "DRIVER"], {
        "callback_id": "cbid", "start_ns": "start", "end_ns": "end", "process_id": "processId",
        "thread_id": "threadId", "correlation_id": "correlationId", "return_value": "returnValue",
    }),
}

# The constants, less CUPTI_. A version may lack one, which the comparison must then expect.
CONSTANTS = """
ACTIVITY_KIND_MEMCPY ACTIVITY_KIND_MEMSET ACTIVITY_KIND_KERNEL ACTIVITY_KIND_DRIVER ACTIVITY_KIND_RUNTIME
ACTIVITY_KIND_CONCURRENT_KERNEL ACTIVITY_KIND_MEMCPY2
ACTIVITY_FLAG_FLUSH_FORCED ACTIVITY_FLAG_MEMCPY_ASYNC ACTIVITY_FLAG_MEMSET_ASYNC
ACTIVITY_ATTR_DEVICE_BUFFER_SIZE ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE
CB_DOMAIN_DRIVER_API CB_DOMAIN_RUNTIME_API CB_DOMAIN_RESOURCE
CBID_RESOURCE_CONTEXT_CREATED CBID_RESOURCE_CONTEXT_DESTROY_STARTING CBID_RESOURCE_STREAM_CREATED
CBID_RESOURCE_STREAM_DESTROY_STARTING CBID_RESOURCE_MODULE_LOADED CBID_RESOURCE_MODULE_UNLOAD_STARTING
API_ENTER API_EXIT
TIMESTAMP_UNKNOWN INVALID_CHANNEL_ID INVALID_CONTEXT_ID INVALID_STREAM_ID SYNCHRONIZATION_INVALID_VALUE
ACTIVITY_KIND_MARKER ACTIVITY_KIND_MARKER_DATA ACTIVITY_KIND_OVERHEAD ACTIVITY_KIND_SYNCHRONIZATION
ACTIVITY_KIND_EXTERNAL_CORRELATION ACTIVITY_KIND_MEMORY2 ACTIVITY_KIND_MEMORY_POOL ACTIVITY_KIND_GRAPH_TRACE
ACTIVITY_FLAG_MARKER_INSTANTANEOUS ACTIVITY_FLAG_MARKER_START ACTIVITY_FLAG_MARKER_END
ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_SUCCESS ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_FAILED
ACTIVITY_FLAG_MARKER_SYNC_RELEASE
ACTIVITY_OBJECT_UNKNOWN ACTIVITY_OBJECT_PROCESS ACTIVITY_OBJECT_THREAD ACTIVITY_OBJECT_DEVICE ACTIVITY_OBJECT_CONTEXT
ACTIVITY_OBJECT_STREAM
ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE
ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE
ACTIVITY_MEMORY_OPERATION_TYPE_INVALID ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
ACTIVITY_MEMORY_KIND_UNKNOWN ACTIVITY_MEMORY_KIND_PAGEABLE ACTIVITY_MEMORY_KIND_PINNED ACTIVITY_MEMORY_KIND_DEVICE
ACTIVITY_MEMORY_KIND_ARRAY ACTIVITY_MEMORY_KIND_MANAGED ACTIVITY_MEMORY_KIND_DEVICE_STATIC
ACTIVITY_MEMORY_KIND_MANAGED_STATIC
ACTIVITY_MEMORY_POOL_TYPE_INVALID ACTIVITY_MEMORY_POOL_TYPE_LOCAL ACTIVITY_MEMORY_POOL_TYPE_IMPORTED
ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED
ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED
ACTIVITY_OVERHEAD_UNKNOWN ACTIVITY_OVERHEAD_DRIVER_COMPILER ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH
ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION ACTIVITY_OVERHEAD_CUPTI_RESOURCE
ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING
ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT
DRIVER_TRACE_CBID_cuLaunch DRIVER_TRACE_CBID_cuLaunchGrid DRIVER_TRACE_CBID_cuLaunchGridAsync
DRIVER_TRACE_CBID_cuLaunchKernel DRIVER_TRACE_CBID_cuLaunchKernel_ptsz
DRIVER_TRACE_CBID_cuLaunchCooperativeKernel DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz
DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice
DRIVER_TRACE_CBID_cuGraphLaunch DRIVER_TRACE_CBID_cuGraphLaunch_ptsz
DRIVER_TRACE_CBID_cuLaunchKernelEx DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz
SUBSCRIBER_NAME_MAX_LEN OLD_SUBSCRIBER_NAME_MIN_LEN
""".split()

# The structs of callbacks and calls: ours, NVIDIA's, and our fields with NVIDIA's members.
ABI = {
    "CallbackData": ("CUpti_CallbackData", {
        "callback_site": "callbackSite", "function_name": "functionName", "function_params": "functionParams",
        "function_return_value": "functionReturnValue", "symbol_name": "symbolName", "context": "context",
        "context_uid": "contextUid", "correlation_data": "correlationData", "correlation_id": "correlationId",
    }),
    "SubscriberParams": ("CUpti_SubscriberParams", {
        "size_bytes": "structSize", "subscriber_name": "subscriberName",
        "old_subscriber_name": "oldSubscriberName", "old_subscriber_size_bytes": "oldSubscriberSize",
        "allow_multiple_subscribers": "allowMultipleSubscribers", "padding": "padding",
    }),
    "ResourceData": ("CUpti_ResourceData", {
        "context": "context", "stream": "resourceHandle.stream", "resource_descriptor": "resourceDescriptor",
    }),
    "ModuleResourceData": ("CUpti_ModuleResourceData", {
        "module_id": "moduleId", "cubin_size_bytes": "cubinSize", "cubin": "pCubin",
    }),
    "GetCubinCrcParams": ("CUpti_GetCubinCrcParams", {
        "size_bytes": "size", "cubin_size_bytes": "cubinSize", "cubin": "cubin", "cubin_crc": "cubinCrc",
    }),
}

# The functions that some versions lack, with the parameters that our type of each has.
LATER_FUNCTIONS = {
    "cuptiSubscribe_v2": "CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, CUpti_SubscriberParams *",
    "cuptiActivityEnableDriverApi": "uint32_t, uint8_t",
    "cuptiActivityEnableRuntimeApi": "uint32_t, uint8_t",
    "cuptiActivityEnableAllSyncRecords": "uint8_t",
    "cuptiActivityEnableAllocationSource": "uint8_t",
    "cuptiActivityEnableDeviceGraph": "uint8_t",
}

# The first chip of each architecture, by its public name. 110 is what 13.0 calls 101.
CHIPS = {90: "GH100", 100: "GB100", 101: "GB10B", 107: "GR100", 110: "GB10B", 120: "GB202", 121: "GB20B"}

ROUNDS = 4

# CUPTI's headers include the driver's, which its wheels do not carry. No struct checked here holds one of these by
# value, save pointers.
CUDA_STUB = """#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int CUdevice, CUresult, CUgraphNodeType, CUstreamAttrID, CUdevice_attribute;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUmod_st *CUmodule;
typedef struct CUstream_st *CUstream;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef union CUstreamAttrValue_union CUstreamAttrValue;
typedef struct { char bytes[16]; } CUuuid;
"""

PREAMBLE = """#include <stdio.h>
#include <string.h>
#include <cuda.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_activity.h>
#include <cupti_pcsampling.h>

/* The bytes of a member as they lie in memory, zero-extended: what a reader of the same width must find. */
static unsigned long long bits(const void *member, size_t size) {
    unsigned long long value = 0;
    memcpy(&value, member, size);
    return value;
}

int main(int argc, char **argv) {
    FILE *records = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (records == NULL)
        return 1;
"""


def main():
    out_dir = pathlib.Path(sys.argv[1])
    headers = {}
    for argument in sys.argv[2:]:
        name, header_dir = argument.split("=", 1)
        headers[name] = Headers(pathlib.Path(header_dir))
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / "cuda.h").write_text(CUDA_STUB)
    (out_dir / "builtin_types.h").write_text("#pragma once\n")
    for name, own in headers.items():
        # One version number can stand for several layouts (18 does). Its table must be what all of them share.
        alike = [other for other in headers.values() if other.version == own.version]
        (out_dir / f"{name}.c").write_text(program(own, alike))


def program(own, alike):
    lines = [PREAMBLE, '    printf("version %d\\n", CUPTI_API_VERSION);']
    for family in FAMILIES:
        lines += family_lines(family, own, alike)
    for name in CONSTANTS:
        lines.append(constant_line(name, own))
    for name in own.result_names():
        lines.append(f'    printf("result.{name} %u\\n", (unsigned)CUPTI_{name.removeprefix("CUPTI_")});')
    for ours, (theirs, members) in ABI.items():
        lines += abi_lines(ours, theirs, members, own)
    for function, parameters in LATER_FUNCTIONS.items():
        lines += function_lines(function, parameters, own)
    for version, cuda in own.listed_versions():
        lines.append(f'    printf("cuda_version.{version} {cuda}\\n");')
    known = {architecture: chip in own.chips for architecture, chip in CHIPS.items()}
    for architecture, is_known in known.items():
        lines.append(f'    printf("knows_architecture.{architecture} {str(is_known).lower()}\\n");')
    newest = max(architecture for architecture, is_known in known.items() if is_known)
    lines.append(f'    printf("newest_architecture {newest}\\n");')
    lines += ["    return fclose(records) == 0 ? 0 : 1;", "}", ""]
    return "\n".join(lines)


def constant_line(name, own):
    if not own.has(f"CUPTI_{name}"):
        return f'    printf("constant.{name} absent\\n");'
    # One is -1 in some versions and the same 32 bits without a sign in others.
    value = f"(sizeof(CUPTI_{name}) == 4 ? (uint32_t)CUPTI_{name} : (unsigned long long)CUPTI_{name})"
    return f'    printf("constant.{name} %llu\\n", {value});'


def abi_lines(ours, theirs, members, own):
    present = own.members(theirs) if own.has(theirs) else set()
    sizes = f'"%zu\\n", sizeof({theirs})' if present else '"absent\\n"'
    lines = [f'    printf("abi.{ours}.sizeof " {sizes});']
    for field, member in members.items():
        if root(member) in present:
            width = f"sizeof((({theirs} *)0)->{member})"
            lines.append(f'    printf("abi.{ours}.{field} %zu+%zu\\n", offsetof({theirs}, {member}), {width});')
        else:
            lines.append(f'    printf("abi.{ours}.{field} absent\\n");')
    # What a caller must give as the struct's size, where NVIDIA says so with a macro.
    if own.has(f"{theirs}_STRUCT_SIZE"):
        lines.append(f'    printf("abi.{ours}.STRUCT_SIZE %zu\\n", {theirs}_STRUCT_SIZE);')
    return lines


def function_lines(function, parameters, own):
    if not own.has(function):
        return [f'    printf("function.{function} absent\\n");']
    alike = f"__builtin_types_compatible_p(__typeof__({function}), CUptiResult({parameters}))"
    return [f'    _Static_assert({alike}, "{function}");', f'    printf("function.{function} present\\n");']


def family_lines(family, own, alike):
    kinds, fields = FAMILIES[family]
    kind = kinds[0]
    struct = own.current_struct(kinds)
    # The oldest name is the smallest record.
    table = min((other.current_struct(kinds) for other in alike), key=trailing_number)
    present = set.intersection(*(other.members(other.current_struct(kinds)) for other in alike))
    shared = {member for member in fields.values() if root(member) in present}
    lines = [
        f'    printf("{family}.structure {table}\\n{family}.size_bytes %zu\\n", sizeof({table}));',
        f'    printf("{family}.stride_bytes %zu\\n", sizeof({struct}));',
    ]
    for field, member in fields.items():
        if member not in shared:
            lines += [f'    printf("{family}.{round_}.{field} absent\\n");' for round_ in range(ROUNDS)]
    for round_ in range(ROUNDS):
        lines.append(f"    {{ {struct} record; memset(&record, {0x5A ^ 0x3C * round_ & 0xFF}, sizeof record);")
        lines.append(f"    record.kind = CUPTI_ACTIVITY_KIND_{kind};")
        for field, member in fields.items():
            if member in shared:
                value = distinctive(family, field, round_)
                lines.append(f"    record.{member} = (__typeof__(record.{member})){value};")
        # Read back only after all were written: two members at one place would show.
        for field, member in fields.items():
            if member in shared:
                read_back = f"bits(&record.{member}, sizeof record.{member})"
                lines.append(f'    printf("{family}.{round_}.{field} %llu\\n", {read_back});')
        lines.append("    fwrite(&record, sizeof record, 1, records); }")
    return lines


def distinctive(family, field, round_):
    """A 64-bit value of its own for each field and round, without two equal bytes, so that no shift goes unseen."""
    digest = hashlib.sha256(f"{family}.{field}.{round_}".encode()).digest()
    distinct = bytes(dict.fromkeys(digest))[:8]
    return f"0x{distinct.hex()}ULL"


def trailing_number(name):
    number = re.search(r"\d+$", name)
    return int(number.group()) if number else 1


def root(member):
    """The part of a nested member that the struct itself declares."""
    return member.split(".")[0]


class Headers:
    """What one version's headers say, by their text: which struct is current, which members it has, what is there."""

    def __init__(self, folder):
        self.activity = (folder / "cupti_activity.h").read_text()
        deprecated = folder / "cupti_activity_deprecated.h"
        everything = self.activity + (deprecated.read_text() if deprecated.exists() else "")
        for other in ["cupti_callbacks.h", "cupti_driver_cbid.h", "cupti_pcsampling.h"]:
            everything += (folder / other).read_text()
        self.code = re.sub(r"/\*.*?\*/", "", everything, flags=re.DOTALL)
        self.results = (folder / "cupti_result.h").read_text()
        self.versions = (folder / "cupti_version.h").read_text()
        self.version = int(re.search(r"#define CUPTI_API_VERSION (\d+)", self.versions).group(1))
        self.chips = (folder / "chips").read_text().split()

    def current_struct(self, kinds):
        """The struct that the comments of these kinds name: all the same, and the newest of its name.

        So it is in every header from 11.8 to 13.5. A comment that lagged behind its struct would stop the check here.
        """
        named = {self.struct_in_comment(kind) for kind in kinds}
        stem = min(named).rstrip("0123456789")
        newest = max(re.findall(r"\}\s*(%s\d*);" % stem, self.code), key=trailing_number)
        if named != {newest}:
            sys.exit(f"version {self.version}: the comments of {kinds} name {named}, the newest is {newest}")
        return newest

    def struct_in_comment(self, kind):
        comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*CUPTI_ACTIVITY_KIND_%s\s*=" % kind, self.activity, re.DOTALL)
        return re.search(r"CUpti_Activity\w+", comment.group(1)).group()

    def has(self, name):
        return re.search(r"\b%s\b" % name, self.code) is not None

    def members(self, struct):
        end = re.search(r"\}\s*%s;" % struct, self.code).start()
        body = self.code[self.code.rindex("typedef struct", 0, end):end]
        return set(re.findall(r"(\w+)(?:\[\d+\])?;", body))

    def listed_versions(self):
        """The version numbers that a comment lists, each with the first CUDA it stands for."""
        return re.findall(r"^ \* v(\d+) : CUDA ?Tool\w* (\d+\.\d+)", self.versions, re.MULTILINE)

    def result_names(self):
        return [name for name in re.findall(r"^\s*(CUPTI_\w+)\s*=", self.results, re.MULTILINE)
                if name != "CUPTI_ERROR_FORCE_INT"]


if __name__ == "__main__":
    main()
