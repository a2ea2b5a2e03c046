//! Each named memory order, taken away alone: the check that needs it has to fail.

use super::{directory, lane, store};
use gputap_ringbuf::sync::weakened;
use std::{panic, thread};

struct Control {
    file: &'static str,
    source: &'static str,
    /// Text that occurs on one line of the code, with the order in it.
    order: &'static str,
    check: fn(),
}

macro_rules! control {
    ($file:literal, $order:literal, $check:path) => {
        Control { file: $file, source: include_str!(concat!("../../src/", $file)), order: $order, check: $check }
    };
}

fn controls() -> Vec<Control> {
    vec![
        control!("lane/writer.rs", "fence(Ordering::Release)", lane::lapping),
        control!("lane/writer.rs", "store(header::TAIL, end, Ordering::Release)", lane::following),
        control!("lane/reader.rs", "fence(Ordering::Acquire)", lane::lapping),
        control!("lane/reader.rs", "load(header::TAIL, Ordering::Acquire)", lane::following),
        control!("lane/directory.rs", "compare_exchange(owner, FREE, thread, Ordering::Acquire", directory::reserving),
        control!("lane/directory.rs", "slot::OWNER, FREE, Ordering::Release)", directory::reserving),
        control!("lane/directory.rs", "slot::BUSY, from, to, Ordering::Acquire", directory::handing_over),
        control!("lane/directory.rs", "slot::BUSY, IDLE, Ordering::Release)", directory::handing_over),
        control!("store/writer.rs", "load(control::RESERVED_BYTES, Ordering::Acquire)", store::reserving),
        control!(
            "store/writer.rs",
            "store(control::RESERVED_BYTES, reserved_bytes, Ordering::Release)",
            store::reserving
        ),
        control!("store/writer.rs", "slot::STATE, READY, Ordering::Release)", store::publishing),
        control!("store/writer.rs", "(*slot as usize * SLOT_WORDS + slot::STATE, Ordering::Acquire)", store::finding),
        control!(
            "store/writer.rs",
            "let ready = self.slots.load(slot as usize * SLOT_WORDS + slot::STATE, Ordering::Acquire)",
            store::looking_up
        ),
        control!("store/reader.rs", "slot::STATE, Ordering::Acquire)", store::publishing),
    ]
}

fn is_code(line: &str) -> bool {
    !line.trim_start().starts_with("//")
}

fn names_an_order(line: &str) -> bool {
    ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"].iter().any(|o| line.contains(o))
}

impl Control {
    /// The one line of the source that has the order.
    fn line(&self) -> u32 {
        let has_it = |line: &str| is_code(line) && line.contains(self.order);
        let found: Vec<u32> = (1..).zip(self.source.lines()).filter(|(_, l)| has_it(l)).map(|(n, _)| n).collect();
        assert_eq!(found.len(), 1, "{} has `{}` once", self.file, self.order);
        found[0]
    }

    /// How the check fails without the order, if it does, and how often the weakened line ran.
    fn run(&self) -> (Option<String>, u64) {
        let (file, line, check) = (self.file, self.line(), self.check);
        let run = move || {
            weakened::weaken(file, line);
            let failure = panic::catch_unwind(check).err().map(|payload| {
                let text = payload.downcast_ref::<String>().cloned();
                text.or(payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
            });
            (failure, weakened::hits())
        };
        thread::Builder::new().name("control".into()).spawn(run).unwrap().join().unwrap()
    }
}

#[test]
fn without_any_one_order_the_check_fails() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // A control's failure is what is wanted.
        if thread::current().name() != Some("control") {
            loud(info);
        }
    }));
    let controls = controls();
    for control in &controls {
        let (failure, hits) = control.run();
        assert!(hits > 0, "{}: `{}` never ran", control.file, control.order);
        let failure = failure.unwrap_or_else(|| panic!("{}: nothing needs `{}`", control.file, control.order));
        println!("{}: without `{}`: {}", control.file, control.order, failure.replace('\n', " "));
        assert!(failure.contains("assertion"), "the check itself failed, not loom");
    }
    println!("{} controls ran, one for each named order; without it each check failed", controls.len());
}

#[test]
fn every_order_in_the_sources_has_a_control() {
    let controls = controls();
    for file in ["lane/writer.rs", "lane/reader.rs", "lane/directory.rs", "store/writer.rs", "store/reader.rs"] {
        let of_file: Vec<&Control> = controls.iter().filter(|c| c.file == file).collect();
        let source = of_file[0].source.split("#[cfg(all(test").next().unwrap();
        for line in source.lines().filter(|l| is_code(l) && names_an_order(l)) {
            assert!(of_file.iter().any(|c| line.contains(c.order)), "no control for: {file}: {}", line.trim());
        }
    }
}
