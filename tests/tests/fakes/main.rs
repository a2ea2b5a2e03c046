//! The fakes behave as the real driver and CUPTI were measured to. Each test is a process of its own.

mod activity;
mod callbacks;
mod cuda;
mod cupti;
mod settings;
