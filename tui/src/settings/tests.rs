use std::collections::HashSet;

use clap::{CommandFactory, FromArgMatches};

use super::*;
use crate::cli;

fn resolve(file: &str, variables: &[(&str, &str)]) -> Settings {
    let of = |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
    Settings::resolve(Some(("config.toml", file)), &of)
}

fn of<'a>(settings: &'a Settings, key: &str) -> (&'a str, &'a Origin) {
    let at = SETTINGS.iter().position(|setting| setting.key == key).expect("a setting");
    (&settings.values[at].text, &settings.values[at].origin)
}

fn parse(settings: &Settings, line: &str) -> Cli {
    let matches = settings.as_defaults_of(Cli::command()).try_get_matches_from(line.split(' ')).expect(line);
    Cli::from_arg_matches(&matches).expect(line)
}

#[test]
fn every_setting_is_an_option_of_each_of_its_commands() {
    let cli = Cli::command();
    for setting in SETTINGS {
        for name in setting.commands {
            let command = cli.find_subcommand(name).unwrap_or_else(|| panic!("{name}"));
            let option = command.get_arguments().find(|argument| argument.get_id() == setting.option);
            let option = option.unwrap_or_else(|| panic!("{} of {name}", setting.key));
            assert_eq!(option.get_default_values().len(), 1, "{} of {name}: a default to show", setting.key);
        }
        assert_eq!(check::value(setting, &cli, &default_of(setting, &cli).text), Ok(()), "{}", setting.key);
    }
}

#[test]
fn no_variable_is_one_of_the_shims() {
    let shims = include_str!("../../../shim/src/settings.rs");
    let documented = include_str!("../../../docs/settings.md");
    let (job, _) = documented.split_once("# The reader's settings").expect("two parts");
    let mut seen = HashSet::new();
    for setting in SETTINGS {
        assert!(seen.insert(setting.variable), "{} twice", setting.variable);
        assert!(!shims.contains(&format!("{:?}", setting.variable)), "{}", setting.variable);
        assert!(!job.contains(&format!("`{}`", setting.variable)), "{}", setting.variable);
        for word in [setting.key, setting.variable] {
            assert!(documented.contains(&format!("`{word}`")), "docs/settings.md lacks {word}");
        }
    }
}

#[test]
fn a_flag_before_a_variable_before_the_file_before_the_default() {
    let file =
        "color = \"always\"\nrefresh = \"3s\"\nkinds = [\"kernel\", \"sync\"]\n[record]\noutput = \"/data/run\"\n";
    let settings = resolve(file, &[("GPUTAP_REFRESH", "2s")]);
    assert_eq!(settings.complaints, [""; 0]);
    assert_eq!(of(&settings, "theme"), ("auto", &Origin::Default));
    assert_eq!(of(&settings, "color"), ("always", &Origin::File { line: 1 }));
    assert_eq!(of(&settings, "refresh"), ("2s", &Origin::Variable("GPUTAP_REFRESH")));
    assert_eq!(of(&settings, "kinds"), ("kernel,sync", &Origin::File { line: 3 }));
    assert_eq!(of(&settings, "record.output"), ("/data/run", &Origin::File { line: 5 }));

    let cli = parse(&settings, "gputap top");
    assert_eq!(cli.look.color, cli::When::Always);
    let cli::Command::Top(top) = cli.command else { panic!() };
    assert_eq!(top.lines.refresh, cli::Refresh::Every(std::time::Duration::from_secs(2)));
    let cli = parse(&settings, "gputap record --color never --kinds kernel -o here");
    assert_eq!(cli.look.color, cli::When::Never);
    let cli::Command::Record(record) = cli.command else { panic!() };
    assert_eq!(record.output, PathBuf::from("here"));
    assert_eq!(record.wish.kinds(), gputap_ringbuf::event::EventKind::Kernel.bit());
}

#[test]
fn no_color_is_a_variable_like_others() {
    let file = "color = \"always\"\n";
    assert_eq!(of(&resolve(file, &[("NO_COLOR", "1")]), "color"), ("never", &Origin::Variable("NO_COLOR")));
    let both = resolve(file, &[("NO_COLOR", "1"), ("GPUTAP_COLOR", "always")]);
    assert_eq!(of(&both, "color"), ("always", &Origin::Variable("GPUTAP_COLOR")));
}

#[test]
fn what_is_wrong_has_a_place_and_a_remedy_and_costs_nothing_else() {
    let file = "colour = \"always\"\nrefresh = \"soon\"\nascii = true\ntheme = 1979-05-27\ncolor = \"blue\"\n";
    let settings = resolve(file, &[("GPUTAP_THEME", "grey"), ("GPUTAP_READER_KINDS", "warps")]);
    let complaints = settings.complaints.join("\n");
    let expected = [
        "config.toml:1: no such setting: colour; did you mean color?",
        "config.toml:2: refresh: \"soon\": ",
        "config.toml:4: theme: a datetime cannot be used; write a string; auto stands",
        "config.toml:5: color: \"blue\" is none of auto, always, never; auto stands",
        "GPUTAP_THEME=grey: \"grey\" is none of auto, dark, light; auto stands",
        "GPUTAP_READER_KINDS=warps: ",
    ];
    for words in expected {
        assert!(complaints.contains(words), "{words:?} in:\n{complaints}");
    }
    assert_eq!(settings.complaints.len(), expected.len(), "{complaints}");
    assert_eq!(of(&settings, "ascii"), ("true", &Origin::File { line: 3 }));
    assert_eq!(parse(&settings, "gputap top").look.ascii, cli::When::Always);
    assert_eq!(of(&settings, "refresh").1, &Origin::Default);
    let far = resolve("zzz = 1\n", &[]).complaints.concat();
    assert!(SETTINGS.iter().all(|setting| far.contains(setting.key)), "{far}");
}

#[test]
fn a_file_that_is_no_toml_says_where_and_the_rest_of_it_holds() {
    let settings = resolve("theme = \"dark\"\nrefresh = = 3\nascii = \"always\"\n", &[]);
    assert!(settings.complaints.iter().any(|words| words.starts_with("config.toml:2: ")), "{:?}", settings.complaints);
    assert_eq!(of(&settings, "theme").0, "dark");
    assert_eq!(of(&settings, "ascii").0, "always");
}

#[test]
fn the_place_is_that_of_the_xdg() {
    let path = |variables: &[(&str, &str)]| {
        let of = |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        file::path(&of).map(|path| path.display().to_string())
    };
    let home = ("HOME", "/home/a");
    assert_eq!(path(&[home]).unwrap(), "/home/a/.config/gputap/config.toml");
    assert_eq!(path(&[home, ("XDG_CONFIG_HOME", "/etc/mine")]).unwrap(), "/etc/mine/gputap/config.toml");
    assert_eq!(path(&[home, ("XDG_CONFIG_HOME", "mine")]).unwrap(), "/home/a/.config/gputap/config.toml");
    assert_eq!(path(&[]), None);
}

#[test]
fn flags_that_every_command_has_are_seen() {
    let settings = resolve("color = \"always\"\n", &[]);
    let matches =
        settings.as_defaults_of(Cli::command()).try_get_matches_from(["gputap", "config", "--color", "never"]);
    let settings = settings.with_flags(&matches.unwrap());
    assert_eq!(of(&settings, "color"), ("never", &Origin::Flag));
    assert_eq!(of(&settings, "theme"), ("auto", &Origin::Default));
}
