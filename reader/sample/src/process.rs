//! Who the recorded processes are.

use crate::{BEGAN_NS, BEGAN_REALTIME_NS, Sample};
use gputap_recording::{Clock, Device, Process};

/// Of rank 0; the others follow.
const FIRST_PID: u32 = 4_000;

pub fn of_rank(sample: &Sample, rank: u32) -> Process {
    let variables = [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", sample.processes)];
    Process {
        pid: FIRST_PID + rank,
        pid_outside: None,
        pid_namespace: 4_026_531_836,
        start_ticks: 400_000 + u64::from(rank),
        boot_id: "5a3c0f6e9b1d4e7788aa0123456789ab".to_owned(),
        nonce: format!("{:016x}", sample.seed.wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(rank))),
        host: "node-a".to_owned(),
        command: ["python3", "train.py", "--layers", "12"].map(str::to_owned).to_vec(),
        rank: Some(rank),
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_string())).into(),
        devices: vec![Device {
            ordinal: rank,
            uuid: format!("GPU-00000000-0000-0000-0000-{rank:012x}"),
            name: "NVIDIA H200".to_owned(),
        }],
        cupti_version: 130_001,
        driver_version: 13_000,
        clock_source: "wall".to_owned(),
        clock: Some(Clock { monotonic_ns: BEGAN_NS, realtime_ns: BEGAN_REALTIME_NS, error_ns: 120 }),
        recorder_version: "0.1.0".to_owned(),
    }
}
