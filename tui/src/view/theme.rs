//! Colours. Only the sixteen of the terminal's own palette, which its owner has made readable on their background,
//! light or dark; and none where none are wanted, with weight in their place.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub colored: bool,
}

impl Theme {
    pub fn accent(&self) -> Style {
        self.color(Color::Cyan)
    }

    pub fn good(&self) -> Style {
        self.color(Color::Green)
    }

    pub fn warning(&self) -> Style {
        self.color(Color::Yellow)
    }

    /// Must be seen without colours too.
    pub fn bad(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colored { style.fg(Color::Red) } else { style.add_modifier(Modifier::REVERSED) }
    }

    pub fn faint(&self) -> Style {
        if self.colored { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn badge(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colored { style.fg(Color::Black).bg(Color::Cyan) } else { style.add_modifier(Modifier::REVERSED) }
    }

    /// For a whole line, in place of the styles of its parts.
    pub fn selected(&self) -> Style {
        if self.colored {
            Style::new().fg(Color::Black).bg(Color::Cyan)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    pub fn column_title(&self, sorted: bool) -> Style {
        match (sorted, self.colored) {
            (true, true) => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
            (true, false) => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (false, _) => self.faint(),
        }
    }

    /// By the words of `Target::state`.
    pub fn state(&self, state: &str) -> Style {
        match state {
            "recording" | "black box" => self.good().add_modifier(Modifier::BOLD),
            "off" => self.bad(),
            "yielded" | "starting" | "waiting" => self.warning().add_modifier(Modifier::BOLD),
            _ => self.strong(),
        }
    }

    /// Of a share of busy time: idle silicon is what a person looks for.
    pub fn busy(&self, share: f64) -> Style {
        match share {
            share if share >= 0.8 => self.good(),
            share if share >= 0.3 => self.warning(),
            _ => self.color(Color::Red),
        }
    }

    fn color(&self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }
}
