//! A simulated training job: drives a (fake) CUDA driver as a small GPT's training loop does, and counts what it did.
//!
//! Guarantees: the counts are the job's own, taken at its calls and independent of any tap; when [`run`] returns, all
//! that it launched has finished (`cuCtxSynchronize`); the same spec makes the same modules, byte for byte.
//!
//! A step, per thread: a batch copied to the device, gradients cleared, the kernels of forward, backward, all-reduce and
//! optimizer on several streams, the loss copied back. With [`JobSpec::load_churn`] each step also loads a module, launches
//! its kernels and unloads it.

mod catalog;
mod child;
mod context_churn;
mod cubin;
mod driver;
mod images;
mod job;
mod progress;
mod report;
mod spec;
mod thread_loop;

pub use child::{ChildLine, child};
pub use cubin::{CubinKernel, generate as generate_cubin};
pub use job::{JobError, run, run_with_progress};
pub use progress::Progress;
pub use report::{JobReport, Transfers};
pub use spec::{JobSpec, SpecError};
