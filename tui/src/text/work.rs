//! What was recorded beside kernels, copies and cubins, in a line each.

use gputap_reader::model::snapshot::{InFlight, NamedTotal, Snapshot, Total};

use super::{bytes, clip, count, duration_ns, grouped, kernel_name};

const NAME_MAX_COLUMNS: usize = 60;

/// `in flight 3, the oldest gemm for 1.20 s`; nothing where launches are not recorded.
pub fn in_flight(in_flight: &InFlight) -> Option<String> {
    if in_flight.launches == 0 {
        return None;
    }
    let mut words = format!("in flight {}", grouped(in_flight.open));
    if let Some(oldest) = in_flight.oldest.first() {
        let (name, age) = (kernel_name(&oldest.name, NAME_MAX_COLUMNS), duration_ns(oldest.age_ns as f64));
        words += &format!(", the oldest {name} for {age}");
    }
    let mut but = Vec::new();
    if in_flight.uncertain > 0 {
        but.push(format!("{} uncertain: records were lost since", grouped(in_flight.uncertain)));
    }
    if in_flight.given_up > 0 {
        but.push(format!("{} never seen to finish, for the same reason", grouped(in_flight.given_up)));
    }
    if in_flight.not_tracked > 0 {
        but.push(format!("{} launches not followed, for want of room", grouped(in_flight.not_tracked)));
    }
    if !but.is_empty() {
        words += &format!(" ({})", but.join("; "));
    }
    Some(words)
}

/// Lines for what there was any of.
pub fn lines(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    if snapshot.graphs.count > 0 {
        lines.push(format!("graphs: {}", times(&snapshot.graphs)));
    }
    lines.extend(by_kind("waits: ", &snapshot.syncs));
    lines.extend(memory(snapshot));
    for (name, calls) in [("runtime", &snapshot.runtime_calls), ("driver", &snapshot.driver_calls)] {
        let sum = |pick: fn(&Total) -> u64| calls.iter().fold(0u64, |sum, call| sum.saturating_add(pick(&call.total)));
        if !calls.is_empty() {
            let (number, time) = (count(sum(|total| total.count)), duration_ns(sum(|total| total.total_ns) as f64));
            lines.push(format!("{name} calls: {number} of {} functions, {time}", calls.len()));
        }
    }
    let markers = snapshot.kinds.iter().find(|row| row.kind == "nvtx").map_or(0, |row| row.count);
    if markers > 0 {
        lines.push(format!("NVTX markers: {}", count(markers)));
    }
    lines.extend(overhead(snapshot));
    lines
}

/// What CUPTI and the driver took for themselves, where that is recorded.
pub fn overhead(snapshot: &Snapshot) -> Option<String> {
    by_kind("overhead: ", &snapshot.overheads)
}

fn by_kind(title: &str, totals: &[NamedTotal]) -> Option<String> {
    let name = |row: &NamedTotal| match (row.name, row.id) {
        ("unknown", Some(id)) => format!("kind {id}"),
        (name, _) => name.to_owned(),
    };
    let words: Vec<String> = totals.iter().map(|row| format!("{} {}", name(row), times(&row.total))).collect();
    (!words.is_empty()).then(|| title.to_owned() + &words.join(" · "))
}

fn times(total: &Total) -> String {
    format!("{} ×, {}", count(total.count), duration_ns(total.total_ns as f64))
}

fn memory(snapshot: &Snapshot) -> Option<String> {
    let memory = &snapshot.memory;
    let row = |row: &gputap_reader::model::snapshot::MemoryRow| {
        let (now, most) = (bytes(row.in_use_bytes), bytes(row.high_water_bytes));
        format!("GPU{} {} {now} (at most {most})", row.device_id, clip(&row.kind, 20))
    };
    let mut words: Vec<String> = memory.rows.iter().map(row).collect();
    for (number, what) in [
        (memory.unknown_releases, "releases of what was not seen allocated"),
        (memory.missed_releases, "releases not seen"),
        (memory.not_tracked, "allocations not followed, for want of room"),
    ] {
        if number > 0 {
            words.push(format!("{} {what}", grouped(number)));
        }
    }
    (!words.is_empty()).then(|| format!("memory in use: {}", words.join(" · ")))
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::snapshot::{InFlightRow, KindCount, MemoryInUse, MemoryRow};

    use super::*;

    #[test]
    fn in_flight_says_what_is_not_certain() {
        assert_eq!(in_flight(&InFlight::default()), None);
        let oldest = vec![InFlightRow { name: "gemm".into(), age_ns: 1_200_000_000, ..Default::default() }];
        let mut seen = InFlight { launches: 9, open: 3, oldest, ..Default::default() };
        assert_eq!(in_flight(&seen).unwrap(), "in flight 3, the oldest gemm for 1.20 s");
        (seen.uncertain, seen.given_up, seen.not_tracked) = (1, 2, 4);
        let words = in_flight(&seen).unwrap();
        assert!(words.contains("1 uncertain") && words.contains("2 never") && words.contains("4 launches"), "{words}");
    }

    #[test]
    fn every_kind_that_was_recorded_has_a_line() {
        assert!(lines(&Snapshot::default()).is_empty());
        let total = Total { count: 2, flagged: 0, total_ns: 3_000, max_ns: 2_000 };
        let of = |id, name| vec![NamedTotal { id: Some(id), name, total }];
        let row = MemoryRow {
            device_id: 1,
            kind: "device".into(),
            in_use_bytes: 5,
            high_water_bytes: 7,
            ..Default::default()
        };
        let snapshot = Snapshot {
            graphs: total,
            syncs: of(4, "context"),
            overheads: of(77, "unknown"),
            runtime_calls: of(1, ""),
            driver_calls: of(2, ""),
            memory: MemoryInUse { rows: vec![row], unknown_releases: 6, ..Default::default() },
            kinds: vec![KindCount { kind: "nvtx", count: 12 }],
            ..Snapshot::default()
        };
        let expected = [
            "graphs: 2 ×, 3.00 µs",
            "waits: context 2 ×, 3.00 µs",
            "memory in use: GPU1 device 5 B (at most 7 B) · 6 releases of what was not seen allocated",
            "runtime calls: 2 of 1 functions, 3.00 µs",
            "driver calls: 2 of 1 functions, 3.00 µs",
            "NVTX markers: 12",
            "overhead: kind 77 2 ×, 3.00 µs",
        ];
        assert_eq!(lines(&snapshot), expected);
    }
}
