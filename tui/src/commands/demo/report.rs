//! What a demo says of itself as JSON.

use std::collections::BTreeMap;

use gputap_reader::model::snapshot::{KernelRow, Snapshot};
use gputap_sim_job::JobReport;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Summary {
    /// Kernels, copies and memsets as the job itself counted them, outside the segment.
    pub generated: u64,
    /// The same, as far as the shim heard of them.
    pub attempted: u64,
    pub delivered: u64,
    /// By reason.
    pub lost: BTreeMap<String, u64>,
    /// Reasons whose count is incomplete.
    pub lost_unknown: Vec<String>,
    pub pending: u64,
    pub flagged_times: u64,
    /// Generated and never heard of by the shim: 0, unless a reason is in `lost_unknown`.
    pub unheard: u64,
    /// generated = attempted = delivered + lost.
    pub adds_up: bool,
    /// By mangled name.
    pub kernels: BTreeMap<String, Kernel>,
    /// Distinct cubins that were read, and their bytes.
    pub modules: u64,
    pub cubin_bytes: u64,
    pub crcs: Vec<Crc>,
    /// The job's own counts in full.
    pub job: JobReport,
    pub state: String,
    pub reason: String,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Kernel {
    pub name: String,
    pub calls: u64,
    pub total_ns: u64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

#[derive(Debug, Serialize)]
pub struct Crc {
    pub size_bytes: u64,
    pub loads: u64,
    pub crc32: Option<u32>,
    pub cupti_crc: Option<u64>,
    /// Why `cupti_crc` is absent.
    pub cupti_crc_reason: String,
}

impl Summary {
    pub fn new(job: &JobReport, snapshot: &Snapshot) -> Summary {
        let transfers = [job.host_to_device, job.device_to_host, job.device_to_device, job.memsets];
        let generated = job.kernels + transfers.iter().map(|transfers| transfers.count).sum::<u64>();
        let counts = &snapshot.counts;
        let lost_total = crate::text::loss::total(&counts.lost);
        let accounted = counts.attempted == counts.delivered.saturating_add(lost_total);
        Summary {
            generated,
            attempted: counts.attempted,
            delivered: counts.delivered,
            lost: counts.lost.iter().map(|lost| (lost.reason.clone(), lost.count)).collect(),
            lost_unknown: counts.lost.iter().filter(|lost| lost.unknown).map(|lost| lost.reason.clone()).collect(),
            pending: counts.pending,
            flagged_times: counts.flagged_times,
            unheard: generated.saturating_sub(counts.attempted),
            adds_up: accounted && generated == counts.attempted,
            kernels: snapshot.kernels.iter().map(kernel).collect(),
            modules: snapshot.module_counts.stored,
            cubin_bytes: snapshot.module_counts.bytes,
            crcs: snapshot.modules.iter().map(crc).collect(),
            job: job.clone(),
            state: snapshot.target.state.clone(),
            reason: snapshot.target.reason.clone(),
            notes: snapshot.notes.clone(),
        }
    }
}

impl Summary {
    /// What is wrong with the figures, in words; nothing where they add up.
    pub fn complaint(&self) -> Option<String> {
        let reasons = self.lost_unknown.join(", ");
        match self {
            Summary { adds_up: true, .. } => None,
            Summary { unheard: 1.., .. } if !reasons.is_empty() => Some(format!(
                "{} records were lost without a count ({reasons}): the job is too fast for the buffers that CUPTI gets",
                crate::text::grouped(self.unheard)
            )),
            _ => Some("the figures do not add up: generated = attempted = delivered + lost should hold".to_owned()),
        }
    }
}

fn kernel(row: &KernelRow) -> (String, Kernel) {
    let key = if row.mangled.is_empty() { &row.name } else { &row.mangled };
    let kernel = Kernel {
        name: row.name.clone(),
        calls: row.calls,
        total_ns: row.total_ns,
        mean_ns: row.mean_ns,
        min_ns: row.min_ns,
        max_ns: row.max_ns,
        p50_ns: row.p50_ns,
        p99_ns: row.p99_ns,
    };
    (key.clone(), kernel)
}

fn crc(row: &gputap_reader::model::snapshot::ModuleRow) -> Crc {
    Crc {
        size_bytes: row.size_bytes,
        loads: row.loads,
        crc32: row.crc32,
        cupti_crc: row.cupti_crc,
        cupti_crc_reason: row.cupti_crc_reason.clone(),
    }
}
