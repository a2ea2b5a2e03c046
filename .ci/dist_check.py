#!/usr/bin/env python3
"""Checks the two files that people install: .ci/dist_check.py GPUTAP SHIM

--glibc-only FILE...: only what they need of the system.

Reads what readelf says. Each check that fails is a line; the exit code is then 1.
"""

import os
import pathlib
import re
import subprocess
import sys

GLIBC_AT_MOST = (2, 28)
GLIBC_LIBRARIES = {
    "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
}
# What the driver and NVTX look up. Anything else could meet a name of the application's.
SHIM_MAY_EXPORT = {"InitializeInjection", "InitializeInjectionNvtx", "InitializeInjectionNvtx2"}
SHIM_BELOW_BYTES = 4_000_000

failures = []


def main(arguments):
    if arguments[:1] == ["--glibc-only"]:
        for path in arguments[1:]:
            check_system(path)
    else:
        gputap, shim = arguments
        for path in (gputap, shim):
            check_system(path)
            check_hardening(path)
        check_shim(shim)
        expect(pathlib.Path(shim).read_bytes() in pathlib.Path(gputap).read_bytes(), gputap, f"carries {shim}")
    for failure in failures:
        print(f"FAIL {failure}", file=sys.stderr)
    return 1 if failures else 0


def check_system(path):
    """Runs on any x86_64 Linux with this glibc, and needs nothing but that."""
    expect("Advanced Micro Devices X86-64" in readelf("-h", path), path, "is for x86_64")
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", path)))
    expect(needed and needed <= GLIBC_LIBRARIES, path, f"needs glibc's libraries only: {' '.join(sorted(needed))}")
    # A name that is no plain number (GLIBC_PRIVATE, GLIBC_ABI_DT_RELR, GCC_3.0) cannot be held against the bound.
    names = set(re.findall(r"Name: (\S+)\s+Flags:", readelf("-V", path)))
    unknown = sorted(name for name in names if not re.fullmatch(r"GLIBC_\d+(\.\d+)+", name))
    versions = [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names - set(unknown)]
    newest = max(versions, default=(0,))
    words = f"needs glibc {written(newest)}, at most {written(GLIBC_AT_MOST)}"
    expect((2,) <= newest <= GLIBC_AT_MOST and not unknown, path, " and ".join([words, *unknown]))


def check_hardening(path):
    dynamic, segments = readelf("-d", path), readelf("-l", path)
    expect("NOW" in flags_1(dynamic) and "GNU_RELRO" in segments, path, "is bound at its load, then read-only")
    stack = re.search(r"GNU_STACK(?:\s+0x\S+){5}\s+(\S+)", segments)
    # Where it has to make the stack executable, the loader of a new glibc refuses.
    expect(stack and "E" not in stack[1], path, "needs no executable stack")
    expect(not re.search(r"\((TEXTREL|RPATH|RUNPATH)\)|TEXTREL", dynamic), path, "has no TEXTREL and no RPATH")
    expect(not re.search(r"\.(symtab|debug_\w+)\b", readelf("-S", path)), path, "is stripped")


def check_shim(path):
    dynamic = readelf("-d", path)
    expect("NODELETE" in flags_1(dynamic), path, "is never unloaded (NODELETE)")
    # Room for static TLS is scarce in a process that is running already.
    expect("STATIC_TLS" not in dynamic, path, "wants no static TLS")
    exported = exports(path)
    words = f"exports {' '.join(sorted(exported))}"
    expect("InitializeInjection" in exported and exported <= SHIM_MAY_EXPORT, path, words)
    size_bytes = os.path.getsize(path)
    expect(size_bytes < SHIM_BELOW_BYTES, path, f"has {size_bytes} bytes, below {SHIM_BELOW_BYTES}")


def exports(path):
    """The dynamic symbols that are defined here and that others can see."""
    found = set()
    for line in readelf("--dyn-syms", path).splitlines():
        # Num: Value Size Type Bind Vis Ndx Name
        fields = line.split()
        if len(fields) >= 8 and fields[4] != "LOCAL" and fields[6] not in ("UND", "Ndx"):
            found.add(fields[7])
    return found


def flags_1(dynamic):
    found = re.search(r"\(FLAGS_1\)\s+Flags: (.*)", dynamic)
    return found[1].split() if found else []


def readelf(option, path):
    command = ["readelf", "--wide", option, path]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def written(version):
    return ".".join(map(str, version))


def expect(holds, path, what):
    if holds:
        print(f"ok   {os.path.basename(path)} {what}")
    else:
        failures.append(f"{path}, not so: {what}")


sys.exit(main(sys.argv[1:]))
