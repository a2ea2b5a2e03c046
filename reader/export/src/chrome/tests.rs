//! Files are read back as JSON and compared with what was recorded. HolisticTraceAnalysis reads them in `.ci/exports`.

use crate::{ExportError, Format, Options};
use flate2::read::GzDecoder;
use gputap_recording::Recording;
use gputap_sample::Sample;
use serde_json::Value;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

fn read(path: &Path) -> (String, Value) {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    let value = serde_json::from_str(&text).unwrap();
    (text, value)
}

fn export(recording: &Path, out: &Path) -> Result<crate::Exported, ExportError> {
    crate::export(&Recording::open(recording).unwrap(), Format::Chrome, out, &Options::default())
}

fn of_category<'t>(trace: &'t Value, category: &str) -> Vec<&'t Value> {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["cat"] == category).collect()
}

fn nanoseconds(micros: &Value) -> u64 {
    (micros.as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn each_rank_has_a_file_with_its_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out"));
    let wrote = Sample { kernels: 6_000, launches: true, processes: 3, ..Sample::default() }.write(&recording).unwrap();
    let exported = export(&recording, &out).unwrap();
    assert_eq!(exported.files.len(), 3);
    for (path, process) in exported.files.iter().zip(&wrote.processes) {
        let (text, trace) = read(path);
        let rank = process.process.rank.unwrap();
        // What HolisticTraceAnalysis looks for, line by line.
        assert!(text.lines().any(|line| line.contains(&format!("\"rank\": {rank}"))));
        assert_eq!(trace["distributedInfo"]["world_size"], 3);
        assert_eq!(trace["deviceProperties"][0]["id"], rank);
        let kernels = of_category(&trace, "kernel");
        let good: u64 = process.kernels().values().map(|total| total.calls - total.flawed).sum();
        let time_ns: u64 = process.kernels().values().map(|total| total.total_ns).sum();
        assert_eq!(kernels.len() as u64, good);
        assert_eq!(kernels.iter().map(|kernel| nanoseconds(&kernel["dur"])).sum::<u64>(), time_ns);
        assert!(kernels.iter().all(|kernel| kernel["pid"] == rank && kernel["tid"] == kernel["args"]["stream"]));
        let args =
            ["External id", "device", "context", "correlation", "registers per thread", "shared memory", "block"];
        assert!(args.iter().all(|arg| !kernels[0]["args"][arg].is_null()), "{}", kernels[0]);
        assert_eq!(kernels[0]["args"]["grid"].as_array().unwrap().len(), 3);
        let copies = of_category(&trace, "gpu_memcpy");
        let bytes: u64 = copies.iter().map(|copy| copy["args"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes, process.copies.values().map(|total| total.bytes).sum::<u64>());
        assert!(copies.iter().any(|copy| copy["name"] == "Memcpy HtoD (Pinned -> Device)"));
        let ends = |phase: &str| -> HashSet<u64> {
            let ends = of_category(&trace, "ac2g").into_iter().filter(|end| end["ph"] == phase);
            ends.map(|end| end["id"].as_u64().unwrap()).collect()
        };
        assert!(!ends("s").is_empty());
        assert_eq!(ends("s"), ends("f"));
        assert!(of_category(&trace, "user_annotation").iter().all(|range| range["dur"].as_f64().unwrap() > 0.0));
    }
}

#[test]
fn times_of_all_ranks_count_from_the_same_instant() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out"));
    Sample { kernels: 900, ..Sample::default() }.write(&recording).unwrap();
    for path in export(&recording, &out).unwrap().files {
        let (_, trace) = read(&path);
        let base_ns = trace["baseTimeNanoseconds"].as_u64().unwrap();
        let first = of_category(&trace, "kernel").iter().map(|kernel| nanoseconds(&kernel["ts"])).min().unwrap();
        let since_ns = base_ns + first - gputap_sample::BEGAN_REALTIME_NS;
        assert!(since_ns < 1_000_000_000, "{since_ns} ns after the recording began");
    }
}

#[test]
fn hostile_names_are_json() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out.json"));
    Sample { kernels: 450, processes: 1, hostile: true, ..Sample::default() }.write(&recording).unwrap();
    assert_eq!(export(&recording, &out).unwrap().files, std::slice::from_ref(&out));
    let (text, trace) = read(&out);
    assert!(text.is_ascii());
    let names: HashSet<&str> =
        of_category(&trace, "kernel").iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    assert!(names.contains("\\xff\\xfe_kernel_\\x80\\xc3("), "{names:?}");
    assert!(names.contains("PlanA::PlanA()") && names.contains("PlanA::PlanA() [_ZN5PlanAC2Ev]"));
    assert!(names.iter().any(|name| name.starts_with("evil\"quoted\\'kernel'")));
}

#[test]
fn nothing_is_left_where_something_is_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out"));
    Sample { kernels: 450, ..Sample::default() }.write(&recording).unwrap();
    std::fs::write(&out, "mine").unwrap();
    assert!(matches!(export(&recording, &out), Err(ExportError::Exists { .. })));
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    assert_eq!(dir.path().read_dir().unwrap().count(), 2);
}

#[test]
fn a_recording_without_events_is_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("recording"), dir.path().join("out"));
    Sample { kernels: 0, ..Sample::default() }.write(&recording).unwrap();
    let error = export(&recording, &out).unwrap_err();
    assert!(matches!(error, ExportError::Nothing { .. }) && !out.exists(), "{error}");
}
