//! `CUptiResult` codes.

pub type CuptiResult = u32;

pub const SUCCESS: CuptiResult = 0;
pub const INVALID_PARAMETER: CuptiResult = 1;
pub const INVALID_CONTEXT: CuptiResult = 3;
pub const INVALID_OPERATION: CuptiResult = 7;
pub const PARAMETER_SIZE_NOT_SUFFICIENT: CuptiResult = 10;
pub const MAX_LIMIT_REACHED: CuptiResult = 12;
pub const NOT_INITIALIZED: CuptiResult = 15;
pub const INVALID_STREAM: CuptiResult = 20;
pub const INVALID_KIND: CuptiResult = 21;
pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: CuptiResult = 39;

/// The name that `cuptiGetResultString` gives a code.
pub fn name(code: CuptiResult) -> Option<&'static std::ffi::CStr> {
    Some(match code {
        SUCCESS => c"CUPTI_SUCCESS",
        INVALID_PARAMETER => c"CUPTI_ERROR_INVALID_PARAMETER",
        2 => c"CUPTI_ERROR_INVALID_DEVICE",
        INVALID_CONTEXT => c"CUPTI_ERROR_INVALID_CONTEXT",
        INVALID_OPERATION => c"CUPTI_ERROR_INVALID_OPERATION",
        8 => c"CUPTI_ERROR_OUT_OF_MEMORY",
        PARAMETER_SIZE_NOT_SUFFICIENT => c"CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
        11 => c"CUPTI_ERROR_API_NOT_IMPLEMENTED",
        MAX_LIMIT_REACHED => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        13 => c"CUPTI_ERROR_NOT_READY",
        14 => c"CUPTI_ERROR_NOT_COMPATIBLE",
        NOT_INITIALIZED => c"CUPTI_ERROR_NOT_INITIALIZED",
        INVALID_STREAM => c"CUPTI_ERROR_INVALID_STREAM",
        INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        27 => c"CUPTI_ERROR_NOT_SUPPORTED",
        33 => c"CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
        35 => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        999 => c"CUPTI_ERROR_UNKNOWN",
        _ => return None,
    })
}
