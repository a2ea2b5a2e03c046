//! Facts that decide whether tapping works here: what `gputap doctor` shows. Nothing is loaded into this process.

use crate::clock::Now;
use crate::crc::{Candidate, Deadlines, Program, candidates, probe};
use crate::list::{Tap, list};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Docker's default, which one PyTorch run's cubins overflow.
const SMALL_SHM_BYTES: u64 = 256 << 20;

/// Everything that was found, good or bad.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub shared_memory: SharedMemory,
    pub injection: Injection,
    /// Libraries for CUPTI's checksums, in the order in which they are tried.
    pub cupti: Vec<CuptiFound>,
    /// Of the loaded NVIDIA kernel driver, empty where there is none.
    pub driver_version: String,
    /// Device nodes /dev/nvidia0, ...
    pub gpu_devices: Vec<String>,
    pub kernel_version: String,
    pub taps: Vec<Tap>,
    /// What is wrong or could be better, in words, most serious first.
    pub advice: Vec<String>,
}

/// The room that taps live in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SharedMemory {
    pub path: PathBuf,
    pub exists: bool,
    pub writable: bool,
    pub total_bytes: u64,
    pub free_bytes: u64,
}

/// What CUDA programs started from here would load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Injection {
    /// CUDA_INJECTION64_PATH, where it is set.
    pub path: Option<PathBuf>,
    pub exists: bool,
    /// Its file name is that of our shim.
    pub is_gputap: bool,
}

/// A libcupti and what a helper process said about it.
#[derive(Clone, Debug, Serialize)]
pub struct CuptiFound {
    pub path: PathBuf,
    /// How we came to it.
    pub origin: String,
    /// As `cuptiGetVersion` gives it; absent with a reason in `error`.
    pub version: Option<u32>,
    pub error: String,
}

/// Looks at everything. Takes as long as the helper processes do, a second in all where libraries behave; `program` is
/// how to start one.
pub fn examine(program: &Program, now: Now) -> Report {
    let mut report = Report {
        shared_memory: shared_memory(Path::new("/dev/shm")),
        injection: injection(std::env::var_os("CUDA_INJECTION64_PATH").map(PathBuf::from)),
        cupti: candidates(&|name| std::env::var_os(name)).iter().map(|candidate| ask(program, candidate)).collect(),
        driver_version: driver_version(&read("/proc/driver/nvidia/version")),
        gpu_devices: gpu_devices(Path::new("/dev")),
        kernel_version: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        taps: list(now),
        advice: Vec::new(),
    };
    report.advice = advice(&report);
    report
}

fn shared_memory(path: &Path) -> SharedMemory {
    let room = rustix::fs::statvfs(path);
    let blocks =
        |pick: fn(&rustix::fs::StatVfs) -> u64| room.as_ref().map_or(0, |r| pick(r).saturating_mul(r.f_frsize));
    SharedMemory {
        path: path.to_owned(),
        exists: path.is_dir(),
        writable: rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok(),
        total_bytes: blocks(|r| r.f_blocks),
        free_bytes: blocks(|r| r.f_bavail),
    }
}

fn injection(path: Option<PathBuf>) -> Injection {
    let exists = path.as_ref().is_some_and(|path| path.is_file());
    let name = path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let is_gputap = name.is_some_and(|name| name.starts_with("libgputap"));
    Injection { path, exists, is_gputap }
}

fn ask(program: &Program, candidate: &Candidate) -> CuptiFound {
    let answer = probe(program, &candidate.path, &Deadlines::default());
    CuptiFound {
        path: candidate.path.clone(),
        origin: candidate.origin.to_owned(),
        version: answer.as_ref().ok().map(|library| library.version),
        error: answer.err().map_or_else(String::new, |error| error.to_string()),
    }
}

/// From the first line, `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  date`: the first number with dots.
fn driver_version(text: &str) -> String {
    let is_version = |word: &&str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().find(is_version).unwrap_or_default().to_owned()
}

fn gpu_devices(dev: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dev) else { return Vec::new() };
    let is_gpu = |name: &String| {
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_gpu).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.into_iter().map(|name| dev.join(name).display().to_string()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn advice(report: &Report) -> Vec<String> {
    let mut advice = Vec::new();
    let mut say = |applies: bool, text: String| {
        if applies {
            advice.push(text);
        }
    };
    let shm = &report.shared_memory;
    let path = shm.path.display();
    say(!shm.exists, format!("{path} is missing: taps use anonymous memory instead, which ends with the job"));
    say(shm.exists && !shm.writable, format!("{path} cannot be written: taps use anonymous memory instead"));
    say(
        shm.exists && shm.free_bytes < SMALL_SHM_BYTES,
        format!(
            "{path} has {} MiB free, less than a large job's modules need (in Docker: --shm-size=1g or --ipc=host); \
             taps use anonymous memory where it does not suffice",
            shm.free_bytes >> 20
        ),
    );
    if let Some(library) = &report.injection.path {
        let library = library.display();
        let injection = &report.injection;
        say(!injection.exists, format!("CUDA_INJECTION64_PATH names {library}, which does not exist: CUDA ignores it"));
        say(
            injection.exists && !injection.is_gputap,
            format!("CUDA_INJECTION64_PATH names another tool, {library}: unset it to tap jobs started from here"),
        );
    }
    say(
        report.driver_version.is_empty() && report.gpu_devices.is_empty(),
        "no NVIDIA driver is loaded: `gputap demo` works, real jobs do not".to_owned(),
    );
    say(
        report.cupti.iter().all(|cupti| cupti.version.is_none()),
        "no libcupti of the reader's own works, so CUPTI's checksums stay empty; set GPUTAP_CUPTI to one".to_owned(),
    );
    report.taps.iter().filter(|tap| tap.alive).for_each(|tap| advice.extend(of_tap(tap)));
    advice
}

fn of_tap(tap: &Tap) -> Vec<String> {
    let pid = tap.pid;
    let mut advice = Vec::new();
    match (tap.state == "off", tap.error.as_str()) {
        (true, "") => advice.push(format!("the tap of process {pid} is of no use: {}", tap.reason)),
        (false, "") if tap.is_trouble => advice.push(format!("the tap of process {pid} has trouble: {}", tap.reason)),
        (_, "") => {}
        (_, error) => advice.push(format!("the tap of process {pid} is of no use: {error}")),
    }
    advice.extend(tap.general_notes.iter().map(|note| format!("the tap of process {pid} says: {note}")));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_version_is_found_in_both_spellings() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Mon Jan 1 00:00:00 UTC 2026\nGCC version:";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.86  Release Build";
        assert_eq!(driver_version(closed), "580.159.03");
        assert_eq!(driver_version(open), "535.86");
        assert_eq!(driver_version(""), "");
    }

    #[test]
    fn a_missing_folder_and_another_tool_are_named() {
        let shm = shared_memory(Path::new("/nowhere/shm"));
        assert_eq!((shm.exists, shm.writable, shm.total_bytes), (false, false, 0));
        let here = shared_memory(Path::new("/tmp"));
        assert!(here.exists && here.total_bytes > 0);
        let other = injection(Some("/opt/other/libother.so".into()));
        assert_eq!((other.exists, other.is_gputap), (false, false));
        assert!(injection(Some("/x/libgputap_shim.so".into())).is_gputap);
    }

    #[test]
    fn gpu_nodes_are_told_from_their_neighbours() {
        let dev = tempfile::tempdir().expect("a folder");
        for name in ["nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null"] {
            std::fs::write(dev.path().join(name), b"").expect("a file");
        }
        let names: Vec<String> = gpu_devices(dev.path());
        let ends: Vec<&str> = names.iter().filter_map(|name| name.rsplit('/').next()).collect();
        assert_eq!(ends, ["nvidia0", "nvidia2", "nvidia10"]);
    }
}
