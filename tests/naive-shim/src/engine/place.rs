//! The callback in which the lock is taken.

/// By what happens in the application.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    ModuleLoad,
    ModuleUnload,
    ContextCreate,
    ContextDestroy,
    Launch,
    Synchronize,
}

impl Place {
    pub fn from_env() -> Result<Self, String> {
        let Ok(name) = std::env::var("NAIVE_CALLBACK") else { return Ok(Self::ModuleLoad) };
        Ok(match name.as_str() {
            "module_load" => Self::ModuleLoad,
            "module_unload" => Self::ModuleUnload,
            "context_create" => Self::ContextCreate,
            "context_destroy" => Self::ContextDestroy,
            "launch" => Self::Launch,
            "synchronize" => Self::Synchronize,
            other => return Err(format!("NAIVE_CALLBACK is {other:?}")),
        })
    }

    /// CUPTI's domains and callback ids.
    pub fn ids(self) -> &'static [(u32, u32)] {
        match self {
            Self::ContextCreate => &[(3, 1)],
            Self::ContextDestroy => &[(3, 2)],
            Self::ModuleLoad => &[(3, 6)],
            Self::ModuleUnload => &[(3, 7)],
            // cuLaunchKernel, cuLaunchCooperativeKernel, cuGraphLaunch, cuLaunchKernelEx.
            Self::Launch => &[(1, 307), (1, 477), (1, 514), (1, 652)],
            // Of a stream, of a context.
            Self::Synchronize => &[(4, 1), (4, 2)],
        }
    }
}
