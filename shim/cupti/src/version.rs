//! What `cuptiGetVersion`'s number says: which CUDA the library came with, and which GPUs it knows.

use super::layout::{NEWEST_VERSION, OLDEST_VERSION};

/// The numbers that CUPTI gave itself before 13.0, with the oldest CUDA that each stands for, as NVIDIA's headers list
/// them. 25 is not among them.
const NUMBERED: &[(u32, (u32, u32))] = &[
    (1, (4, 0)),
    (2, (4, 1)),
    (3, (5, 0)),
    (4, (5, 5)),
    (5, (6, 0)),
    (6, (6, 5)),
    (7, (6, 5)),
    (8, (7, 0)),
    (9, (8, 0)),
    (10, (9, 0)),
    (11, (9, 1)),
    (12, (10, 0)),
    (13, (11, 0)),
    (14, (11, 1)),
    (15, (11, 2)),
    (16, (11, 5)),
    (17, (11, 6)),
    (18, (11, 8)),
    // Listed, but the wheels of 12.0 and 12.1 report 18.
    (19, (12, 0)),
    (20, (12, 2)),
    (21, (12, 3)),
    (22, (12, 4)),
    (23, (12, 5)),
    (24, (12, 6)),
    (26, (12, 8)),
    (27, (12, 9)),
    (28, (12, 9)),
];

/// From 13.0 on the number is xxyyzz: CUDA's major and minor version, and an update of CUPTI's own.
const FIRST_SPELLED_OUT: u32 = 130_000;

/// The CUDA (major, minor) that a CUPTI of this version came with: the oldest, where the number stands for several (18
/// is 11.8, 12.0 and 12.1). `None` where no header of NVIDIA's lists the number.
pub fn cuda_version_of(cupti_version: u32) -> Option<(u32, u32)> {
    if cupti_version >= FIRST_SPELLED_OUT {
        return Some((cupti_version / 10_000, cupti_version / 100 % 100));
    }
    NUMBERED.iter().find(|(number, _)| *number == cupti_version).map(|(_, cuda)| *cuda)
}

/// The architecture that every CUPTI since 11.8 knows, as it knows those before: Hopper.
const KNOWN_TO_ALL: u32 = 90;

/// The architectures after Hopper (compute capability times ten) with the first CUPTI that knows each.
///
/// libcupti names the chips that it knows, and `.ci/layouts` looks for the names in each library. Which chip is which
/// architecture is public, save that GR100 is taken to be 107 because both names first appear together, in 13.4. For 103
/// no chip is looked for: the release notes of CUDA 12.9 say that its compiler has it, but libcupti spells it out only
/// from 13.0 on, so that it may be claimed too early here and never too late.
const LATER_ARCHITECTURES: &[(u32, u32)] = &[
    // GB100 (B200).
    (100, 26),
    // GB10B (Thor), which became 110 in CUDA 13.0.
    (101, 26),
    (110, 26),
    // B300.
    (103, 27),
    // GR100 (Rubin): a newer generation than 110 and 120, under a smaller number.
    (107, 130_400),
    // GB202 (RTX 5090).
    (120, 26),
    // GB20B (GB10, DGX Spark).
    (121, 27),
];

/// The newest architecture, by its number (90 for compute capability 9.0), that a CUPTI of this version knows. `None`
/// where no such library was looked at: older than 11.8, newer than 13.5, or 25, between two that differ.
///
/// Numbers do not grow with generations (107 came after 121), so [`knows_architecture`] is what to ask about a GPU.
pub fn newest_architecture(cupti_version: u32) -> Option<u32> {
    if !(OLDEST_VERSION..=NEWEST_VERSION).contains(&cupti_version) || cupti_version == 25 {
        return None;
    }
    let known = LATER_ARCHITECTURES.iter().filter(|(_, first)| *first <= cupti_version);
    known.map(|(architecture, _)| *architecture).max().or(Some(KNOWN_TO_ALL))
}

/// Whether a CUPTI of this version is as new as a GPU of this architecture (compute capability times ten). `None` where
/// that is unknown: nothing should be said then.
pub fn knows_architecture(cupti_version: u32, architecture: u32) -> Option<bool> {
    let newest = newest_architecture(cupti_version)?;
    if architecture <= KNOWN_TO_ALL {
        return Some(true);
    }
    let listed = LATER_ARCHITECTURES.iter().find(|(listed, _)| *listed == architecture);
    match listed {
        Some((_, first)) => Some(*first <= cupti_version),
        None if architecture > newest => Some(false),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_13_are_listed_and_later_ones_spell_the_version_out() {
        assert_eq!(cuda_version_of(17), Some((11, 6)));
        assert_eq!(cuda_version_of(18), Some((11, 8)));
        assert_eq!(cuda_version_of(26), Some((12, 8)));
        assert_eq!((cuda_version_of(27), cuda_version_of(28)), (Some((12, 9)), Some((12, 9))));
        assert_eq!(cuda_version_of(130_000), Some((13, 0)));
        assert_eq!(cuda_version_of(130_501), Some((13, 5)));
        assert_eq!(cuda_version_of(141_203), Some((14, 12)));
    }

    #[test]
    fn a_number_that_nobody_lists_is_no_version() {
        for cupti_version in [0, 25, 29, 129_999] {
            assert_eq!(cuda_version_of(cupti_version), None, "{cupti_version}");
        }
    }

    #[test]
    fn the_newest_architecture_grows_with_the_library() {
        let newest = [17, 18, 24, 25, 26, 27, 28, 130_301, NEWEST_VERSION, NEWEST_VERSION + 1].map(newest_architecture);
        let (hopper, blackwell, spark) = (Some(90), Some(120), Some(121));
        assert_eq!(newest, [None, hopper, hopper, None, blackwell, spark, spark, spark, spark, None]);
    }

    #[test]
    fn a_library_older_than_the_gpu_is_told_from_one_of_which_nothing_is_known() {
        assert_eq!(knows_architecture(22, 90), Some(true));
        assert_eq!(knows_architecture(22, 100), Some(false));
        assert_eq!(knows_architecture(26, 100), Some(true));
        // A smaller number than 120, which it knows.
        assert_eq!((knows_architecture(26, 103), knows_architecture(27, 103)), (Some(false), Some(true)));
        assert_eq!((knows_architecture(130_301, 107), knows_architecture(130_400, 107)), (Some(false), Some(true)));
        assert_eq!(knows_architecture(130_500, 130), Some(false));
        // Between known ones, and on no list.
        assert_eq!(knows_architecture(130_500, 105), None);
        assert_eq!((knows_architecture(17, 90), knows_architecture(NEWEST_VERSION + 1, 130)), (None, None));
    }
}
