//! How things look: in which colours, and with which characters. Where no colours are wanted, with weight in their place.

use ratatui::style::{Color, Modifier, Style};

use super::glyphs;
use super::palette::{Background, Depth, Palette};

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub depth: Depth,
    pub background: Background,
    /// Draw nothing but ASCII.
    pub ascii: bool,
}

impl Theme {
    /// The terminal's own sixteen colours, or none.
    #[cfg(test)]
    pub const fn colored(colored: bool) -> Theme {
        let depth = if colored { Depth::Sixteen } else { Depth::None };
        Theme { depth, background: Background::Unknown, ascii: false }
    }

    /// A key as it is to be drawn. Nothing else needs care: what is drawn is translated as a whole.
    pub fn key(&self, name: &'static str) -> &'static str {
        glyphs::key(name, self.ascii)
    }

    pub fn accent(&self) -> Style {
        self.color(|palette| palette.accent)
    }

    pub fn good(&self) -> Style {
        self.color(|palette| palette.good)
    }

    pub fn warning(&self) -> Style {
        self.color(|palette| palette.warning)
    }

    /// Must be seen without colours too.
    pub fn bad(&self) -> Style {
        self.or(Modifier::REVERSED, |palette| Style::new().fg(palette.bad)).add_modifier(Modifier::BOLD)
    }

    pub fn faint(&self) -> Style {
        self.or(Modifier::DIM, |palette| Style::new().fg(palette.faint))
    }

    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn badge(&self) -> Style {
        self.selected().add_modifier(Modifier::BOLD)
    }

    /// For a whole line, in place of the styles of its parts.
    pub fn selected(&self) -> Style {
        self.or(Modifier::REVERSED, |palette| Style::new().fg(palette.on_accent).bg(palette.accent))
    }

    pub fn column_title(&self, sorted: bool) -> Style {
        if sorted {
            self.or(Modifier::UNDERLINED, |palette| Style::new().fg(palette.accent)).add_modifier(Modifier::BOLD)
        } else {
            self.faint()
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
            _ => self.color(|palette| palette.bad),
        }
    }

    fn color(&self, pick: fn(&Palette) -> Color) -> Style {
        self.palette().map_or(Style::new(), |palette| Style::new().fg(pick(palette)))
    }

    /// A style with colours, or a weight where there are none.
    fn or(&self, weight: Modifier, style: fn(&Palette) -> Style) -> Style {
        self.palette().map_or(Style::new().add_modifier(weight), style)
    }

    fn palette(&self) -> Option<&'static Palette> {
        Palette::of(self.depth, self.background)
    }
}
