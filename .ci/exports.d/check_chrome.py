"""HolisticTraceAnalysis reads the files of the ranks; its sums are compared with the recording's.

check_chrome.py RECORDING EXPORTS
"""
import collections
import gzip
import json
import os
import pathlib
import sys
import tempfile

# It rounds all times to microseconds otherwise.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from hta.trace_analysis import TraceAnalysis  # noqa: E402

import recorded

DEVICE = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


def near(is_, ought, what):
    assert abs(is_ - ought) <= 1e-6 * max(1.0, abs(ought)) + 0.01, (what, is_, ought)


def as_recorded(trace, process, events):
    """The file itself: each event with its times, to the nanosecond."""
    base = trace["baseTimeNanoseconds"]
    for kind, category in DEVICE.items():
        written = sorted(
            (round(one["ts"] * 1000) + base, round(one["dur"] * 1000), one["args"]["stream"], one["args"]["correlation"])
            for one in trace["traceEvents"]
            if one.get("cat") == category
        )
        timed = [one for one in events.get(kind, []) if recorded.has_times(one)]
        ought = sorted(
            (
                recorded.wall_ns(process, one["start_ns"]),
                one["end_ns"] - one["start_ns"],
                one["stream_id"],
                one["correlation_id"],
            )
            for one in timed
        )
        assert written == ought, (kind, len(written), len(ought))
    begun = [one["id"] for one in trace["traceEvents"] if one["ph"] == "s"]
    ended = [one["id"] for one in trace["traceEvents"] if one["ph"] == "f"]
    assert sorted(begun) == sorted(ended) and len(set(begun)) == len(begun)
    assert len([one for one in trace["traceEvents"] if one.get("cat") == "user_annotation"]) > 0


def kernel_sums(analysis, truth):
    """Time by kernel and rank, and the time in which any kernel ran."""
    types, kernels = analysis.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=100_000, include_memory_kernels=True
    )
    for rank, (_, events) in truth.items():
        ours = sum(
            (one["end_ns"] - one["start_ns"]) / 1000
            for kind in DEVICE
            for one in events.get(kind, [])
            if recorded.has_times(one)
        )
        near(kernels[kernels["rank"] == rank]["sum (us)"].sum(), ours, f"time of rank {rank}")
    union = sum(
        recorded.union_ns(
            (one["start_ns"], one["end_ns"]) for kind in DEVICE for one in events[kind] if recorded.has_times(one)
        )
        / 1000
        for _, events in truth.values()
    )
    # Each piece of time between two starts or ends is cut to whole microseconds.
    pieces = 2 * sum(len(events[kind]) for _, events in truth.values() for kind in DEVICE)
    total = types["sum"].sum()
    assert union - pieces <= total <= union + 1, ("busy time", total, union)
    return len(kernels)


def idle_sums(analysis, truth):
    """The gaps on each stream."""
    compared = 0
    for rank, (_, events) in truth.items():
        idle, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False, consecutive_kernel_delay=30)
        spans = collections.defaultdict(list)
        for kind in DEVICE:
            for one in events[kind]:
                if recorded.has_times(one):
                    spans[one["stream_id"]].append((one["start_ns"] / 1000, one["end_ns"] / 1000))
        for stream, all_ in spans.items():
            all_.sort()
            # A gap of what overlaps is negative to it.
            gaps = sum(after[0] - before[1] for before, after in zip(all_, all_[1:]))
            theirs = idle[idle["stream"] == stream]["idle_time"].sum()
            assert abs(theirs - gaps) <= 0.001 * len(all_), (rank, stream, theirs, gaps)
            compared += 1
    return compared


def without_launches(files, into):
    """The same files as a recording without launches and calls gives them."""
    for path in files:
        trace = json.loads(gzip.decompress(path.read_bytes()))
        head = {key: value for key, value in trace.items() if key != "traceEvents"}
        kept = [one for one in trace["traceEvents"] if one.get("cat") not in ("cuda_driver", "cuda_runtime", "ac2g")]
        text = "{\n" + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
        (pathlib.Path(into) / path.name[: -len(".gz")]).write_text(text + f'"traceEvents": {json.dumps(kept)}}}')


def main(recording, exports):
    folder = pathlib.Path(exports) / "chrome"
    files = sorted(folder.glob("*.json.gz"))
    truth = {process["rank"]: (process, events) for process, events in recorded.processes(recording)}
    assert len(files) == len(truth) > 1
    for path in files:
        trace = json.loads(gzip.decompress(path.read_bytes()))
        as_recorded(trace, *truth[trace["distributedInfo"]["rank"]])
    with tempfile.TemporaryDirectory() as bare:
        without_launches(files, bare)
        for place in (folder, bare):
            analysis = TraceAnalysis(trace_dir=str(place))
            kernels, streams = kernel_sums(analysis, truth), idle_sums(analysis, truth)
    print(f"ok   chrome: HolisticTraceAnalysis has {kernels} sums and the gaps of {streams} streams as recorded")


if __name__ == "__main__":
    main(*sys.argv[1:3])
