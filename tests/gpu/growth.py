"""What grows in processes: growth.py SECONDS NAME=PID...

Prints each process' resident memory every ten seconds, and at the end the mappings that grew by more than 2 MB since the
first look.
"""
import sys, time


def mappings(pid):
    sizes, name = {}, None
    try:
        for line in open(f"/proc/{pid}/smaps"):
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                name = (words[5] if len(words) > 5 else "anonymous") + " " + words[0].split("-")[0]
            elif words[0] == "Rss:":
                sizes[name] = int(words[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return sizes


jobs = dict(word.split("=") for word in sys.argv[2:])
first, last = {}, {}
for at in range(0, int(sys.argv[1]) + 1, 10):
    for name, pid in jobs.items():
        seen = mappings(pid)
        if seen:
            first.setdefault(name, seen)
            last[name] = seen
    print(at, "s, kB:", {name: sum(last.get(name, {}).values()) for name in jobs if mappings(jobs[name])}, flush=True)
    if not any(mappings(pid) for pid in jobs.values()):
        break
    time.sleep(10)
for name in jobs:
    grown = {m: kb - first[name].get(m, 0) for m, kb in last.get(name, {}).items()}
    print(name, "grew (kB):", {m: kb for m, kb in sorted(grown.items(), key=lambda g: -g[1])[:6] if kb > 2000})
