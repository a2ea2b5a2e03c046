//! The library must answer to CUPTI's SONAME, so that one already mapped in the process is found by name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcupti.so.13");
}
