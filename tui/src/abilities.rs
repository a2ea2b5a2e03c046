//! What a terminal can show, by the variables that say so.

use crate::cli::{Look, ThemeChoice, When};
use crate::view::{Background, Depth, Theme};

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// This process's. Empty is as good as not set.
pub fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

/// Whether the cursor cannot be moved, as far as anybody knows.
pub fn is_dumb(of: Environment) -> bool {
    of("TERM").is_none_or(|term| matches!(term.as_str(), "dumb" | "unknown"))
}

pub fn theme(look: &Look, of: Environment) -> Theme {
    let depth = match look.color {
        When::Never => Depth::None,
        When::Auto if is_dumb(of) || of("NO_COLOR").is_some() => Depth::None,
        When::Auto => depth(of),
        // Whoever insists has a terminal with colours.
        When::Always => depth(of).max(Depth::Sixteen),
    };
    let background = match look.theme {
        ThemeChoice::Auto => background(of),
        ThemeChoice::Dark => Background::Dark,
        ThemeChoice::Light => Background::Light,
    };
    let ascii = match look.ascii {
        When::Auto => !is_utf8(of),
        ascii => ascii == When::Always,
    };
    Theme { depth, background, ascii }
}

fn depth(of: Environment) -> Depth {
    let color_term = of("COLORTERM").unwrap_or_default();
    let term = of("TERM").unwrap_or_default();
    if matches!(color_term.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
        Depth::Rgb
    } else if term.contains("256color") {
        Depth::Indexed
    } else if term.starts_with("vt") || term.ends_with("-m") || term.ends_with("-mono") {
        Depth::None
    } else {
        Depth::Sixteen
    }
}

/// rxvt, Konsole and others set COLORFGBG to `foreground;background`, in numbers of the sixteen: 7 and the bright ones
/// are light.
fn background(of: Environment) -> Background {
    let colors = of("COLORFGBG").unwrap_or_default();
    match colors.rsplit(';').next().and_then(|ground| ground.parse::<u8>().ok()) {
        Some(0..=6 | 8) => Background::Dark,
        Some(7 | 9..=15) => Background::Light,
        _ => Background::Unknown,
    }
}

/// By the first of the locale's variables that is set, as setlocale(3) has it. Where none is, as in most containers,
/// nobody has said anything of the terminal, and terminals speak UTF-8.
fn is_utf8(of: Environment) -> bool {
    let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(of) else { return true };
    let codeset = locale.split('@').next().unwrap_or_default().split_once('.').map_or("", |(_, codeset)| codeset);
    matches!(codeset.to_ascii_lowercase().as_str(), "utf-8" | "utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { color: When::Auto, theme: ThemeChoice::Auto, ascii: When::Auto };

    fn theme_with(look: Look, variables: &[(&str, &str)]) -> Theme {
        let of = |name: &str| {
            variables
                .iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| (*value).to_owned())
                .filter(|v| !v.is_empty())
        };
        theme(&look, &of)
    }

    #[test]
    fn colours_by_what_the_terminal_says() {
        let depth = |variables: &[(&str, &str)]| theme_with(PLAIN, variables).depth;
        for (variables, expected) in [
            (&[][..], Depth::None),
            (&[("TERM", "dumb")], Depth::None),
            (&[("TERM", "unknown"), ("COLORTERM", "truecolor")], Depth::None),
            (&[("TERM", "vt220")], Depth::None),
            (&[("TERM", "linux")], Depth::Sixteen),
            (&[("TERM", "xterm")], Depth::Sixteen),
            (&[("TERM", "screen-256color")], Depth::Indexed),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Depth::Rgb),
            (&[("TERM", "xterm-direct")], Depth::Rgb),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], Depth::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Depth::Indexed),
        ] {
            assert_eq!(depth(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn a_person_has_the_last_word_on_colours() {
        let depth = |color, variables: &[(&str, &str)]| theme_with(Look { color, ..PLAIN }, variables).depth;
        assert_eq!(depth(When::Always, &[("TERM", "xterm-256color"), ("NO_COLOR", "1")]), Depth::Indexed);
        assert_eq!(depth(When::Always, &[]), Depth::Sixteen);
        assert_eq!(depth(When::Never, &[("TERM", "xterm-256color")]), Depth::None);
    }

    #[test]
    fn the_background_is_what_somebody_said() {
        let ground = |theme, value| theme_with(Look { theme, ..PLAIN }, &[("COLORFGBG", value)]).background;
        for (value, expected) in [
            ("15;0", Background::Dark),
            ("0;15", Background::Light),
            ("0;default;15", Background::Light),
            ("12;8", Background::Dark),
            ("0;7", Background::Light),
            ("default;default", Background::Unknown),
            ("", Background::Unknown),
            ("0;99", Background::Unknown),
        ] {
            assert_eq!(ground(ThemeChoice::Auto, value), expected, "{value}");
        }
        assert_eq!(ground(ThemeChoice::Light, "15;0"), Background::Light);
        assert_eq!(ground(ThemeChoice::Dark, "0;15"), Background::Dark);
    }

    #[test]
    fn ascii_where_the_locale_is_not_utf8() {
        let ascii = |variables: &[(&str, &str)]| theme_with(PLAIN, variables).ascii;
        for (variables, expected) in [
            (&[][..], false),
            (&[("LANG", "C")], true),
            (&[("LANG", "de_DE.ISO-8859-1@euro")], true),
            (&[("LANG", "en_US.UTF-8")], false),
            (&[("LANG", "C.utf8")], false),
            (&[("LANG", "de_DE.UTF-8@euro")], false),
            (&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], true),
            (&[("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "POSIX"), ("LANG", "en_US.UTF-8")], true),
        ] {
            assert_eq!(ascii(variables), expected, "{variables:?}");
        }
        let utf8 = [("LANG", "C.UTF-8")];
        assert!(theme_with(Look { ascii: When::Always, ..PLAIN }, &utf8).ascii);
        assert!(!theme_with(Look { ascii: When::Never, ..PLAIN }, &[("LANG", "C")]).ascii);
    }
}
