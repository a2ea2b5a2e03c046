"""Reads the Perfetto trace by Perfetto's own definitions, as strictly as a reader could, and compares it with the recording.

check_perfetto.py RECORDING EXPORTS
"""
import collections
import pathlib
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

import recorded

CLEARED = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
Slice = collections.namedtuple("Slice", "track name category start end details flows ended")


class Texts:
    """What one sequence has interned since its state was cleared."""

    FIELDS = ("event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values")

    def __init__(self):
        self.known = {field: {} for field in self.FIELDS}

    def learn(self, data):
        for field in self.FIELDS:
            for one in getattr(data, field):
                assert one.iid not in self.known[field], f"{field} {one.iid} twice"
                text = one.str.decode() if field.endswith("string_values") else one.name
                self.known[field][one.iid] = text

    def __call__(self, field, iid):
        assert iid in self.known[field], f"{field} {iid} is used before it is defined"
        return self.known[field][iid]


def details(event, texts):
    out = {}
    for one in event.debug_annotations:
        key = texts("debug_annotation_names", one.name_iid)
        if one.HasField("string_value_iid"):
            out[key] = texts("debug_annotation_string_values", one.string_value_iid)
        else:
            assert one.HasField("uint_value")
            out[key] = one.uint_value
    return out


class Seen:
    def __init__(self, path):
        trace = proto.Trace()
        trace.ParseFromString(path.read_bytes())
        self.tracks, self.slices, self.instants = {}, [], []
        self.counters = collections.defaultdict(list)
        self.texts, self.open, self.last = {}, collections.defaultdict(list), {}
        self.clocks(trace.packet[0].clock_snapshot)
        for packet in trace.packet[1:]:
            self.packet(packet)
        assert not any(self.open.values()), "a slice has no end"

    def clocks(self, snapshot):
        clocks = {one.clock_id: one.timestamp for one in snapshot.clocks}
        assert snapshot.primary_trace_clock == proto.BUILTIN_CLOCK_REALTIME
        assert clocks[proto.BUILTIN_CLOCK_REALTIME] == clocks[proto.BUILTIN_CLOCK_BOOTTIME] > 0

    def packet(self, packet):
        sequence = packet.trusted_packet_sequence_id
        assert sequence > 0 and packet.sequence_flags & NEEDS
        if packet.sequence_flags & CLEARED:
            self.texts[sequence] = Texts()
            assert packet.trace_packet_defaults.timestamp_clock_id == proto.BUILTIN_CLOCK_REALTIME
        texts = self.texts[sequence]
        texts.learn(packet.interned_data)
        if packet.HasField("track_descriptor"):
            self.track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(packet.track_event, packet.timestamp, texts)

    def track(self, track):
        assert track.uuid and track.uuid not in self.tracks, "a uuid twice"
        assert not track.parent_uuid or track.parent_uuid in self.tracks, "a child before its parent"
        self.tracks[track.uuid] = track

    def event(self, event, time, texts):
        track = event.track_uuid
        assert track in self.tracks, "a track before its description"
        assert self.last.get(track, 0) <= time, "a track goes back in time"
        self.last[track] = time
        if event.type == event.TYPE_COUNTER:
            assert self.tracks[track].HasField("counter")
            whole = event.WhichOneof("counter_value_field") == "counter_value"
            value = event.counter_value if whole else event.double_counter_value
            return self.counters[track].append((time, value))
        assert not self.tracks[track].HasField("counter")
        if event.type == event.TYPE_SLICE_END:
            begun = self.open[track].pop()
            begun.details.update(details(event, texts))
            return self.slices.append(begun._replace(end=time))
        one = Slice(
            track,
            texts("event_names", event.name_iid),
            texts("event_categories", event.category_iids[0]),
            time,
            time,
            details(event, texts),
            list(event.flow_ids),
            list(event.terminating_flow_ids),
        )
        if event.type == event.TYPE_SLICE_BEGIN:
            self.open[track].append(one)
        else:
            assert event.type == event.TYPE_INSTANT
            self.instants.append(one)

    def pid(self, track):
        while not self.tracks[track].HasField("process"):
            track = self.tracks[track].parent_uuid
        return self.tracks[track].process.pid


def no_overlap(seen):
    """Nothing on a device's tracks lies in or across anything else."""
    by_track = collections.defaultdict(list)
    for one in seen.slices:
        if one.category in ("kernel", "gpu_memcpy", "gpu_memset", "graph"):
            by_track[one.track].append((one.start, one.end))
    for spans in by_track.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), "slices overlap"
    return len(by_track)


def flows(seen):
    begun = [flow for one in seen.instants + seen.slices for flow in one.flows]
    ended = [flow for one in seen.slices for flow in one.ended]
    assert len(set(begun)) == len(begun) and len(set(ended)) == len(ended), "a flow twice"
    assert set(begun) == set(ended), "a flow has one end only"
    return len(begun)


def integral(points):
    """Of a curve whose values stand until the next."""
    return sum(value * (after - at) for (at, value), (after, _) in zip(points, points[1:])) / 1e9


def curve(seen, pid, name):
    found = [uuid for uuid, track in seen.tracks.items() if track.name == name and seen.pid(uuid) == pid]
    return [seen.counters[uuid] for uuid in found]


def near(is_, ought, what):
    assert abs(is_ - ought) <= 1e-6 * max(1, abs(ought)), (what, is_, ought)


def compare(seen, process, events):
    pid = process["pid"]
    mine = [one for one in seen.slices if seen.pid(one.track) == pid]
    for kind, category in (("kernel", "kernel"), ("memcpy", "gpu_memcpy"), ("memset", "gpu_memset"), ("sync", "sync")):
        drawn = sorted((one.start, one.end) for one in mine if one.category == category)
        timed = [one for one in events.get(kind, []) if recorded.has_times(one)]
        spans = [tuple(recorded.wall_ns(process, one[end]) for end in ("start_ns", "end_ns")) for one in timed]
        assert drawn == sorted(spans), (pid, kind, len(drawn), len(spans))
    kernels = [one for one in events["kernel"] if recorded.has_times(one)]
    keys = ("grid", "block", "registers per thread", "correlation", "graph node")
    drawn = collections.Counter(
        tuple(one.details.get(key, 0) for key in keys) for one in mine if one.category == "kernel"
    )
    size = lambda one, what: str([one[f"{what}_{axis}"] for axis in range(3)])
    details_of = lambda one: (
        size(one, "grid"), size(one, "block"), one["registers_per_thread"], one["correlation_id"], one["graph_node_id"]
    )
    assert drawn == collections.Counter(map(details_of, kernels)), "details of kernels"
    assert len({one.name for one in mine if one.category == "kernel"}) == len({one["name"] for one in kernels})
    launches = [one for one in seen.instants if one.category == "launch" and seen.pid(one.track) == pid]
    assert len(launches) == len(events.get("launch", []))
    starts = sum(1 for one in events.get("nvtx", []) if one["flags"] == 2)
    assert sum(1 for one in mine if one.category == "nvtx") == starts > 0
    [busy] = curve(seen, pid, "GPU busy %")
    near(integral(busy) / 100, recorded.union_ns((k["start_ns"], k["end_ns"]) for k in kernels) / 1e9, "busy")
    [copies] = curve(seen, pid, "copies, bytes/s")
    near(integral(copies), sum(one["bytes"] for one in events["memcpy"]), "copied bytes")
    [memory] = curve(seen, pid, "memory in use")
    signed = sum(one["bytes"] * (1 if one["operation"] == 1 else -1) for one in events["memory"])
    assert memory[-1][1] == signed, ("memory in use", memory[-1], signed)
    return len(kernels)


def main(recording, exports):
    seen = Seen(pathlib.Path(exports) / "perfetto")
    tracks, arrows = no_overlap(seen), flows(seen)
    kernels = sum(compare(seen, process, events) for process, events in recorded.processes(recording))
    assert kernels and arrows, "nothing was compared"
    print(f"ok   perfetto: {kernels} kernels on {tracks} tracks as recorded, {arrows} flows with both ends")


if __name__ == "__main__":
    main(*sys.argv[1:3])
