//! The terminal: what it can do, and that it is given back as it was found, on every way out.

use std::io::{self, IsTerminal, stdin, stdout};
use std::mem::ManuallyDrop;

use ratatui::DefaultTerminal;
use ratatui::crossterm::{cursor, execute, style};

use crate::abilities;
use crate::cli::Look;
use crate::error::{Error, Result};
use crate::view::{Depth, Theme};

/// Whether a live view can be drawn here; if not, plain lines are printed.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal() && !abilities::is_dumb(&abilities::environment)
}

/// How to draw here, as far as nobody has said it.
pub fn theme(look: &Look) -> Theme {
    let theme = abilities::theme(look, &abilities::environment);
    style::force_color_output(theme.depth != Depth::None);
    theme
}

/// Raw mode and the alternate screen, until dropped; a panic restores them too, before its message is printed.
pub struct Screen {
    /// Its own end would show the cursor, which ours does, and panic where the terminal is gone.
    pub terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    pub fn take() -> Result<Screen> {
        let terminal = ratatui::try_init().map_err(Error::Terminal)?;
        Ok(Screen { terminal: ManuallyDrop::new(terminal) })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the terminal is gone, nobody is left to tell.
        let _: io::Result<()> = ratatui::try_restore();
        let _: io::Result<()> = execute!(stdout(), cursor::Show);
    }
}
