//! What a script does to records before they are laid down.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use crate::draft::Draft;
use crate::settings::{Every, settings};

/// How long the long name is, NUL excluded.
pub const LONG_NAME_BYTES: usize = 512 << 10;

/// Changes the record with this number (from 1) as the settings say.
pub fn damage(draft: &mut Draft, number: u64) {
    let script = &settings().damage;
    let now = |every: Every| every.hits(number);
    if now(script.reverse_times) {
        draft.reverse_times();
    }
    if now(script.zero_times) {
        draft.clear_times();
    }
    if now(script.null_name) {
        draft.rename(std::ptr::null());
    }
    if now(script.long_name) {
        draft.rename(long_name());
    }
    if now(script.alien_kind) {
        draft.become_alien();
    }
}

/// One mangled name of half a megabyte, made at its first use.
fn long_name() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    let name = NAME.get_or_init(|| {
        let (head, tail) = ("_Z4longI", "EvT_");
        let arguments = "Lj7E".repeat((LONG_NAME_BYTES - head.len() - tail.len()) / 4);
        CString::new(format!("{head}{arguments}{tail}")).unwrap_or_default()
    });
    CStr::as_ptr(name)
}
