"""Checks a recording against CUPTI itself: check_recording.py DIR LIBCUPTI

Calls cuptiGetCubinCrc directly for every cubin in the recording and compares; adds up the counts.
"""
import ctypes, json, os, sys, zlib

folder, library = sys.argv[1], ctypes.CDLL(sys.argv[2])


class Params(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("cubinSize", ctypes.c_size_t), ("cubin", ctypes.c_char_p), ("crc", ctypes.c_uint64)]


def cupti_crc(image):
    params = Params(ctypes.sizeof(Params), len(image), image, 0)
    result = library.cuptiGetCubinCrc(ctypes.byref(params))
    return params.crc if result == 0 else f"error {result}"


document = json.load(open(os.path.join(folder, "index.json")))
index = document["cubins"]
agree = wrong = absent = bad_crc32 = total = 0
for cubin in index:
    image = open(os.path.join(folder, "cubins", cubin["file"]), "rb").read()
    total += len(image)
    bad_crc32 += zlib.crc32(image) != cubin["crc32"] or len(image) != cubin["size_bytes"]
    if cubin["cupti_crc"] is None:
        absent += 1
        print("absent:", cubin["cupti_crc_reason"])
    elif cupti_crc(image) == cubin["cupti_crc"]:
        agree += 1
    else:
        wrong += 1
print(f"cubins {len(index)} ({total / 1e6:.1f} MB, {sum(c['loads'] for c in index)} loads): CUPTI's CRC agrees for {agree}, "
      f"wrong for {wrong}, absent for {absent}; CRC-32 wrong for {bad_crc32}; parse errors {sum(bool(c['parse_error']) for c in index)}")
assert document["complete"], "the recording is not complete"
for process in document["processes"]:
    counts = process["counts"]
    print("pid", process["process"]["pid"], "rank", process["process"]["rank"], "events:", process["events"], "counts:", json.dumps(counts))
    lost = sum(l["count"] for l in counts["lost"])
    assert counts["attempted"] == counts["delivered"] + lost + counts["pending"], "the counts do not add up"
    kept = process["events"] + process["removed_events"] + process["filtered_events"]
    assert kept == counts["delivered"], "the segments do not hold what was delivered"
    assert all(os.path.getsize(os.path.join(folder, s["file"])) == s["bytes"] for s in process["segments"]), "a segment is cut"
assert not wrong and not bad_crc32
