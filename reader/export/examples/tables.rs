//! For `.ci/exports.d/tables.py`: makes two recordings below DIR and their tables in every format, and prints as JSON what
//! other readers must find.
//!
//! `cargo run -p gputap-export --example tables -- DIR`

use gputap_export::table::{ALL_TABLES, exact};
use gputap_export::{ExportError, Options, csv, json, parquet, pprof};
use gputap_recording::{Process, Recording, Status, Writer};
use gputap_ringbuf::event::{Event, KernelEvent};
use gputap_sample::{Sample, WroteProcess};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::path::Path;

const ODD_HOST: &str = "a/b=c %ü";

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("tables DIR")?;
    let dir = Path::new(&dir);
    let job = Sample { processes: 3, kernels: 300_000, launches: true, ..Sample::default() };
    let wrote = job.write(&dir.join("job/recording"))?;
    let odd_ns = odd(&dir.join("odd/recording"))?;
    for name in ["job", "odd"] {
        export(&dir.join(name))?;
    }
    let kernels: Vec<Value> = wrote.processes.iter().map(of_process).collect();
    println!("{}", json!({"job": kernels, "odd": {"host": ODD_HOST, "kernels": 1_000, "time_ns": odd_ns}}));
    Ok(())
}

/// Timed runs and their time by exact name; null for kernels without one.
fn of_process(process: &WroteProcess) -> Value {
    let kernels: Map<String, Value> = process
        .kernels()
        .into_iter()
        .map(|(name, total)| (exact(&name), json!([total.calls - total.flawed, total.total_ns])))
        .collect();
    let flawed: u64 = process.kernels().values().map(|total| total.flawed).sum();
    json!({"rank": process.process.rank, "pid": process.process.pid, "kernels": kernels, "flawed": flawed,
           "events": process.events})
}

/// A process without a rank, on a host whose name no folder can have.
fn odd(dir: &Path) -> Result<u64, Box<dyn Error>> {
    let process = Process { host: ODD_HOST.to_owned(), pid: 5, nonce: "0dd".to_owned(), ..Process::default() };
    let mut writer = Writer::create(&dir.join("pid-5-0dd"), process, Default::default(), 1)?;
    writer.name(1, b"_Z6vecaddPfS_i");
    let mut time_ns = 0;
    for number in 0..1_000 {
        let kernel = KernelEvent { start_ns: 1 + number, end_ns: 1 + 3 * number, name_id: 1, ..KernelEvent::default() };
        time_ns += 2 * number;
        writer.event(&Event::Kernel(kernel))?;
    }
    writer.finish(Status::default())?;
    Ok(time_ns)
}

fn export(dir: &Path) -> Result<(), ExportError> {
    let recording = Recording::open(&dir.join("recording")).expect("it was just written");
    let options = Options::default();
    parquet::to_folder(&recording, ALL_TABLES, &dir.join("parquet"), &options)?;
    csv::to_folder(&recording, ALL_TABLES, &dir.join("csv"), &options)?;
    json::to_folder(&recording, ALL_TABLES, &dir.join("json"), &options)?;
    pprof::to_file(&recording, &dir.join("gpu.pb.gz"), &options)?;
    Ok(())
}
