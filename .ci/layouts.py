#!/usr/bin/env python3
"""Writes, for each set of CUPTI headers, a C program that shows what those headers say.

    layouts.py OUT_DIR NAME=HEADER_DIR...

Each OUT_DIR/NAME.c, compiled against its own headers, fills NVIDIA's structs with distinctive values, writes them to
the file named in its argument, and prints "key value" lines of what a reader of that file must find. It also prints the
constants and the structs of the callbacks. `shim/cupti/examples/check_layouts.rs` reads both.

Only names of members are written here; offsets and sizes come from the compiler.
"""

import hashlib
import pathlib
import re
import sys

# Per family: the activity kind whose header comment names its struct, and our field names with NVIDIA's members.
FAMILIES = {
    "kernel": ("CONCURRENT_KERNEL", {
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
    "memcpy": ("MEMCPY", {
        "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind", "flags": "flags",
        "copied_bytes": "bytes", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId", "correlation_id": "correlationId",
        "runtime_correlation_id": "runtimeCorrelationId", "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType",
        "copy_count": "copyCount", "device_launched": "isDeviceLaunched",
        "source_graph_id": "sourceGraphId", "source_graph_node_id": "sourceGraphNodeId",
    }),
    "memset": ("MEMSET", {
        "value": "value", "filled_bytes": "bytes", "start_ns": "start", "end_ns": "end",
        "device_id": "deviceId", "context_id": "contextId", "stream_id": "streamId", "correlation_id": "correlationId",
        "flags": "flags", "memory_kind": "memoryKind", "graph_node_id": "graphNodeId", "graph_id": "graphId",
        "channel_id": "channelID", "channel_type": "channelType",
        "device_launched": "isDeviceLaunched",
        "source_graph_id": "sourceGraphId", "source_graph_node_id": "sourceGraphNodeId",
    }),
}

# The constants that every version has, less CUPTI_.
CONSTANTS = """
ACTIVITY_KIND_MEMCPY ACTIVITY_KIND_MEMSET ACTIVITY_KIND_KERNEL ACTIVITY_KIND_DRIVER ACTIVITY_KIND_RUNTIME
ACTIVITY_KIND_CONCURRENT_KERNEL ACTIVITY_KIND_MEMCPY2
ACTIVITY_FLAG_FLUSH_FORCED ACTIVITY_FLAG_MEMCPY_ASYNC ACTIVITY_FLAG_MEMSET_ASYNC
ACTIVITY_ATTR_DEVICE_BUFFER_SIZE ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE
CB_DOMAIN_DRIVER_API CB_DOMAIN_RUNTIME_API CB_DOMAIN_RESOURCE
CBID_RESOURCE_CONTEXT_CREATED CBID_RESOURCE_CONTEXT_DESTROY_STARTING CBID_RESOURCE_STREAM_CREATED
CBID_RESOURCE_STREAM_DESTROY_STARTING CBID_RESOURCE_MODULE_LOADED CBID_RESOURCE_MODULE_UNLOAD_STARTING
TIMESTAMP_UNKNOWN INVALID_CHANNEL_ID
""".split()

# The structs of the callbacks: ours, NVIDIA's, and our fields with NVIDIA's members.
ABI = {
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
        lines.append(f'    printf("constant.{name} %llu\\n", (unsigned long long)CUPTI_{name});')
    for name in own.result_names():
        lines.append(f'    printf("result.{name} %u\\n", (unsigned)CUPTI_{name.removeprefix("CUPTI_")});')
    for ours, (theirs, members) in ABI.items():
        lines.append(f'    printf("abi.{ours}.sizeof %zu\\n", sizeof({theirs}));')
        for field, member in members.items():
            width = f"sizeof((({theirs} *)0)->{member})"
            lines.append(f'    printf("abi.{ours}.{field} %zu+%zu\\n", offsetof({theirs}, {member}), {width});')
    lines += ["    return fclose(records) == 0 ? 0 : 1;", "}", ""]
    return "\n".join(lines)


def family_lines(family, own, alike):
    kind, fields = FAMILIES[family]
    struct = own.current_struct(kind)
    # The oldest name is the smallest record.
    table = min((other.current_struct(kind) for other in alike), key=trailing_number)
    shared = set.intersection(*(other.members(other.current_struct(kind)) for other in alike))
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
    return int(re.search(r"\d+$", name).group())


class Headers:
    """What one version's headers say, by their text: which struct is current and which members it has."""

    def __init__(self, folder):
        self.activity = (folder / "cupti_activity.h").read_text()
        deprecated = folder / "cupti_activity_deprecated.h"
        everything = self.activity + (deprecated.read_text() if deprecated.exists() else "")
        self.code = re.sub(r"/\*.*?\*/", "", everything, flags=re.DOTALL)
        self.results = (folder / "cupti_result.h").read_text()
        version = re.search(r"#define CUPTI_API_VERSION (\d+)", (folder / "cupti_version.h").read_text())
        self.version = int(version.group(1))

    def current_struct(self, kind):
        comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*CUPTI_ACTIVITY_KIND_%s\s*=" % kind, self.activity, re.DOTALL)
        return re.search(r"CUpti_Activity\w+", comment.group(1)).group()

    def members(self, struct):
        end = re.search(r"\}\s*%s;" % struct, self.code).start()
        body = self.code[self.code.rindex("typedef struct", 0, end):end]
        return set(re.findall(r"(\w+)(?:\[\d+\])?;", body))

    def result_names(self):
        return [name for name in re.findall(r"^\s*(CUPTI_\w+)\s*=", self.results, re.MULTILINE)
                if name != "CUPTI_ERROR_FORCE_INT"]


if __name__ == "__main__":
    main()
