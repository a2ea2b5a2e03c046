//! One thread of a job: steps, churn, pace, and its own counts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::catalog::ALL_REDUCE;
use crate::context_churn;
use crate::driver::{Function, Stream};
use crate::job::{JobError, Shared};
use crate::report::Transfers;

/// Streams a thread: compute, copies, communication.
pub const STREAMS: usize = 3;

const BATCH_BYTES: usize = 64 << 10;
const GRADIENT_BYTES: usize = 1 << 20;
const CHURN_LAUNCHES: usize = 3;
/// The pace is looked at after so many launches.
const PACE_EVERY: u64 = 8;
const SLICE: Duration = Duration::from_millis(20);

static BATCH: [u8; BATCH_BYTES] = [1; BATCH_BYTES];

/// What one thread did.
pub struct Counts {
    /// By the kernel's index in the plan.
    pub kernels: Vec<u64>,
    pub host_to_device: Transfers,
    pub device_to_host: Transfers,
    pub device_to_device: Transfers,
    pub memsets: Transfers,
    pub module_loads: u64,
    pub loaded_bytes: u64,
    pub steps: u64,
}

pub struct ThreadLoop<'a> {
    shared: &'a Shared<'a>,
    thread: usize,
    streams: [Stream; STREAMS],
    memory: u64,
    launched: u64,
    next_churn: usize,
    counts: Counts,
}

type Result<T> = std::result::Result<T, JobError>;

impl<'a> ThreadLoop<'a> {
    /// Steps until a limit is reached or the job is stopped. An error stops the other threads too.
    pub fn run(shared: &'a Shared<'a>, thread: usize) -> Result<Counts> {
        let result = Self::start(shared, thread).and_then(Self::step_to_the_end);
        if result.is_err() {
            shared.failed.store(true, Ordering::Relaxed);
        }
        shared.progress.ended(thread);
        result
    }

    fn start(shared: &'a Shared<'a>, thread: usize) -> Result<Self> {
        let driver = shared.driver;
        driver.set_current(shared.context)?;
        let streams = [driver.create_stream()?, driver.create_stream()?, driver.create_stream()?];
        // From here on the thread counts as started, and a standstill of its count as one of the job.
        shared.progress.moved(thread);
        Ok(Self {
            shared,
            thread,
            streams,
            memory: driver.allocate(GRADIENT_BYTES * 2)?,
            launched: 0,
            // Threads begin at different modules, so that they load different ones at a time.
            next_churn: thread * 5,
            counts: Counts {
                kernels: vec![0; shared.plan.kernels.len()],
                host_to_device: Transfers::default(),
                device_to_host: Transfers::default(),
                device_to_device: Transfers::default(),
                memsets: Transfers::default(),
                module_loads: 0,
                loaded_bytes: 0,
                steps: 0,
            },
        })
    }

    fn step_to_the_end(mut self) -> Result<Counts> {
        let spec = self.shared.spec;
        while !self.over() && (spec.steps == 0 || self.counts.steps < spec.steps) {
            self.step()?;
            if spec.load_churn {
                self.churn()?;
            }
            if spec.context_churn {
                context_churn::churn(self.shared.driver, self.shared.context)?;
                self.shared.progress.moved(self.thread);
            }
            self.counts.steps += 1;
            if spec.sync_every_steps != 0 && self.counts.steps.is_multiple_of(spec.sync_every_steps) {
                self.synchronize()?;
            }
        }
        self.synchronize()?;
        Ok(self.counts)
    }

    fn over(&self) -> bool {
        let (shared, limit) = (self.shared, self.shared.spec.seconds);
        shared.stop.load(Ordering::Relaxed)
            || shared.failed.load(Ordering::Relaxed)
            || (limit > 0.0 && shared.started.elapsed().as_secs_f64() >= limit)
    }

    /// Batch in, gradients cleared, kernels, loss out. Cut short when the job is over.
    fn step(&mut self) -> Result<()> {
        let (shared, [compute, copies, communication]) = (self.shared, self.streams);
        let driver = shared.driver;
        driver.copy_to_device(self.memory, &BATCH, BATCH_BYTES, copies)?;
        self.counts.host_to_device.add(BATCH_BYTES as u64);
        driver.clear(self.memory, GRADIENT_BYTES, compute)?;
        self.counts.memsets.add(GRADIENT_BYTES as u64);
        for &kernel in &shared.plan.step {
            let stream = if kernel == ALL_REDUCE { communication } else { compute };
            self.launch_resident(kernel, stream)?;
            if self.launched.is_multiple_of(PACE_EVERY) && !self.keep_pace() {
                return Ok(());
            }
        }
        driver.copy_on_device(self.memory + GRADIENT_BYTES as u64, self.memory, GRADIENT_BYTES, compute)?;
        self.counts.device_to_device.add(GRADIENT_BYTES as u64);
        driver.copy_scalar_to_host(self.memory, copies)?;
        self.counts.device_to_host.add(4);
        Ok(())
    }

    fn launch_resident(&mut self, kernel: usize, stream: Stream) -> Result<()> {
        let Some((function, module)) = self.shared.resident[kernel] else { return Ok(()) };
        self.launch(kernel, function, stream)?;
        // Only one thread sees the flag fall, whichever thread's launch loaded the module.
        let loaded = &self.shared.resident_loaded[module];
        if !loaded.load(Ordering::Relaxed) && !loaded.swap(true, Ordering::Relaxed) && !self.shared.eager {
            self.count_load(self.shared.plan.resident[module].bytes.len());
        }
        Ok(())
    }

    fn launch(&mut self, kernel: usize, function: Function, stream: Stream) -> Result<()> {
        self.shared.driver.launch(function, self.shared.plan.kernels[kernel].shape, stream)?;
        self.counts.kernels[kernel] += 1;
        self.launched += 1;
        self.shared.progress.moved(self.thread);
        Ok(())
    }

    /// Loads a module inside a launch, launches the rest of its kernels, unloads it.
    fn churn(&mut self) -> Result<()> {
        let shared = self.shared;
        let number = self.next_churn % shared.plan.churn.len();
        self.next_churn += 1;
        let image = &shared.plan.churn[number];
        let module = shared.driver.load_module(&image.bytes)?;
        for &kernel in &image.kernels {
            let function = shared.driver.function(module, &shared.plan.kernels[kernel].name)?;
            for _ in 0..CHURN_LAUNCHES {
                self.launch(kernel, function, self.streams[0])?;
            }
        }
        shared.churn_loaded[number].store(true, Ordering::Relaxed);
        self.count_load(image.bytes.len());
        shared.driver.synchronize_stream(self.streams[0])?;
        shared.driver.unload(module)?;
        shared.progress.moved(self.thread);
        Ok(())
    }

    fn count_load(&mut self, bytes: usize) {
        self.counts.module_loads += 1;
        self.counts.loaded_bytes += bytes as u64;
    }

    fn synchronize(&mut self) -> Result<()> {
        for stream in self.streams {
            self.shared.driver.synchronize_stream(stream)?;
            self.shared.progress.moved(self.thread);
        }
        Ok(())
    }

    /// Waits until the launches so far are due; false if the job is over.
    fn keep_pace(&self) -> bool {
        let rate = self.shared.spec.kernels_per_second as f64 / self.shared.spec.threads as f64;
        loop {
            if self.over() {
                return false;
            }
            let due = if rate > 0.0 { self.launched as f64 / rate } else { 0.0 };
            let ahead = due - self.shared.started.elapsed().as_secs_f64();
            if ahead < 0.001 {
                return true;
            }
            self.shared.progress.moved(self.thread);
            std::thread::park_timeout(SLICE.min(Duration::from_secs_f64(ahead)));
        }
    }
}
