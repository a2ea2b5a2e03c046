//! One of the processes that are followed, in figures to compare it with the others.

use std::fs;

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::WorkShares;

use crate::text::loss;

/// Variables whose number is the rank, the first that has one. A launcher inside another sets its own: `torchrun` under
/// Slurm leaves SLURM_PROCID at the node's.
const RANKS: [&str; 7] =
    ["RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "JAX_PROCESS_ID", "LOCAL_RANK"];
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Who a process is among those of its job: what its environment said when it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub rank: Option<u32>,
    /// Of several hosts, which; empty on this one.
    pub host: String,
    /// `CUDA_VISIBLE_DEVICES`; empty where it is not set.
    pub visible: String,
}

impl Standing {
    /// Of a local process; nothing where it may not be looked at.
    pub fn of_pid(pid: u32) -> Standing {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        Standing::of(|name| {
            let mut variables = environment.split(|&byte| byte == 0).filter_map(|variable| {
                let (key, value) = variable.split_at_checked(variable.iter().position(|&byte| byte == b'=')?)?;
                (key == name.as_bytes()).then(|| String::from_utf8_lossy(&value[1..]).into_owned())
            });
            variables.next()
        })
    }

    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Standing {
        Standing {
            rank: RANKS.iter().find_map(|name| variable(name)?.trim().parse().ok()),
            host: String::new(),
            visible: variable(VISIBLE).unwrap_or_default(),
        }
    }

    /// The numbers of the GPUs on their host, where CUDA's numbers in the process can be told from them.
    fn gpus(&self, ordinals: &[u32]) -> String {
        let visible: Vec<&str> = self.visible.split(',').map(str::trim).collect();
        let name = |ordinal: &u32| match visible.get(*ordinal as usize) {
            Some(number) if number.parse::<u32>().is_ok() => (*number).to_owned(),
            _ => ordinal.to_string(),
        };
        ordinals.iter().map(name).collect::<Vec<_>>().join(",")
    }
}

/// One process beside the others.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// What it is called by in [`super::Source::look_at`]: it stays the same.
    pub key: u64,
    pub pid: u32,
    pub standing: Standing,
    pub gpus: String,
    pub command: String,
    pub state: String,
    pub alive: bool,
    pub kernels_per_s: f64,
    pub gpu_busy: f64,
    pub work: WorkShares,
    /// The kernel with the longest total, and its share of all kernel time.
    pub top_kernel: String,
    pub top_share: f64,
    /// How long a step takes, where it can be told.
    pub step_ns: Option<u64>,
    pub lost: u64,
    pub loses: bool,
    /// The snapshots are of this one.
    pub is_shown: bool,
}

impl Peer {
    pub fn new(key: u64, standing: Standing, snapshot: &Snapshot, step_ns: Option<u64>) -> Peer {
        let ordinals: Vec<u32> = snapshot.devices.iter().map(|device| device.device_id).collect();
        let top = snapshot.kernels.first();
        Peer {
            key,
            pid: snapshot.target.pid,
            gpus: standing.gpus(&ordinals),
            standing,
            command: snapshot.target.command.clone(),
            state: snapshot.target.state.clone(),
            alive: snapshot.target.alive,
            kernels_per_s: snapshot.kernels_per_s,
            gpu_busy: snapshot.gpu_busy,
            work: snapshot.work,
            top_kernel: top.map(|row| row.name.clone()).unwrap_or_default(),
            top_share: top.map_or(0.0, |row| row.share),
            step_ns,
            lost: loss::total(&snapshot.counts.lost),
            loses: loss::any(&snapshot.counts.lost),
            is_shown: false,
        }
    }

    /// As people call it: `rank 3`, or `pid 123`.
    pub fn label(&self) -> String {
        self.standing.rank.map_or_else(|| format!("pid {}", self.pid), |rank| format!("rank {rank}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_launcher_gives_the_rank() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            Standing::of(|name| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(of(&[("SLURM_PROCID", "1"), ("RANK", "13")]).rank, Some(13));
        assert_eq!(of(&[("RANK", "x"), ("LOCAL_RANK", "2")]).rank, Some(2));
        assert_eq!(of(&[]).rank, None);
        let standing = of(&[("CUDA_VISIBLE_DEVICES", "4,5,GPU-1")]);
        assert_eq!(standing.gpus(&[1, 2, 3]), "5,2,3", "a UUID says no number");
    }

    #[test]
    fn our_own_environment_can_be_read() {
        // The rank is nobody's here; reading must not fail.
        assert_eq!(Standing::of_pid(std::process::id()).host, "");
        assert_eq!(Standing::of_pid(0), Standing::default());
    }
}
