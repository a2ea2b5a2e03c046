#!/usr/bin/env python3
"""Reads the tables of two recordings with other people's readers and compares them with what was recorded.

    tables.py WORK

WORK is what `cargo run -p gputap-export --example tables -- WORK` wrote; WORK/expected.json is what it printed.
"""

import json
import pathlib
import shutil
import sys

import duckdb
import pandas
import pyarrow
import pyarrow.dataset

WORK = pathlib.Path(sys.argv[1])
EXPECTED = json.loads((WORK / "expected.json").read_text())
UNNAMED = "(unnamed)"
failed = 0


def main():
    merged = WORK / "merged"
    for recording in ["job", "odd"]:
        shutil.copytree(WORK / recording / "parquet", merged, dirs_exist_ok=True)
    duckdb_parquet(WORK / "job/parquet")
    duckdb_lines()
    arrow(WORK / "job/parquet")
    one_dataset(merged)
    sys.exit(1 if failed else 0)


def check(what, found, wanted):
    global failed
    if found == wanted:
        print(f"ok   {what}")
    else:
        failed += 1
        print(f"FAIL {what}: {shown(found, wanted)}")


def shown(found, wanted):
    if isinstance(wanted, dict) and isinstance(found, dict):
        differ = [key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)]
        return "; ".join(f"{str(key)[:80]}: {found.get(key)}, not {wanted.get(key)}" for key in differ[:5])
    return f"{str(found)[:300]}, not {str(wanted)[:300]}"


def expected_by_rank():
    return {(process["rank"], name): tuple(sums)
            for process in EXPECTED["job"] for name, sums in process["kernels"].items()}


def expected_by_name():
    sums = {}
    for (_, name), (count, time_ns) in expected_by_rank().items():
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + count, before[1] + time_ns)
    return sums


def sums(rows):
    """Rows of key..., count, time: a sum of nothing is null."""
    def key(cells):
        named = [UNNAMED if cell is None else cell for cell in cells]
        return named[0] if len(named) == 1 else tuple(named)
    return {key(row[:-2]): (int(row[-2]), int(row[-1] or 0)) for row in rows}


def duckdb_parquet(folder):
    kernels = f"'{folder}/kernels/*.parquet'"
    counted = "count(duration_ns), sum(duration_ns)"
    rows = duckdb.sql(f"SELECT symbol, {counted} FROM {kernels} GROUP BY symbol").fetchall()
    check("DuckDB: kernels by name", sums(rows), expected_by_name())
    rows = duckdb.sql(f"SELECT rank, symbol, {counted} FROM {kernels} GROUP BY ALL").fetchall()
    check("DuckDB: kernels by rank and name", sums(rows), expected_by_rank())
    rows = duckdb.sql(f"SELECT count(*) FROM {kernels} WHERE duration_ns IS NULL").fetchall()
    check("DuckDB: flawed times are null", rows[0][0], sum(process["flawed"] for process in EXPECTED["job"]))
    processes = f"'{folder}/processes/*.parquet'"
    rows = duckdb.sql(f"""
        SELECT count(*), max(abs(epoch_ns(start_time) - (start_ns - clock_monotonic_ns + clock_realtime_ns)))
        FROM {kernels} JOIN {processes} USING (process) WHERE start_ns > 0""").fetchall()
    check("DuckDB: wall time is the clock's", (rows[0][0] > 300_000 - 100, rows[0][1]), (True, 0))
    rows = duckdb.sql(f"SELECT rank, delivered FROM {processes} ORDER BY rank").fetchall()
    check("DuckDB: what was delivered", rows, [(process["rank"], process["events"]) for process in EXPECTED["job"]])
    launches = f"'{folder}/launches/*.parquet'"
    rows = duckdb.sql(f"""
        SELECT count(*) > 0, count(*) FILTER (k.symbol IS DISTINCT FROM l.symbol OR l.time_ns >= k.start_ns)
        FROM {kernels} k JOIN {launches} l USING (process, correlation)
        WHERE k.start_ns > 0 AND k.graph = 0 AND l.symbol IS NOT NULL""").fetchall()
    check("DuckDB: launches join their kernels", rows[0], (True, 0))


def duckdb_lines():
    counted = "count(duration_ns), sum(duration_ns)"
    for what, source in [
        ("CSV", f"read_csv('{WORK}/job/csv/kernels.csv', header = true, quote = '\"', escape = '\"')"),
        ("JSON", f"read_json('{WORK}/job/json/kernels.jsonl', format = 'newline_delimited')"),
    ]:
        rows = duckdb.sql(f"SELECT rank, symbol, {counted} FROM {source} GROUP BY ALL").fetchall()
        # Empty cells of CSV are one with empty texts.
        found, wanted = sums(rows), expected_by_rank()
        if what == "CSV":
            wanted = {key: value for key, value in wanted.items() if key[1] not in ("", UNNAMED)}
            found = {key: value for key, value in found.items() if key[1] not in ("", UNNAMED)}
        check(f"DuckDB: kernels by rank and name, of {what}", found, wanted)


def arrow(folder):
    dataset = pyarrow.dataset.dataset(folder / "kernels")
    types = {name: str(dataset.schema.field(name).type)
             for name in ["start_ns", "start_time", "name", "symbol", "device", "grid_x", "rank", "host"]}
    check("pyarrow: types", types, {
        "start_ns": "int64", "start_time": "timestamp[ns, tz=UTC]", "name": "string", "symbol": "string",
        "device": "uint32", "grid_x": "int64", "rank": "uint32", "host": "string"})
    table = dataset.to_table(columns=["rank", "symbol", "duration_ns"])
    grouped = table.group_by(["rank", "symbol"]).aggregate([("duration_ns", "count"), ("duration_ns", "sum")])
    rows = zip(*(grouped[name].to_pylist() for name in ["rank", "symbol", "duration_ns_count", "duration_ns_sum"]))
    check("pyarrow: kernels by rank and name", sums(rows), expected_by_rank())
    frame = pandas.read_parquet(folder / "kernels", columns=["rank", "symbol", "duration_ns"])
    grouped = frame.groupby("rank", observed=True)["duration_ns"].agg(["count", "sum"])
    found = {int(rank): (int(row["count"]), int(row["sum"])) for rank, row in grouped.iterrows()}
    wanted = {}
    for (rank, _), (count, time_ns) in expected_by_rank().items():
        before = wanted.get(rank, (0, 0))
        wanted[rank] = (before[0] + count, before[1] + time_ns)
    check("pandas: kernels by rank", found, wanted)


def one_dataset(folder):
    """Folders of two recordings copied into one."""
    odd = EXPECTED["odd"]
    wanted = {("node-a", rank): 0 for rank in [0, 1, 2]}
    for (rank, _), (_, time_ns) in expected_by_rank().items():
        wanted["node-a", rank] += time_ns
    wanted[odd["host"], None] = odd["time_ns"]
    kernels = f"'{folder}/kernels/*.parquet'"
    rows = duckdb.sql(f"SELECT host, rank, sum(duration_ns) FROM {kernels} GROUP BY ALL").fetchall()
    check("DuckDB: two recordings in one", {row[:2]: int(row[2]) for row in rows}, wanted)
    table = pyarrow.dataset.dataset(folder / "kernels").to_table(
        columns=["host", "rank", "duration_ns"])
    grouped = table.group_by(["host", "rank"]).aggregate([("duration_ns", "sum")])
    rows = zip(*(grouped[name].to_pylist() for name in ["host", "rank", "duration_ns_sum"]))
    check("pyarrow: two recordings in one", {(host, rank): time_ns for host, rank, time_ns in rows}, wanted)
    frame = pandas.read_parquet(folder / "kernels", columns=["host", "rank", "duration_ns"])
    found = int(frame["duration_ns"].sum())
    for recording in ["odd", "job"]:
        # Nobody in the one has a rank, everybody in the other.
        frame = pandas.read_parquet(WORK / recording / "parquet/kernels", columns=["rank"])
        check(f"pandas: ranks of {recording}", bool(frame["rank"].isna().all()), recording == "odd")
    check("pandas: two recordings in one", found, sum(wanted.values()))


if __name__ == "__main__":
    main()
