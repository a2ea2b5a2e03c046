//! Lines on stderr, made on the stack and written by one system call: this runs inside callbacks.

use std::fmt::{self, Write};

pub fn taken(kind: &str, lock: usize, mask: u32) {
    let held = ["nothing", "the driver lock", "the buffers' lock", "the driver lock and the buffers'"];
    let held = held[mask as usize & 3];
    line(format_args!("lock-watch: taken {kind} {lock:#x} while {held} is held\n"));
}

pub fn cycle(lock: usize) {
    line(format_args!("lock-watch: cycle {lock:#x}: held while waiting for CUPTI's worker, and taken in a callback\n"));
}

pub fn sum(callbacks: u64, taken: u64, waits: u64, cycles: u64) {
    line(format_args!("lock-watch: {callbacks} callbacks, {taken} taken, {waits} waits, {cycles} cycles\n"));
}

struct Line {
    bytes: [u8; 200],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let kept = text.len().min(room.len());
        room[..kept].copy_from_slice(&text.as_bytes()[..kept]);
        self.used += kept;
        Ok(())
    }
}

fn line(text: fmt::Arguments) {
    let mut line = Line { bytes: [0; 200], used: 0 };
    let _ = line.write_fmt(text);
    // SAFETY: `used` bytes of the array are readable. Whether somebody reads is not our business.
    unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.used) };
}
