//! The memory in which a loading module's cubin is shown to CUPTI.
//!
//! Guarantees: it stays mapped for ever, and holds the cubin's bytes only between [`LoadArea::show`] and
//! [`LoadArea::spoil`]; afterwards every byte differs from the cubin's. A client that keeps the pointer reads rubbish,
//! and does not crash, as with the real driver.

const AREAS: usize = 3;

/// A few areas used in turn, each grown by doubling; an outgrown one is leaked, so that it stays mapped.
#[derive(Default)]
pub struct LoadArea {
    areas: [&'static mut [u8]; AREAS],
    turn: usize,
}

impl LoadArea {
    /// Copies `cubin` into the next area and returns where the copy lies.
    pub fn show(&mut self, cubin: &[u8]) -> *const u8 {
        self.turn = (self.turn + 1) % AREAS;
        let area = &mut self.areas[self.turn];
        if area.len() < cubin.len() {
            *area = Box::leak(vec![0; cubin.len().next_power_of_two()].into_boxed_slice());
        }
        area[..cubin.len()].copy_from_slice(cubin);
        area.as_ptr()
    }

    /// Makes the bytes of the last shown cubin of `size` bytes other bytes.
    pub fn spoil(&mut self, size: usize) {
        for byte in &mut self.areas[self.turn][..size] {
            *byte ^= 0xa5;
        }
    }
}
