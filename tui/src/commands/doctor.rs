use std::process::ExitCode;

use gputap_reader::clock::Now;
use gputap_reader::crc::Program;
use gputap_reader::doctor::{CuptiFound, Report, examine};

use crate::cli::Doctor;
use crate::error::{Error, Result};
use crate::output::{print, print_json};
use crate::text;

pub fn run(arguments: &Doctor) -> Result<ExitCode> {
    let program = Program::this_binary().map_err(|source| Error::OwnBinary { source })?;
    let mut report = examine(&program, Now::read());
    let payload = gputap_payload::install_into_user_folder();
    if let Err(error) = &payload {
        report.advice.insert(0, error.to_string());
    }
    if arguments.json {
        print_json(&report)?;
    } else {
        let shim = payload.map_or_else(|_| "nowhere".to_owned(), |payload| payload.shim().display().to_string());
        print(&in_words(&report, &shim))?;
    }
    Ok(if report.advice.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_words(report: &Report, shim: &str) -> String {
    let shm = &report.shared_memory;
    let room = match (shm.exists, shm.writable) {
        (false, _) => "missing".to_owned(),
        (true, false) => "not writable".to_owned(),
        (true, true) => format!("{} free of {}", text::bytes(shm.free_bytes), text::bytes(shm.total_bytes)),
    };
    let or_none = |words: &str| if words.is_empty() { "none".to_owned() } else { words.to_owned() };
    let injection = report.injection.path.as_ref().map_or("not set".to_owned(), |path| path.display().to_string());
    let living = report.taps.iter().filter(|tap| tap.alive).count();
    let mut rows = vec![
        fact("shim", shim.to_owned()),
        fact(&shm.path.display().to_string(), room),
        fact("CUDA_INJECTION64_PATH", injection),
        fact("NVIDIA driver", or_none(&report.driver_version)),
        fact("GPUs", or_none(&report.gpu_devices.join(" "))),
        fact("Linux", report.kernel_version.clone()),
        fact("taps", format!("{living} living, {} of ended processes", report.taps.len() - living)),
    ];
    rows.extend(report.cupti.iter().map(|cupti| fact("libcupti", library(cupti))));
    let mut words = text::table::aligned(&rows);
    words.push('\n');
    for advice in &report.advice {
        words += &format!("problem: {advice}\n");
    }
    if report.advice.is_empty() {
        words += "no problem found\n";
    }
    words
}

fn fact(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn library(cupti: &CuptiFound) -> String {
    let found = match cupti.version {
        Some(version) => format!("CUPTI {}", text::cupti_version(version)),
        None => cupti.error.clone(),
    };
    format!("{} ({}): {}", cupti.path.display(), cupti.origin, text::clean(&found))
}
