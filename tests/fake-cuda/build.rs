//! The library must answer to the driver's SONAME, so that a CUPTI finds it by that name in the process.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
