"""Reads a recording of gputap from docs/format.md alone: read.py FORMAT.md DIR

Prints one JSON object: per process its pid, rank, the events of each kind, the sum of kernels' times by name, the last status.
Needs nothing but Python.
"""
import json, pathlib, re, struct, sys, zlib


def kinds_of(page):
    """The table of events: {kind: (name, [(field, numbers)])}"""
    kinds = {}
    for number, name, cells in re.findall(r"^\| (\d+) \| `(\w+)` \| (.*) \|$", page, re.M):
        fields = [(f, int(n or 1)) for f, n in re.findall(r"`(\w+)(?:\[(\d+)\])?`", cells)]
        kinds[int(number)] = (name, fields)
    return kinds


def lz4(data, raw):
    """LZ4's block format."""
    out, at = bytearray(), 0

    def length(first):
        nonlocal at
        total = first
        while first == 15:
            byte = data[at]
            at += 1
            total += byte
            if byte != 255:
                break
        return total

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at >= len(data):
            break
        distance = data[at] | data[at + 1] << 8
        at += 2
        match = length(token & 15) + 4
        start = len(out) - distance
        for i in range(match):
            out.append(out[start + i])
    assert len(out) == raw, (len(out), raw)
    return bytes(out)


def leb128(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


def columns(data, fields, rows):
    at, out, ring = 0, {}, 1 << 64
    for field, numbers in fields:
        for i in range(numbers):
            way, at = data[at], at + 1
            if way == 0:
                number, at = leb128(data, at)
                column = [number] * rows
            else:
                assert way == 1, way
                column, before = [], 0
                for _ in range(rows):
                    zigzag, at = leb128(data, at)
                    before = (before + ((zigzag >> 1) ^ -(zigzag & 1))) % ring
                    column.append(before)
            if field == "end_ns":
                column = [(duration + start) % ring for duration, start in zip(column, out["start_ns"])]
            out[field if numbers == 1 else f"{field}_{i}"] = column
    assert at == len(data)
    return out


def blocks(path):
    data = path.read_bytes()
    if data[:8] != b"GPUTAPRC" or struct.unpack_from("<I", data, 8)[0] != 3:
        return
    at = 16
    while at + 44 <= len(data):
        head = data[at : at + 44]
        magic, what, compression, kind, count, raw, stored, _, _, crc, head_crc = struct.unpack("<4sBBHIIIQQII", head)
        if magic != b"gtb3" or zlib.crc32(head[:40]) != head_crc:
            return
        payload = data[at + 44 : at + 44 + stored]
        if len(payload) < stored or zlib.crc32(payload) != crc:
            return
        at += 44 + stored
        yield what, kind, count, payload if compression == 0 else lz4(payload, raw)


def names_in(payload):
    at = 0
    while at < len(payload):
        number, _, length = struct.unpack_from("<IBI", payload, at)
        yield number, payload[at + 9 : at + 9 + length]
        at += 9 + length


def read(kinds, folder):
    """(process, [(kind's name, columns, names so far)], status) of every process."""
    by_process = {}
    for path in sorted(pathlib.Path(folder).rglob("*.gtap")):
        process = None
        for what, kind, count, payload in blocks(path):
            if what == 1:
                process = json.loads(payload)
                key = tuple(process[k] for k in ("boot_id", "pid", "start_ticks", "nonce"))
                one = by_process.setdefault(key, {"process": process, "events": [], "names": {}, "status": None})
            elif what == 2:
                one["names"].update(names_in(payload))
            elif what == 3 and kind in kinds:
                name, fields = kinds[kind]
                one["events"].append((name, columns(payload, fields, count)))
            elif what == 5:
                one["status"] = json.loads(payload)
    return by_process.values()


def summary(one):
    counts, kernels = {}, {}
    for name, event in one["events"]:
        times = event.get("start_ns", event.get("time_ns"))
        counts[name] = counts.get(name, 0) + len(times)
        if name != "kernel":
            continue
        for start, end, name_id in zip(event["start_ns"], event["end_ns"], event["name_id"]):
            if start and end > start:
                text = one["names"].get(name_id, b"(unnamed)").decode("utf-8", "backslashreplace")
                calls, total = kernels.get(text, (0, 0))
                kernels[text] = (calls + 1, total + end - start)
    process = one["process"]
    return {"pid": process["pid"], "rank": process["rank"], "events": counts, "kernels": kernels, "status": one["status"]}


if __name__ == "__main__":
    page, folder = sys.argv[1:3]
    print(json.dumps([summary(one) for one in read(kinds_of(pathlib.Path(page).read_text()), folder)]))
