//! The fakes behave as the real driver and CUPTI were measured to. Each test is a process of its own.

mod activity;
mod callbacks;
mod calls;
mod contexts;
mod cuda;
mod cupti;
mod damage;
mod driver_lock;
mod graphs;
mod host;
mod lock_watch;
mod nvtx;
mod nvtx_side;
mod settings;
