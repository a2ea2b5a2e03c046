//! Bytes that are or are not a cubin: a value or an error, and no more memory than the bytes justify.
#![no_main]

use gputap_reader::symbols::{Cubin, cubin::Lines, cubin::MAX_FUNCTIONS, demangle, demangle::NAME_MAX_BYTES};
use libfuzzer_sys::fuzz_target;

/// Names that are made readable, as a module's row does with its first ones.
const ROW_FUNCTIONS: usize = 4;

fuzz_target!(|input: &[u8]| {
    let cubin = match Cubin::parse(input) {
        Ok(cubin) => cubin,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(cubin.functions.len() <= MAX_FUNCTIONS && cubin.functions.len() as u64 <= cubin.function_count);
    let named_bytes: usize = cubin.functions.iter().map(Vec::len).sum();
    assert!(named_bytes <= 2 * input.len(), "{named_bytes} bytes of names out of {}", input.len());
    assert!(cubin.kernels.len() <= cubin.functions.len());
    for lines in [Lines::of(input), Lines::of_ptx(input)].into_iter().flatten() {
        let _ = cubin.kernels.iter().take(ROW_FUNCTIONS).map(|kernel| lines.at(&kernel.name, 0)).count();
    }
    for name in cubin.functions.iter().take(ROW_FUNCTIONS) {
        assert!(demangle(name).len() <= NAME_MAX_BYTES + '…'.len_utf8());
    }
});
