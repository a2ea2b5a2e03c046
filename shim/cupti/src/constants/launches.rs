//! The callback ids of the driver's functions that launch work, in the DRIVER_API domain.
//!
//! The ids of every header from 11.8 to 13.5. Those of 13.1 to 13.3 (130300) have one more, for a graph's launch with
//! arguments (819), which later headers reserve without a name.
#![expect(non_upper_case_globals, reason = "NVIDIA's names")]

pub const DRIVER_TRACE_CBID_cuLaunch: u32 = 115;
pub const DRIVER_TRACE_CBID_cuLaunchGrid: u32 = 116;
pub const DRIVER_TRACE_CBID_cuLaunchGridAsync: u32 = 117;
pub const DRIVER_TRACE_CBID_cuLaunchKernel: u32 = 307;
/// `_ptsz`: built so that the default stream is the calling thread's own.
pub const DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: u32 = 442;
pub const DRIVER_TRACE_CBID_cuLaunchCooperativeKernel: u32 = 477;
pub const DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: u32 = 478;
pub const DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice: u32 = 480;
pub const DRIVER_TRACE_CBID_cuGraphLaunch: u32 = 514;
pub const DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: u32 = 515;
pub const DRIVER_TRACE_CBID_cuLaunchKernelEx: u32 = 652;
pub const DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: u32 = 653;

/// Every id above: `cuptiEnableCallback` takes one at a time.
pub const DRIVER_LAUNCHES: [u32; 12] = [
    DRIVER_TRACE_CBID_cuLaunch,
    DRIVER_TRACE_CBID_cuLaunchGrid,
    DRIVER_TRACE_CBID_cuLaunchGridAsync,
    DRIVER_TRACE_CBID_cuLaunchKernel,
    DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
    DRIVER_TRACE_CBID_cuGraphLaunch,
    DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    DRIVER_TRACE_CBID_cuLaunchKernelEx,
    DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
];
