//! Which kernels a job launches and in which modules they lie.

use crate::catalog::{self, KERNELS};
use crate::cubin::{self, CubinKernel};
use crate::driver::Shape;
use crate::spec::JobSpec;

/// Kernels of a module that the churn loads.
pub const CHURN_KERNELS: usize = 4;

pub struct JobKernel {
    pub name: String,
    pub shape: Shape,
    duration_ns: u64,
    registers: u32,
    static_shared_bytes: u32,
}

/// A cubin, and its kernels by their index in [`Plan::kernels`].
pub struct Image {
    pub bytes: Vec<u8>,
    pub kernels: Vec<usize>,
}

pub struct Plan {
    pub kernels: Vec<JobKernel>,
    /// Modules that stay loaded.
    pub resident: Vec<Image>,
    /// Modules that come and go.
    pub churn: Vec<Image>,
    /// A step's launches, in order.
    pub step: Vec<usize>,
}

impl Plan {
    pub fn new(spec: &JobSpec) -> Self {
        let scale = time_scale(spec);
        let mut plan = Self {
            kernels: KERNELS.iter().map(|kernel| catalog_kernel(kernel, scale)).collect(),
            resident: Vec::new(),
            churn: Vec::new(),
            step: catalog::step(spec.layers),
        };
        for module in 0..spec.modules {
            let mut kernels: Vec<_> = (0..KERNELS.len()).filter(|kernel| kernel % spec.modules == module).collect();
            if kernels.is_empty() {
                kernels.push(plan.made_up(&format!("fused_kernel_{module}"), 14_000, scale));
                plan.step.extend(&kernels);
            }
            let image = plan.image(spec, module as u64, kernels);
            plan.resident.push(image);
        }
        for module in 0..if spec.load_churn { spec.churn_images } else { 0 } {
            let name = |k: usize| format!("lazy_kernel_{module}_{k}");
            let kernels = (0..CHURN_KERNELS).map(|k| plan.made_up(&name(k), 3_000, scale)).collect();
            let image = plan.image(spec, 1 << 32 | module as u64, kernels);
            plan.churn.push(image);
        }
        plan
    }

    /// Adds a kernel `void name(float*, int)`.
    fn made_up(&mut self, name: &str, duration_ns: u64, scale: f64) -> usize {
        self.kernels.push(JobKernel {
            name: format!("_Z{}{name}Pfi", name.len()),
            shape: Shape { grid: [64, 1, 1], block: 256, shared_bytes: 0 },
            duration_ns: scaled(duration_ns, scale),
            registers: 24,
            static_shared_bytes: 0,
        });
        self.kernels.len() - 1
    }

    fn image(&self, spec: &JobSpec, number: u64, kernels: Vec<usize>) -> Image {
        let seed = mixed(spec.seed ^ mixed(number));
        // Sizes spread evenly over the orders of magnitude, as real modules do.
        let (min, max) = (spec.module_bytes_min.max(1) as f64, spec.module_bytes_max.max(1) as f64);
        let size = min * (max / min).powf((seed >> 40) as f64 / f64::from(1 << 24));
        let of = |&index: &usize| {
            let kernel: &JobKernel = &self.kernels[index];
            CubinKernel {
                name: kernel.name.clone(),
                duration_ns: kernel.duration_ns,
                registers: kernel.registers,
                static_shared_bytes: kernel.static_shared_bytes,
            }
        };
        let described: Vec<_> = kernels.iter().map(of).collect();
        Image { bytes: cubin::generate(seed, &described, size as usize), kernels }
    }
}

fn catalog_kernel(kernel: &catalog::Kernel, scale: f64) -> JobKernel {
    JobKernel {
        name: kernel.name.to_owned(),
        shape: Shape { grid: kernel.grid, block: kernel.block, shared_bytes: kernel.dynamic_shared_bytes },
        duration_ns: scaled(kernel.duration_ns, scale),
        registers: kernel.registers,
        static_shared_bytes: kernel.static_shared_bytes,
    }
}

/// What the durations are multiplied with, so that the simulated GPU can keep up with the rate.
fn time_scale(spec: &JobSpec) -> f64 {
    const BUSY: f64 = 0.7;
    const UNBOUNDED: f64 = 0.01;
    match (spec.time_scale, spec.kernels_per_second) {
        (scale, _) if scale > 0.0 => scale,
        (_, 0) => UNBOUNDED,
        (_, rate) => {
            let room_ns = BUSY * 1e9 * spec.threads as f64 / rate as f64;
            (room_ns / catalog::mean_duration_ns(spec.layers)).min(1.0)
        }
    }
}

fn scaled(duration_ns: u64, scale: f64) -> u64 {
    ((duration_ns as f64 * scale) as u64).max(200)
}

/// SplitMix64's finalizer.
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
