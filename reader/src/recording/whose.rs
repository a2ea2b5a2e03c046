//! Whose recording it is: what /proc says of a process, its rank, and which GPUs it sees.
//!
//! Every answer may be missing: processes end while one looks, and containers hide things. A missing answer is empty,
//! never a guess.

use crate::session::Session;
use gputap_recording::{Clock, Device, Process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What launchers tell their processes, and what decides which GPUs a process sees.
const VARIABLES: [&str; 14] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "JAX_PROCESS_ID",
    VISIBLE,
    ORDER,
    "SLURM_JOB_ID",
    "TORCHELASTIC_RUN_ID",
];
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
const ORDER: &str = "CUDA_DEVICE_ORDER";
/// Variables whose number is the rank, the first that has one. A launcher inside another sets its own: `torchrun` under
/// Slurm leaves SLURM_PROCID at the node's.
const RANKS: [&str; 8] = [
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "JAX_PROCESS_ID",
    "LOCAL_RANK",
    "SLURM_LOCALID",
];
/// A value longer than this is cut.
const VALUE_MAX_BYTES: usize = 1024;
/// Bytes of a command line that are kept.
const COMMAND_MAX_BYTES: usize = 16 << 10;
/// GPUs of one host. Ordinals beyond it are nobody's.
const DEVICES_MAX: usize = 256;

/// The process of a session, as far as it can be told now.
pub(super) fn of(session: &Session) -> Process {
    let (identity, found) = (session.identity(), session.found());
    let mut process = Process {
        pid: identity.pid,
        pid_outside: found.local.then_some(found.pid),
        pid_namespace: identity.pid_namespace,
        start_ticks: identity.start_ticks,
        boot_id: format!("{:032x}", identity.boot_id),
        nonce: format!("{:016x}", identity.nonce),
        host: text(Path::new("/proc/sys/kernel/hostname")),
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Process::default()
    };
    of_its_cupti(&mut process, session);
    if found.local && found.alive {
        with_proc(process, &Path::new("/proc").join(found.pid.to_string()))
    } else {
        process
    }
}

/// What a tap that is just starting does not know yet.
pub(super) fn of_its_cupti(process: &mut Process, session: &Session) {
    let (status, source) = session.versions();
    process.cupti_version = status.cupti_version;
    process.driver_version = status.driver_version;
    process.clock_source = source.to_owned();
    process.clock = session.clock_point().map(clock);
}

pub(super) fn clock(point: crate::model::snapshot::ClockPoint) -> Clock {
    Clock { monotonic_ns: point.monotonic_ns, realtime_ns: point.realtime_ns, error_ns: point.error_ns }
}

/// `proc_pid`: the process' folder in /proc.
fn with_proc(process: Process, proc_pid: &Path) -> Process {
    let variables = variables(&fs::read(proc_pid.join("environ")).unwrap_or_default());
    // Through the root of the process: a container shows the GPUs that are in it.
    let gpus = gpus(&proc_pid.join("root/proc/driver/nvidia/gpus"));
    Process {
        command: command(&fs::read(proc_pid.join("cmdline")).unwrap_or_default()),
        rank: rank(&variables),
        devices: devices(&variables, &gpus),
        variables,
        ..process
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

fn command(cmdline: &[u8]) -> Vec<String> {
    let cut = &cmdline[..cmdline.len().min(COMMAND_MAX_BYTES)];
    let cut = cut.strip_suffix(b"\0").unwrap_or(cut);
    if cut.is_empty() {
        return Vec::new();
    }
    cut.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn variables(environ: &[u8]) -> BTreeMap<String, String> {
    let known = |variable: &[u8]| {
        let at = variable.iter().position(|&byte| byte == b'=')?;
        let name = VARIABLES.into_iter().find(|name| name.as_bytes() == &variable[..at])?;
        let value = &variable[at + 1..];
        let value = String::from_utf8_lossy(&value[..value.len().min(VALUE_MAX_BYTES)]).into_owned();
        Some((name.to_owned(), value))
    };
    environ.split(|&byte| byte == 0).filter_map(known).collect()
}

fn rank(variables: &BTreeMap<String, String>) -> Option<u32> {
    RANKS.iter().find_map(|name| variables.get(*name)?.trim().parse().ok())
}

/// A GPU of the host, by its place on the bus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gpu {
    bus: String,
    uuid: String,
    name: String,
}

/// What the driver's own files say; its library stays unloaded.
fn gpus(folder: &Path) -> Vec<Gpu> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let read = |entry: fs::DirEntry| {
        let bus = entry.file_name().to_string_lossy().into_owned();
        gpu(bus, &fs::read_to_string(entry.path().join("information")).ok()?)
    };
    let mut gpus: Vec<Gpu> = entries.flatten().take(DEVICES_MAX).filter_map(read).collect();
    gpus.sort();
    gpus
}

/// `Model: \t NVIDIA H200`, `GPU UUID: \t GPU-…`, one a line.
fn gpu(bus: String, information: &str) -> Option<Gpu> {
    let field = |name: &str| {
        let of_line =
            |line: &str| line.strip_prefix(name)?.trim_start().strip_prefix(':').map(|value| value.trim().to_owned());
        information.lines().find_map(of_line)
    };
    let uuid = field("GPU UUID").filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?')).unwrap_or_default();
    Some(Gpu { bus, uuid, name: field("Model")? })
}

/// CUDA numbers what CUDA_VISIBLE_DEVICES lists, up to the first that there is none of; without it, all.
fn devices(variables: &BTreeMap<String, String>, gpus: &[Gpu]) -> Vec<Device> {
    let numbered = |(ordinal, (uuid, name)): (usize, (String, String))| Device { ordinal: ordinal as u32, uuid, name };
    // CUDA puts the fastest first unless it is told to go by the bus: among different GPUs numbers say nothing then.
    let are_alike = gpus.windows(2).all(|pair| pair[0].name == pair[1].name);
    let numbers_are_known = are_alike || variables.get(ORDER).is_some_and(|order| order == "PCI_BUS_ID");
    let by_number = |gpu: &Gpu| {
        if numbers_are_known { (gpu.uuid.clone(), gpu.name.clone()) } else { (String::new(), String::new()) }
    };
    let Some(visible) = variables.get(VISIBLE) else {
        return gpus.iter().map(by_number).enumerate().map(numbered).collect();
    };
    let listed = |word: &str| -> Option<(String, String)> {
        if let Ok(number) = word.parse::<usize>() {
            return match gpus.get(number) {
                Some(gpu) => Some(by_number(gpu)),
                // Where nothing is known of the host's GPUs, that there is one is still known.
                None if gpus.is_empty() && number < DEVICES_MAX => Some(Default::default()),
                None => None,
            };
        }
        let known = gpus.iter().find(|gpu| word.starts_with("GPU-") && gpu.uuid.starts_with(word));
        let is_uuid = word.starts_with("GPU-") || word.starts_with("MIG-");
        known
            .map(|gpu| (gpu.uuid.clone(), gpu.name.clone()))
            .or_else(|| is_uuid.then(|| (word.to_owned(), String::new())))
    };
    let words = visible.split(',').map(str::trim);
    words.map_while(listed).take(DEVICES_MAX).enumerate().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn gpu_of(bus: &str, uuid: &str, name: &str) -> Gpu {
        Gpu { bus: bus.into(), uuid: uuid.into(), name: name.into() }
    }

    #[test]
    fn a_rank_is_the_first_number_that_a_launcher_set() {
        assert_eq!(rank(&set(&[("RANK", "3"), ("SLURM_PROCID", "0"), ("WORLD_SIZE", "8")])), Some(3));
        assert_eq!(rank(&set(&[("RANK", "none"), ("SLURM_PROCID", "5")])), Some(5));
        assert_eq!(rank(&set(&[("LOCAL_RANK", "1"), ("OMPI_COMM_WORLD_RANK", "9")])), Some(9));
        assert_eq!(rank(&set(&[("WORLD_SIZE", "8"), ("CUDA_VISIBLE_DEVICES", "2")])), None);
    }

    #[test]
    fn of_an_environment_only_known_variables_are_taken() {
        let read = variables(b"RANK=2\0SECRET=x\0PATH\0CUDA_VISIBLE_DEVICES=\0WORLD_SIZE=\xff=\0");
        assert_eq!(read, set(&[("RANK", "2"), ("CUDA_VISIBLE_DEVICES", ""), ("WORLD_SIZE", "\u{fffd}=")]));
        assert!(variables(b"").is_empty());
    }

    #[test]
    fn a_tree_as_of_a_process_in_a_container_is_read() {
        let root = tempfile::tempdir().expect("a folder");
        let proc_pid = root.path();
        fs::write(proc_pid.join("environ"), "LOCAL_RANK=1\0CUDA_VISIBLE_DEVICES=1\0").expect("room");
        fs::write(proc_pid.join("cmdline"), b"python3\0train.py\0\0--x\0").expect("room");
        for (bus, uuid) in [("0000:4b:00.0", "GPU-bbb"), ("0000:19:00.0", "GPU-aaa")] {
            let folder = proc_pid.join("root/proc/driver/nvidia/gpus").join(bus);
            fs::create_dir_all(&folder).expect("room");
            let information =
                format!("Model: \t\t NVIDIA H200\nIRQ:   \t\t 5\nGPU UUID: \t {uuid}\nVideo BIOS: \t ??\n");
            fs::write(folder.join("information"), information).expect("room");
        }
        let process = with_proc(Process::default(), proc_pid);
        assert_eq!(process.command, ["python3", "train.py", "", "--x"]);
        assert_eq!(process.rank, Some(1));
        let device = Device { ordinal: 0, uuid: "GPU-bbb".into(), name: "NVIDIA H200".into() };
        assert_eq!(process.devices, [device]);
        // A process that has gone meanwhile.
        assert_eq!(with_proc(Process::default(), &proc_pid.join("gone")), Process::default());
    }

    #[test]
    fn devices_are_those_that_cuda_numbers() {
        let gpus = [gpu_of("1", "GPU-aa", "H200"), gpu_of("2", "GPU-bb", "H200"), gpu_of("3", "GPU-cc", "H200")];
        let seen = |visible: &str, gpus: &[Gpu]| -> Vec<String> {
            devices(&set(&[(VISIBLE, visible)]), gpus).into_iter().map(|device| device.uuid).collect()
        };
        assert_eq!(devices(&BTreeMap::new(), &gpus).len(), 3);
        assert_eq!(seen("2,0", &gpus), ["GPU-cc", "GPU-aa"]);
        assert_eq!(seen("1,-1,0", &gpus), ["GPU-bb"], "nothing after the first that there is none of");
        assert_eq!(seen("7", &gpus), [""; 0]);
        assert_eq!(seen("", &gpus), [""; 0]);
        assert_eq!(seen("GPU-b, MIG-12/3", &gpus), ["GPU-bb", "MIG-12/3"]);
        assert_eq!(seen("0,1", &[]), ["", ""], "there are two, and no more is known");
        // Different GPUs are numbered by their speed, unless told otherwise.
        let mixed = [gpu_of("1", "GPU-aa", "T4"), gpu_of("2", "GPU-bb", "H200")];
        assert_eq!(seen("0", &mixed), [""]);
        let by_bus = devices(&set(&[(VISIBLE, "0"), (ORDER, "PCI_BUS_ID")]), &mixed);
        assert_eq!(by_bus[0].uuid, "GPU-aa");
    }
}
