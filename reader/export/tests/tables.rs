//! Tables as Parquet, CSV and JSON Lines, read back by other readers than our writers.

mod support;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use gputap_export::table::{ALL_TABLES, Selection, wall};
use gputap_export::{ExportError, Format, Options, csv, export_to_stream, json, parquet};
use gputap_recording::{Recorded, Recording};
use gputap_ringbuf::event::{EventKind, KernelEvent};
use std::collections::BTreeMap;
use std::path::Path;

type Line = BTreeMap<String, String>;

/// What all three formats must say of a kernel, as text; empty for nothing.
fn expected(recorded: &Recorded, (kernel, symbol): &(KernelEvent, Option<String>)) -> Line {
    let process = &recorded.process;
    let is_timed = support::is_timed(kernel);
    let start_time = process.clock.filter(|_| kernel.start_ns > 0).map(|clock| clock.wall_ns(kernel.start_ns));
    let mut line: Line = [
        ("host", process.host.clone()),
        ("process", process.nonce.clone()),
        ("duration_ns", if is_timed { (kernel.end_ns - kernel.start_ns).to_string() } else { String::new() }),
        ("start_time", start_time.map(wall::iso8601).unwrap_or_default()),
        ("symbol", symbol.clone().unwrap_or_default()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    for (name, number) in [
        ("rank", u64::from(process.rank.unwrap())),
        ("pid", process.pid.into()),
        ("start_ns", kernel.start_ns),
        ("end_ns", kernel.end_ns),
        ("correlation", kernel.correlation_id),
        ("graph_node", kernel.graph_node_id),
        ("device", kernel.device_id.into()),
        ("context", kernel.context_id.into()),
        ("stream", kernel.stream_id.into()),
        ("graph", kernel.graph_id.into()),
        ("grid_x", kernel.grid[0].into()),
        ("grid_y", kernel.grid[1].into()),
        ("grid_z", kernel.grid[2].into()),
        ("block_x", kernel.block[0].into()),
        ("block_y", kernel.block[1].into()),
        ("block_z", kernel.block[2].into()),
        ("static_shared_bytes", kernel.static_shared_bytes.into()),
        ("dynamic_shared_bytes", kernel.dynamic_shared_bytes.into()),
        ("local_bytes_per_thread", kernel.local_bytes_per_thread.into()),
        ("registers", kernel.registers_per_thread.into()),
    ] {
        line.insert(name.to_owned(), number.to_string());
    }
    line
}

fn check_kernels(recording: &Recording, mut lines: Vec<Line>) {
    let mut wanted: Vec<Line> = Vec::new();
    for recorded in recording.processes() {
        wanted.extend(support::kernels(recorded).iter().map(|kernel| expected(recorded, kernel)));
    }
    assert!(wanted.len() > 9_000);
    assert_eq!(lines.len(), wanted.len());
    for (line, wanted) in lines.iter_mut().zip(&wanted) {
        let name = line.remove("name").unwrap();
        assert!(!name.chars().any(char::is_control) && name.len() <= 8195);
        if wanted["symbol"].starts_with("_ZN5PlanAC") {
            assert_eq!(name, "PlanA::PlanA()");
        }
        assert_eq!(line, wanted);
    }
}

fn csv_lines(path: &Path) -> Vec<Line> {
    let mut reader = ::csv::Reader::from_path(path).unwrap();
    let head = reader.headers().unwrap().clone();
    let line =
        |record: ::csv::StringRecord| head.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect();
    reader.records().map(|record| line(record.unwrap())).collect()
}

fn json_lines(bytes: &[u8]) -> Vec<Line> {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let line = |line: &str| {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        object.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    };
    std::str::from_utf8(bytes).unwrap().lines().map(line).collect()
}

fn parquet_rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

fn parquet_line(row: &Row) -> Line {
    let text = |field: &Field, name: &str| match field {
        Field::Null => String::new(),
        Field::Long(wall_ns) if name == "start_time" => wall::iso8601(*wall_ns as u64),
        Field::Long(number) => number.to_string(),
        Field::UInt(number) => number.to_string(),
        Field::ULong(number) => number.to_string(),
        Field::Str(text) => text.clone(),
        field => panic!("{name} is {field:?}"),
    };
    row.get_column_iter().map(|(name, field)| (name.clone(), text(field, name))).collect()
}

#[test]
fn csv_has_every_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    let exported = csv::to_folder(&recording, ALL_TABLES, &out, &Options::default()).unwrap();
    check_kernels(&recording, csv_lines(&out.join("kernels.csv")));
    let bytes: u64 = exported.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(exported.bytes, bytes);
    let text = std::fs::read_to_string(out.join("kernels.csv")).unwrap();
    assert_eq!(text.lines().count(), csv_lines(&out.join("kernels.csv")).len() + 1, "a line is a row");
}

#[test]
fn json_has_every_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    json::to_folder(&recording, ALL_TABLES, &out, &Options::default()).unwrap();
    check_kernels(&recording, json_lines(&std::fs::read(out.join("kernels.jsonl")).unwrap()));
}

#[test]
fn a_stream_has_the_lines_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    csv::to_folder(&recording, ALL_TABLES, &out, &Options::default()).unwrap();
    for table in ["kernels", "nvtx", "processes"] {
        let mut stream = Vec::new();
        csv::to_stream(&recording, table, &mut stream, Path::new("-")).unwrap();
        assert_eq!(stream, std::fs::read(out.join(format!("{table}.csv"))).unwrap());
    }
    let mut stream = Vec::new();
    export_to_stream(&recording, Format::Csv, "kernels", &mut stream, Path::new("-")).unwrap();
    assert_eq!(stream, std::fs::read(out.join("kernels.csv")).unwrap());
    let none = export_to_stream(&recording, Format::Parquet, "kernels", Vec::new(), Path::new("-")).unwrap_err();
    assert!(matches!(none, ExportError::NoStream { format: "parquet" }));
    let unknown = csv::to_stream(&recording, "kernel", Vec::new(), Path::new("-")).unwrap_err();
    assert!(unknown.to_string().contains("kernels, copies"), "{unknown}");
}

#[test]
fn parquet_has_every_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    let exported = parquet::to_folder(&recording, ALL_TABLES, &out, &Options::default()).unwrap();
    let mut lines = Vec::new();
    let mut files: Vec<_> = out.join("kernels").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for (file, rank) in files.iter().zip([0, 1]) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(&format!("node-a.rank-{rank}.pid-400{rank}-")), "{name}");
        assert!(exported.files.contains(file));
        lines.extend(parquet_rows(file).iter().map(parquet_line));
    }
    check_kernels(&recording, lines);
    let bytes: u64 = exported.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(exported.bytes, bytes);
    let flawed = recording.processes().iter().flat_map(support::kernels).filter(|(k, _)| !support::is_timed(k)).count();
    assert_eq!(exported.flawed, flawed as u64);
}

#[test]
fn every_number_of_every_kind_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::every_kind(&dir.path().join("recording"));
    let [csv_out, parquet_out] = ["csv", "parquet"].map(|name| dir.path().join(name));
    csv::to_folder(&recording, ALL_TABLES, &csv_out, &Options::default()).unwrap();
    let exported = parquet::to_folder(&recording, ALL_TABLES, &parquet_out, &Options::default()).unwrap();
    assert_eq!(exported.events, EventKind::ALL.len() as u64);
    for kind in EventKind::ALL {
        let table = gputap_export::table::NAMES.iter().find(|(_, of)| *of == Some(*kind)).unwrap().0;
        let lines = csv_lines(&csv_out.join(format!("{table}.csv")));
        assert_eq!(lines.len(), 1, "{table}");
        let mut cells: Vec<&str> = lines[0].values().map(String::as_str).collect();
        cells.sort_unstable();
        // A name that nobody said is nothing; all else has its number.
        let names: usize = kind.fields().iter().filter(|(field, _)| ["name_id", "domain_id"].contains(field)).count();
        let all: usize = kind.fields().iter().map(|(_, numbers)| numbers).sum();
        let there = (101..101 + all).filter(|number| cells.contains(&number.to_string().as_str())).count();
        assert_eq!(there, all - names, "{table}: {:?}", lines[0]);
        let rows = parquet_rows(&parquet_out.join(table).join("a%2Fb%3Dc%20%25%C3%BC.pid-77-0f-0.parquet"));
        assert_eq!(parquet_line(&rows[0]), lines[0], "{table}");
    }
}

#[test]
fn a_stream_that_is_none_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let mut out = Vec::new();
    csv::to_stream(&recording, "syncs", &mut out, Path::new("-")).unwrap();
    let path = dir.path().join("syncs.csv");
    std::fs::write(&path, out).unwrap();
    let lines = csv_lines(&path);
    assert!(!lines.is_empty());
    assert!(lines.iter().all(|line| line["cuda_event"].is_empty() && !line["stream"].is_empty()));
}

#[test]
fn nothing_recorded_gives_tables_without_rows() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::nothing(&dir.path().join("recording"));
    let [csv_out, json_out, parquet_out] = ["csv", "json", "parquet"].map(|name| dir.path().join(name));
    csv::to_folder(&recording, ALL_TABLES, &csv_out, &Options::default()).unwrap();
    json::to_folder(&recording, ALL_TABLES, &json_out, &Options::default()).unwrap();
    parquet::to_folder(&recording, ALL_TABLES, &parquet_out, &Options::default()).unwrap();
    for table in ["kernels", "copies", "memsets"] {
        assert_eq!(csv_lines(&csv_out.join(format!("{table}.csv"))), Vec::<Line>::new());
        assert_eq!(std::fs::read(json_out.join(format!("{table}.jsonl"))).unwrap(), b"");
        assert_eq!(parquet_rows(&parquet_out.join(table).join("unknown.pid-0--0.parquet")).len(), 0);
    }
    assert_eq!(csv_lines(&csv_out.join("processes.csv")).len(), 1);
}

#[test]
fn what_was_lost_is_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let lost = vec![gputap_recording::Loss { reason: "overwritten".to_owned(), count: 12, unknown: true }];
    let sample = gputap_sample::Sample { processes: 1, kernels: 450, lost, ..Default::default() };
    let wrote = sample.write(dir.path()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let (mut losses, mut processes) = (Vec::new(), Vec::new());
    json::to_stream(&recording, "losses", &mut losses, Path::new("-")).unwrap();
    json::to_stream(&recording, "processes", &mut processes, Path::new("-")).unwrap();
    let loss = &json_lines(&losses)[0];
    assert_eq!([&loss["reason"], &loss["count"], &loss["unknown"]], ["overwritten", "12", "true"]);
    let process = &json_lines(&processes)[0];
    assert_eq!(process["delivered"], wrote.events().to_string());
    assert_eq!(process["attempted"], (wrote.events() + 12).to_string());
    assert_eq!(process["command"], "[\"python3\",\"train.py\",\"--layers\",\"12\"]");
}

#[test]
fn only_what_is_wanted_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    let wanted = Selection::of_kinds(EventKind::Memcpy.bit());
    csv::to_folder(&recording, wanted, &out, &Options::default()).unwrap();
    let mut files: Vec<_> = out.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["copies.csv", "devices.csv", "losses.csv", "modules.csv", "processes.csv"]);
}

#[test]
fn what_is_there_stays_unless_it_may_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(&dir.path().join("recording"));
    let out = dir.path().join("out");
    let export = |overwrite| parquet::to_folder(&recording, ALL_TABLES, &out, &Options { overwrite });
    let first = export(false).unwrap();
    std::fs::write(out.join("mine"), "mine").unwrap();
    assert!(matches!(export(false), Err(ExportError::Exists { .. })));
    assert_eq!(export(true).unwrap(), first);
    assert_eq!(std::fs::read(out.join("mine")).unwrap(), b"mine");
}

/// A name of 500 KB stands in each row group once, not in each row.
#[test]
fn a_long_name_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let process = gputap_recording::Process::default();
    let folder = dir.path().join("recording");
    let mut writer =
        gputap_recording::Writer::create(&folder.join("pid-1-0a"), process, Default::default(), 1).unwrap();
    // No two pieces alike, so that no compression hides it.
    let name: Vec<u8> =
        (0..100_000_u32).flat_map(|i| format!("{:05x}", i.wrapping_mul(2_654_435_761) >> 12).into_bytes()).collect();
    writer.name(1, &name);
    for start_ns in 1..=5_000 {
        let kernel = KernelEvent { start_ns, end_ns: start_ns + 1, name_id: 1, ..KernelEvent::default() };
        writer.event(&gputap_ringbuf::event::Event::Kernel(kernel)).unwrap();
    }
    writer.finish(Default::default()).unwrap();
    let recording = Recording::open(&folder).unwrap();
    let exported = parquet::to_folder(&recording, ALL_TABLES, &dir.path().join("out"), &Options::default()).unwrap();
    assert!(exported.bytes < 2 * name.len() as u64, "{} bytes", exported.bytes);
}

struct Closed;

impl std::io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_told_from_other_errors() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(dir.path());
    let closed = [
        csv::to_stream(&recording, "kernels", Closed, Path::new("-")),
        json::to_stream(&recording, "kernels", Closed, Path::new("-")),
        gputap_export::pprof::to_stream(&recording, Closed, Path::new("-")),
    ];
    assert!(closed.into_iter().all(|result| result.unwrap_err().is_closed_pipe()));
    assert!(!ExportError::Exists { path: dir.path().to_owned() }.is_closed_pipe());
}
