//! A whole run: open the driver, register the modules, let the threads step, synchronize, add up.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::driver::{Context, Driver, Function};
use crate::images::Plan;
use crate::progress::Progress;
use crate::report::JobReport;
use crate::spec::JobSpec;
use crate::thread_loop::{Counts, STREAMS, ThreadLoop};

#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("cannot use {} as a CUDA driver: {source}", path.display())]
    Load { path: PathBuf, source: libloading::Error },
    #[error("{call} failed with CUDA error {code}")]
    Driver { call: &'static str, code: u32 },
    #[error("a thread of the job panicked")]
    Panicked,
}

/// What the threads of a job share.
pub struct Shared<'a> {
    pub spec: &'a JobSpec,
    pub driver: &'a Driver,
    pub context: Context,
    pub plan: &'a Plan,
    /// For each kernel of a resident module: its handle and its module.
    pub resident: Vec<Option<(Function, usize)>>,
    /// Which cubins CUPTI was told of at least once.
    pub resident_loaded: Vec<AtomicBool>,
    pub churn_loaded: Vec<AtomicBool>,
    pub eager: bool,
    pub started: Instant,
    pub stop: &'a AtomicBool,
    pub failed: AtomicBool,
    pub progress: &'a Progress,
}

/// Runs the job until its limits or until `stop` is set, and waits for all that it launched.
pub fn run(spec: &JobSpec, stop: &AtomicBool) -> Result<JobReport, JobError> {
    run_with_progress(spec, stop, &Progress::new(spec.threads))
}

/// As [`run`], telling how far each thread is.
pub fn run_with_progress(spec: &JobSpec, stop: &AtomicBool, progress: &Progress) -> Result<JobReport, JobError> {
    let plan = Plan::new(spec);
    let (driver, context) = Driver::open(&spec.libcuda)?;
    driver.set_current(context)?;
    let shared = Shared {
        spec,
        driver: &driver,
        context,
        plan: &plan,
        resident: register(&driver, &plan)?,
        resident_loaded: flags(plan.resident.len()),
        churn_loaded: flags(plan.churn.len()),
        eager: std::env::var("CUDA_MODULE_LOADING").is_ok_and(|v| v.eq_ignore_ascii_case("EAGER")),
        started: Instant::now(),
        stop,
        failed: AtomicBool::new(false),
        progress,
    };
    let counts = step_all(&shared)?;
    driver.synchronize()?;
    Ok(report(&shared, &counts))
}

fn flags(n: usize) -> Vec<AtomicBool> {
    (0..n).map(|_| AtomicBool::new(false)).collect()
}

/// Hands the resident modules to the driver and looks their kernels up.
fn register(driver: &Driver, plan: &Plan) -> Result<Vec<Option<(Function, usize)>>, JobError> {
    let mut resident = vec![None; plan.kernels.len()];
    for (number, image) in plan.resident.iter().enumerate() {
        let module = driver.load_module(&image.bytes)?;
        for &kernel in &image.kernels {
            resident[kernel] = Some((driver.function(module, &plan.kernels[kernel].name)?, number));
        }
    }
    Ok(resident)
}

fn step_all(shared: &Shared) -> Result<Vec<Counts>, JobError> {
    std::thread::scope(|scope| {
        let start = |thread| {
            let name = format!("job-{thread}");
            std::thread::Builder::new().name(name).spawn_scoped(scope, move || ThreadLoop::run(shared, thread))
        };
        let threads: Vec<_> = (0..shared.spec.threads).map(start).collect();
        let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
            thread.map_err(|_| JobError::Panicked)?.join().map_err(|_| JobError::Panicked)?
        };
        threads.into_iter().map(join).collect()
    })
}

fn report(shared: &Shared, counts: &[Counts]) -> JobReport {
    let mut report = JobReport {
        threads: counts.len() as u64,
        streams: (counts.len() * STREAMS) as u64,
        elapsed_ns: shared.started.elapsed().as_nanos() as u64,
        ..JobReport::default()
    };
    for count in counts {
        for (kernel, &n) in shared.plan.kernels.iter().zip(&count.kernels).filter(|(_, n)| **n > 0) {
            *report.kernels_by_name.entry(kernel.name.clone()).or_default() += n;
            report.kernels += n;
        }
        report.host_to_device.merge(count.host_to_device);
        report.device_to_host.merge(count.device_to_host);
        report.device_to_device.merge(count.device_to_device);
        report.memsets.merge(count.memsets);
        report.module_loads += count.module_loads;
        report.loaded_bytes += count.loaded_bytes;
        report.steps += count.steps;
    }
    if shared.eager {
        // Registering loaded them; threads only count what their launches load.
        report.module_loads += shared.plan.resident.len() as u64;
        report.loaded_bytes += shared.plan.resident.iter().map(|image| image.bytes.len() as u64).sum::<u64>();
    }
    let resident = shared.plan.resident.iter().zip(&shared.resident_loaded);
    let churn = shared.plan.churn.iter().zip(&shared.churn_loaded);
    let seen = |(image, flag): (_, &AtomicBool)| flag.load(Ordering::Relaxed).then_some(image);
    for image in resident.filter_map(|(image, flag)| if shared.eager { Some(image) } else { seen((image, flag)) }) {
        report.modules += 1;
        report.cubin_bytes += image.bytes.len() as u64;
    }
    for image in churn.filter_map(seen) {
        report.modules += 1;
        report.cubin_bytes += image.bytes.len() as u64;
    }
    report
}
