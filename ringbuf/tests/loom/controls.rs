//! Each named memory order, taken away alone: the check that needs it has to fail.

use super::{control, directory, lane, status, store};
use gputap_ringbuf::sync::weakened;
use std::{collections::BTreeSet, panic, thread};

struct Control {
    file: &'static str,
    source: &'static str,
    /// The function that has the order; empty where the text alone names it.
    within: &'static str,
    /// Text that occurs on one line of the code there, with the order in it.
    order: &'static str,
    check: fn(),
}

/// Those that name orders.
const FILES: [&str; 9] = [
    "control/client.rs",
    "control/server.rs",
    "header/identity.rs",
    "header/status.rs",
    "lane/directory.rs",
    "lane/reader.rs",
    "lane/writer.rs",
    "store/reader.rs",
    "store/writer.rs",
];

macro_rules! control {
    ($file:literal, $order:literal, $check:path) => {
        control!($file in "", $order, $check)
    };
    ($file:literal in $within:literal, $order:literal, $check:path) => {
        Control {
            file: $file,
            source: include_str!(concat!("../../src/", $file)),
            within: $within,
            order: $order,
            check: $check,
        }
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
        control!("store/writer.rs", "slot::STATE, Ordering::Acquire) == READY", store::finding),
        control!("store/writer.rs", "slot::STATE, Ordering::Acquire) == READY", store::looking_up),
        control!("store/reader.rs", "slot::STATE, Ordering::Acquire)", store::publishing),
        control!("control/server.rs", "store(head::MAGIC, super::MAGIC, Ordering::Release)", control::opening),
        control!("control/client.rs", "load(head::MAGIC, Ordering::Acquire)", control::opening),
        control!("control/client.rs", "load(at, Ordering::Acquire)", control::waking),
        control!("control/client.rs", "compare_exchange(at, found, value, Ordering::Release)", control::waking),
        control!("control/client.rs", "compare_exchange(at, found, value, Ordering::Release)", control::commanding),
        control!("control/server.rs", "slot_word(slot, COMMAND), Ordering::Acquire)", control::commanding),
        control!("control/server.rs", "answer as u64, Ordering::Release)", control::answering),
        control!("control/client.rs", "slot_word(self.slot, ACK), Ordering::Acquire)", control::answering),
        control!("header/status.rs", "(reason as u64) << 16, Ordering::Release)", status::changing_state),
        control!("header/status.rs" in "set_text", "fence(Ordering::Release)", status::changing_text),
        control!("header/status.rs", "TEXT_SEQ), seq + 2, Ordering::Release)", status::changing_text),
        control!("header/status.rs", "word(status::TEXT_SEQ), Ordering::Acquire)", status::changing_text),
        control!("header/status.rs" in "read_text", "fence(Ordering::Acquire)", status::changing_text),
        control!("header/status.rs" in "add_clock_point", "fence(Ordering::Release)", status::adding_clock_points),
        control!("header/status.rs", "CLOCK_NEXT), next + 1, Ordering::Release)", status::adding_clock_points),
        control!("header/status.rs", "word(status::CLOCK_NEXT), Ordering::Acquire)", status::adding_clock_points),
        control!("header/status.rs" in "clock_points", "fence(Ordering::Acquire)", status::adding_clock_points),
        control!("header/identity.rs", "store(ident::MAGIC, MAGIC, Ordering::Release)", status::publishing),
        control!("header/identity.rs", "load(ident::MAGIC, Ordering::Acquire)", status::publishing),
    ]
}

/// The lines of code before a source's tests, each with its number and the function it is in.
fn code(source: &str) -> Vec<(u32, &str, &str)> {
    let code = source.split("#[cfg(all(test").next().unwrap();
    let mut function = "";
    (1..)
        .zip(code.lines())
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| {
            if let Some((_, named)) = line.split_once("fn ") {
                function = named.split(['(', '<']).next().unwrap();
            }
            (number, function, line)
        })
        .collect()
}

fn names_an_order(line: &str) -> bool {
    ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"].iter().any(|o| line.contains(o))
}

impl Control {
    /// The one line of the source that has the order.
    fn line(&self) -> u32 {
        let has_it = |function: &str, line: &str| {
            (self.within.is_empty() || self.within == function) && line.contains(self.order)
        };
        let found: Vec<u32> = code(self.source).into_iter().filter(|(_, f, l)| has_it(f, l)).map(|(n, ..)| n).collect();
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
    let orders: BTreeSet<_> = controls.iter().map(|control| (control.file, control.line())).collect();
    println!("{} controls of {} named orders ran; without its order each check failed", controls.len(), orders.len());
}

#[test]
fn every_order_in_the_sources_has_a_control() {
    let controls = controls();
    for file in FILES {
        let of_file: Vec<&Control> = controls.iter().filter(|c| c.file == file).collect();
        let lines: Vec<u32> = of_file.iter().map(|c| c.line()).collect();
        for (number, _, line) in code(of_file[0].source) {
            assert!(!names_an_order(line) || lines.contains(&number), "no control for: {file}: {}", line.trim());
        }
    }
}
