//! The live view: snapshots in, a picture and the wishes of the one who looks at it out.

mod draw;
pub mod glyphs;
mod happened;
mod input;
mod layout;
mod order;
mod pages;
mod palette;
mod panes;
mod run;
mod slowest;
mod state;
mod theme;

pub use palette::{Background, Depth};
pub use run::{Leaving, Options, run};
pub use theme::Theme;
