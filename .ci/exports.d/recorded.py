"""What a recording holds, by the reader that was made from docs/format.md alone: the truth that exports are held against."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "format"))
import read as format_reader  # noqa: E402


def processes(recording):
    """Of each process: its JSON, and its events as dictionaries by kind, each with `name` (bytes or None)."""
    kinds = format_reader.kinds_of((ROOT / "docs" / "format.md").read_text())
    out = []
    for one in format_reader.read(kinds, recording):
        events = {}
        for kind, columns in one["events"]:
            keys = list(columns)
            for row in zip(*columns.values()):
                event = dict(zip(keys, row))
                event["name"] = one["names"].get(event.get("name_id"))
                events.setdefault(kind, []).append(event)
        out.append((one["process"], events))
    return out


def has_times(event):
    """Whether an event has a place in time."""
    if "time_ns" in event:
        return event["time_ns"] > 0
    return event["start_ns"] > 0 and event["end_ns"] >= event["start_ns"]


def union_ns(spans):
    """The length of what at least one of the spans covers."""
    total = covered = 0
    for start, end in sorted(spans):
        start = max(start, covered)
        if end > start:
            total += end - start
            covered = end
    return total


def wall_ns(process, time_ns):
    return time_ns - process["clock"]["monotonic_ns"] + process["clock"]["realtime_ns"]
