//! What a user of gputap relies on, each on the built shim, through the fake driver, in processes of its own.

mod allocation;
mod app;
#[path = "../fakes/cuda.rs"]
#[allow(dead_code, reason = "shared with the tests of the fakes; each uses its part")]
mod cuda;
#[path = "../fakes/cupti.rs"]
#[allow(dead_code, reason = "as above")]
mod cupti;
mod job;
mod kinds;
#[path = "../fakes/nvtx_side.rs"]
mod nvtx_side;
mod reading;

mod commands;
mod exactness;
mod exit;
mod failures;
mod fork;
mod killed_job;
mod killed_reader;
mod late_attach;
mod leases;
mod life;
mod loader_lock;
mod timer;
mod two_readers;
