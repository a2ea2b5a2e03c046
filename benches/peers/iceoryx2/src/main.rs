//! One round of iceoryx2's publish/subscribe between two ports: `iceoryx2-round BYTES idle|draining`.
//!
//! Prints the publisher's nanoseconds per sample: loan, write the payload, send. The one subscriber is idle, so that
//! the publisher overwrites the oldest samples, or receives all the time in a thread of its own.

use core::mem::MaybeUninit;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::prelude::*;
use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Samples a round, in batches whose median is the round: as benches/ring measures its own.
const BATCHES: usize = 50;
/// What the subscriber's queue holds in bytes, at most: as much as a lane.
const QUEUE_BYTES: usize = 8 << 20;
const QUEUE_MAX_SAMPLES: usize = 1024;

fn main() -> Result<()> {
    set_log_level(LogLevel::Error);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let draining = match arguments.get(1).map(String::as_str) {
        Some("idle") => false,
        Some("draining") => true,
        _ => return Err("usage: iceoryx2-round 64|65536 idle|draining".into()),
    };
    let ns = match arguments[0].as_str() {
        "64" => round::<8>(20_000, draining)?,
        "65536" => round::<8192>(200, draining)?,
        _ => return Err("usage: iceoryx2-round 64|65536 idle|draining".into()),
    };
    println!("{ns:.2}");
    Ok(())
}

fn round<const WORDS: usize>(batch: usize, draining: bool) -> Result<f64> {
    let name = format!("gputap-bench-{}", std::process::id());
    let queue_samples = (QUEUE_BYTES / (WORDS * 8)).min(QUEUE_MAX_SAMPLES);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node
        .service_builder(&name.as_str().try_into()?)
        .publish_subscribe::<[u64; WORDS]>()
        .enable_safe_overflow(true)
        .history_size(0)
        .subscriber_max_buffer_size(queue_samples)
        .create()?;
    let publisher = service.publisher_builder().create()?;
    if draining {
        return beside_a_receiver(&name, &publisher, batch);
    }
    let _subscriber = service.subscriber_builder().create()?;
    publish(&publisher, batch)
}

/// Ports belong to the thread that made them: the receiver opens the service for itself.
fn beside_a_receiver<const WORDS: usize>(
    name: &str,
    publisher: &Publisher<ipc::Service, [u64; WORDS], ()>,
    batch: usize,
) -> Result<f64> {
    let (ready, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive::<WORDS>(name, &ready, &ended));
        while !ready.load(Ordering::Acquire) && !receiver.is_finished() {
            std::thread::yield_now();
        }
        let ns = publish(publisher, batch);
        ended.store(true, Ordering::Release);
        receiver.join().map_err(|_| "the receiver panicked")??;
        ns
    })
}

fn receive<const WORDS: usize>(name: &str, ready: &AtomicBool, ended: &AtomicBool) -> Result<()> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node.service_builder(&name.try_into()?).publish_subscribe::<[u64; WORDS]>().open()?;
    let subscriber = service.subscriber_builder().create()?;
    ready.store(true, Ordering::Release);
    while !ended.load(Ordering::Acquire) {
        while let Some(sample) = subscriber.receive()? {
            black_box(sample.payload()[0]);
        }
    }
    Ok(())
}

fn publish<const WORDS: usize>(publisher: &Publisher<ipc::Service, [u64; WORDS], ()>, batch: usize) -> Result<f64> {
    let from = [7u64; WORDS];
    let mut batches = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..batch {
            let mut sample = publisher.loan_uninit()?;
            write(sample.payload_mut(), black_box(&from));
            // SAFETY: `write` has initialized all of the payload.
            let sample = unsafe { sample.assume_init() };
            sample.send()?;
        }
        batches.push(start.elapsed().as_nanos() as f64 / batch as f64);
    }
    batches.sort_by(f64::total_cmp);
    Ok(batches[BATCHES / 2])
}

/// In place: by value, 64 KiB would be copied twice.
fn write<const WORDS: usize>(to: &mut MaybeUninit<[u64; WORDS]>, from: &[u64; WORDS]) {
    // SAFETY: both are WORDS words, aligned, and a loan does not overlap anything of ours.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), 1) };
}
