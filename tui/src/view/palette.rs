//! Which colours there are for what is drawn. The sixteen of the terminal's own palette, which its owner has made
//! readable on their background; chosen ones only where the background is known and there are enough to choose from.

use ratatui::style::Color;

/// In the order of how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    None,
    Sixteen,
    /// The 6×6×6 cube and its greys, the same on every terminal.
    Indexed,
    Rgb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Unknown,
    Dark,
    Light,
}

/// A colour for each thing that is to be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    pub accent: Color,
    pub good: Color,
    pub warning: Color,
    pub bad: Color,
    pub faint: Color,
    /// Written on a ground of `accent`.
    pub on_accent: Color,
}

impl Palette {
    /// `None` where there are no colours.
    pub fn of(depth: Depth, background: Background) -> Option<&'static Palette> {
        match (depth, background) {
            (Depth::None, _) => None,
            (Depth::Sixteen, Background::Light) => Some(&SIXTEEN_ON_LIGHT),
            (Depth::Sixteen, _) | (_, Background::Unknown) => Some(&SIXTEEN),
            (Depth::Indexed, Background::Dark) => Some(&INDEXED_ON_DARK),
            (Depth::Indexed, Background::Light) => Some(&INDEXED_ON_LIGHT),
            (Depth::Rgb, Background::Dark) => Some(&RGB_ON_DARK),
            (Depth::Rgb, Background::Light) => Some(&RGB_ON_LIGHT),
        }
    }
}

const SIXTEEN: Palette = Palette {
    accent: Color::Cyan,
    good: Color::Green,
    warning: Color::Yellow,
    bad: Color::Red,
    faint: Color::DarkGray,
    on_accent: Color::Black,
};

/// Without cyan and yellow, which palettes made for dark grounds have too bright for white.
const SIXTEEN_ON_LIGHT: Palette = Palette {
    accent: Color::Blue,
    good: Color::Green,
    warning: Color::Magenta,
    bad: Color::Red,
    faint: Color::DarkGray,
    on_accent: Color::White,
};

const INDEXED_ON_DARK: Palette = Palette {
    accent: Color::Indexed(80),
    good: Color::Indexed(113),
    warning: Color::Indexed(221),
    bad: Color::Indexed(210),
    faint: Color::Indexed(246),
    on_accent: Color::Indexed(16),
};

const INDEXED_ON_LIGHT: Palette = Palette {
    accent: Color::Indexed(24),
    good: Color::Indexed(22),
    warning: Color::Indexed(94),
    bad: Color::Indexed(124),
    faint: Color::Indexed(241),
    on_accent: Color::Indexed(231),
};

const RGB_ON_DARK: Palette = Palette {
    accent: Color::Rgb(0x5c, 0xcf, 0xe6),
    good: Color::Rgb(0x87, 0xd9, 0x6c),
    warning: Color::Rgb(0xff, 0xcc, 0x66),
    bad: Color::Rgb(0xff, 0x7b, 0x7b),
    faint: Color::Rgb(0x95, 0x9c, 0xa6),
    on_accent: Color::Rgb(0x0b, 0x0e, 0x14),
};

const RGB_ON_LIGHT: Palette = Palette {
    accent: Color::Rgb(0x00, 0x5f, 0x87),
    good: Color::Rgb(0x1f, 0x6f, 0x2b),
    warning: Color::Rgb(0x8a, 0x5a, 0x00),
    bad: Color::Rgb(0xb3, 0x1d, 0x28),
    faint: Color::Rgb(0x5c, 0x63, 0x6e),
    on_accent: Color::Rgb(0xff, 0xff, 0xff),
};

#[cfg(test)]
mod tests {
    use super::*;

    type Rgb = [u8; 3];

    fn rgb(color: Color) -> Rgb {
        const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        match color {
            Color::Rgb(red, green, blue) => [red, green, blue],
            Color::Indexed(index @ 16..=231) => {
                let index = usize::from(index - 16);
                [STEPS[index / 36], STEPS[index / 6 % 6], STEPS[index % 6]]
            }
            Color::Indexed(index @ 232..) => [8 + 10 * (index - 232); 3],
            other => panic!("{other:?} is the terminal's own"),
        }
    }

    /// <https://www.w3.org/TR/WCAG21/#dfn-relative-luminance>
    fn luminance(rgb: Rgb) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = rgb.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn chosen_colours_are_readable_on_their_ground() {
        let grounds: [(Background, &[Rgb]); 2] = [
            (Background::Dark, &[[0, 0, 0], [0x1e, 0x1e, 0x1e], [0x28, 0x2c, 0x34]]),
            (Background::Light, &[[255, 255, 255], [0xfd, 0xf6, 0xe3]]),
        ];
        for depth in [Depth::Indexed, Depth::Rgb] {
            for (background, grounds) in grounds {
                let palette = Palette::of(depth, background).unwrap();
                let Palette { accent, good, warning, bad, faint, on_accent } = *palette;
                for color in [accent, good, warning, bad, faint] {
                    for &ground in grounds {
                        let contrast = contrast(rgb(color), ground);
                        assert!(contrast >= 4.5, "{color:?} on {ground:?}: {contrast:.1}");
                    }
                }
                let contrast = contrast(rgb(on_accent), rgb(accent));
                assert!(contrast >= 4.5, "{on_accent:?} on {accent:?}: {contrast:.1}");
            }
        }
    }

    #[test]
    fn where_the_ground_is_not_known_the_terminal_chooses() {
        for depth in [Depth::Sixteen, Depth::Indexed, Depth::Rgb] {
            assert_eq!(Palette::of(depth, Background::Unknown), Some(&SIXTEEN));
        }
        for background in [Background::Unknown, Background::Dark, Background::Light] {
            assert_eq!(Palette::of(Depth::None, background), None);
        }
    }
}
