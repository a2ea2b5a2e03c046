//! What the application takes from itself.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::linux::fs::MetadataExt;

/// The first number that is not used again by [`close_all`]: above those that the tap keeps its own at, where the
/// process may have as many.
const REUSED_TO: i32 = 1010;

/// Closes every descriptor but the first three, as a launcher does, and opens others under the numbers.
pub fn close_all() -> String {
    // SAFETY: no memory is passed; this program uses none of them.
    (3..4096).for_each(|fd| _ = unsafe { libc::close(fd) });
    while let Ok(file) = File::open("/dev/null") {
        if file.as_raw_fd() >= REUSED_TO {
            break;
        }
        _ = file.into_raw_fd();
    }
    String::from("ok")
}

/// How many of the descriptors that [`close_all`] opened are still what it opened.
pub fn still_open() -> String {
    let null = std::fs::metadata("/dev/null").expect("there").st_rdev();
    let is_null = |fd: &i32| {
        // SAFETY: zero is a valid stat.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `found` may be written.
        unsafe { libc::fstat(*fd, &raw mut found) == 0 && found.st_rdev == null }
    };
    (3..REUSED_TO).filter(is_null).count().to_string()
}

fn limit(what: u32, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: a whole limit.
    assert_eq!(unsafe { libc::setrlimit(what, &raw const limit) }, 0, "{}", std::io::Error::last_os_error());
}

/// Leaves room for so many more descriptors.
pub fn spare_descriptors(count: u64) -> String {
    let next = File::open("/dev/null").expect("a descriptor").as_raw_fd() as u64;
    limit(libc::RLIMIT_NOFILE, next + count);
    String::from("ok")
}

/// Leaves room for so many processes and threads of this user.
pub fn processes(count: u64) -> String {
    limit(libc::RLIMIT_NPROC, count);
    String::from("ok")
}

/// Gives up being root, in all threads.
pub fn become_user(uid: u64) -> String {
    let id = uid as u32;
    // SAFETY: no memory is passed.
    let refused = unsafe { libc::setgroups(0, std::ptr::null()) | libc::setgid(id) | libc::setuid(id) };
    assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
    String::from("ok")
}

/// Writes into a file until the file system is full; its size.
pub fn fill(path: &str) -> String {
    let mut file = File::create(path).expect("a file");
    for piece_bytes in [1 << 20, 4096] {
        while file.write_all(&vec![1; piece_bytes]).is_ok() {}
    }
    let size_bytes = file.metadata().expect("there").st_size();
    // SAFETY: a whole string.
    let room = unsafe {
        let mut room: libc::statvfs = std::mem::zeroed();
        let path = CString::new(path).expect("no NUL");
        assert_eq!(libc::statvfs(path.as_ptr(), &raw mut room), 0);
        room.f_bavail
    };
    assert_eq!(room, 0, "not full");
    size_bytes.to_string()
}
