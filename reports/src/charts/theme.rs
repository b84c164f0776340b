//! Colours and type of all charts.

use plotters::prelude::*;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::sync::LazyLock;

/// Width of a chart, pixels; pages scale it.
pub(crate) const WIDTH: u32 = 680;
/// Size of labels, pixels.
pub(super) const LABEL: f64 = 13.0;
/// Size of axis marks, pixels.
pub(super) const SMALL: f64 = 11.5;

/// plotters divides font sizes by this before it writes them.
pub(super) const FONT_FACTOR: f64 = 1.24;

/// What a colour stands for. The number is the reserved colour's last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Ink,
    Muted,
    Grid,
    Recorded,
    Simulated,
    Part(usize),
    /// A line of a plane, by its place.
    Line(usize),
    /// Full shade of a table of shades.
    Warm,
}

/// Class names by reserved number; parts follow the fixed roles.
const ROLES: [&str; 5] = ["ink", "muted", "grid", "rec", "sim"];
/// Parts of bars with a colour of their own, by category id.
const PARTS: [&str; 11] =
    ["cpu", "disk", "swapin", "slot", "lock", "throttle", "reclaim", "sync", "net", "idle", "think"];

/// Colours of lines; more lines repeat them.
pub(super) const LINES: usize = 10;

impl Role {
    fn number(self) -> u8 {
        match self {
            Role::Ink => 0,
            Role::Muted => 1,
            Role::Grid => 2,
            Role::Recorded => 3,
            Role::Simulated => 4,
            Role::Part(i) => (ROLES.len() + i % PARTS.len()) as u8,
            Role::Line(i) => (ROLES.len() + PARTS.len() + i % LINES) as u8,
            Role::Warm => (ROLES.len() + PARTS.len() + LINES) as u8,
        }
    }

    /// The reserved colour.
    pub(super) fn color(self) -> RGBColor {
        RGBColor(0xC0, 0xDE, self.number())
    }
}

/// The role of a bar's part: by its id if that is known, else by its place.
pub(super) fn part(id: &str, place: usize) -> Role {
    Role::Part(PARTS.iter().position(|p| *p == id).unwrap_or(place))
}

/// Number of a part's colour (`--k0` and so on), if it has one of its own.
pub(crate) fn part_number(id: &str) -> Option<usize> {
    PARTS.iter().position(|p| *p == id)
}

/// Names of the roles in the style sheet, by the number of their reserved colour.
fn names() -> impl Iterator<Item = String> {
    let fixed = ROLES.iter().map(|r| (*r).to_string());
    let parts = (0..PARTS.len()).map(|i| format!("k{i}"));
    fixed.chain(parts).chain((0..LINES).map(|i| format!("l{i}"))).chain(["warm".to_string()])
}

/// Replaces the reserved colours of plotters' output by classes.
pub(super) fn classes(svg: &str) -> String {
    let mut out = svg.to_string();
    for (number, name) in names().enumerate() {
        for (attribute, prefix) in [("fill", 'f'), ("stroke", 's')] {
            out = out.replace(&format!("{attribute}=\"#C0DE{number:02X}\""), &format!("class=\"{prefix}-{name}\""));
        }
    }
    // What plotters writes for every element and no reader needs.
    out.replace(" opacity=\"1\"", "").replace(" stroke=\"none\"", "").replace(" fill=\"none\"", " fill-opacity=\"0\"")
}

/// A colour of the style sheet's light scheme, which stands there first.
fn sheet(name: &str) -> (u8, u8, u8) {
    let value = STYLE.split_once(&format!("--{name}:#")).map_or("", |(_, rest)| rest);
    let digits: String = value.chars().take_while(char::is_ascii_hexdigit).take(6).collect();
    let full = if digits.len() == 3 { digits.chars().flat_map(|c| [c, c]).collect() } else { digits };
    let byte = |i: usize| full.get(i..i + 2).and_then(|d| u8::from_str_radix(d, 16).ok()).unwrap_or(0);
    (byte(0), byte(2), byte(4))
}

/// The light scheme's colour for a reserved one; other colours stay.
pub(super) fn light(rgb: (u8, u8, u8)) -> (u8, u8, u8) {
    static LIGHT: LazyLock<Vec<(u8, u8, u8)>> = LazyLock::new(|| names().map(|n| sheet(&n)).collect());
    if (rgb.0, rgb.1) != (0xC0, 0xDE) {
        return rgb;
    }
    LIGHT.get(usize::from(rgb.2)).copied().unwrap_or(rgb)
}

/// Ink of the light scheme.
pub(super) fn ink() -> (u8, u8, u8) {
    light((0xC0, 0xDE, Role::Ink.number()))
}

/// Softer ink of the light scheme.
pub(super) fn muted() -> (u8, u8, u8) {
    light((0xC0, 0xDE, Role::Muted.number()))
}

/// Paper of the light scheme.
pub(super) fn page() -> (u8, u8, u8) {
    sheet("page")
}

/// A text style; `h` and `v` say which point of the text lies at the given place.
pub(super) fn style(role: Role, size: f64, h: HPos, v: VPos) -> TextStyle<'static> {
    let color = role.color().to_backend_color();
    TextStyle { font: ("sans-serif", size * FONT_FACTOR).into_font(), color, pos: Pos::new(h, v) }
}

/// About how wide a text is, pixels: good enough to keep labels apart.
pub(super) fn width_of(text: &str, size: f64) -> i32 {
    (text.chars().count() as f64 * size * 0.56).ceil() as i32
}

/// The style sheet of charts, for pages and for pictures by themselves.
pub(crate) const STYLE: &str = concat!(
    ":root{--page:#fff;--ink:#1d2430;--muted:#5b6675;--grid:#dfe3e8;--rec:#aab2bd;--sim:#2563b0;",
    "--k0:#3f9a6a;--k1:#2f6fba;--k2:#b8433a;--k3:#dba32b;--k4:#8458b3;--k5:#d97732;--k6:#bf4c86;--k7:#2f9fae;--k8:#868b4a;--k9:#c3c8d0;--k10:#98a1ae;",
    "--l0:#2563b0;--l1:#d97732;--l2:#2f8f5b;--l3:#b8433a;--l4:#8458b3;--l5:#8a6d1f;--l6:#bf4c86;--l7:#2f9fae;--l8:#5b6675;--l9:#7a9a2f;--warm:#e07b54}",
    "@media(prefers-color-scheme:dark){:root{--page:#14181f;--ink:#e4e8ee;--muted:#9aa5b4;--grid:#2c343f;--rec:#566171;--sim:#6aa9f0;",
    "--k0:#5bb889;--k1:#5b97dd;--k2:#d9685e;--k3:#e6b956;--k4:#a684d0;--k5:#e6955a;--k6:#d674a8;--k7:#57bccb;--k8:#a9ae6c;--k9:#4b5563;--k10:#6d7888;",
    "--l0:#6aa9f0;--l1:#e6955a;--l2:#5bb889;--l3:#e07b70;--l4:#a684d0;--l5:#d0b25a;--l6:#d674a8;--l7:#57bccb;--l8:#9aa5b4;--l9:#a9c46c;--warm:#b5532f}}",
    ".f-page{fill:var(--page)}.f-ink{fill:var(--ink)}.f-muted{fill:var(--muted)}.f-grid{fill:var(--grid)}.f-rec{fill:var(--rec)}.f-sim{fill:var(--sim)}",
    ".s-ink{stroke:var(--ink)}.s-muted{stroke:var(--muted)}.s-grid{stroke:var(--grid)}.s-rec{stroke:var(--rec)}.s-sim{stroke:var(--sim)}",
    ".f-k0{fill:var(--k0)}.f-k1{fill:var(--k1)}.f-k2{fill:var(--k2)}.f-k3{fill:var(--k3)}.f-k4{fill:var(--k4)}.f-k5{fill:var(--k5)}",
    ".f-l0{fill:var(--l0)}.f-l1{fill:var(--l1)}.f-l2{fill:var(--l2)}.f-l3{fill:var(--l3)}.f-l4{fill:var(--l4)}.f-l5{fill:var(--l5)}.f-l6{fill:var(--l6)}.f-l7{fill:var(--l7)}.f-l8{fill:var(--l8)}.f-l9{fill:var(--l9)}.f-warm{fill:var(--warm)}",
    ".s-l0{stroke:var(--l0)}.s-l1{stroke:var(--l1)}.s-l2{stroke:var(--l2)}.s-l3{stroke:var(--l3)}.s-l4{stroke:var(--l4)}.s-l5{stroke:var(--l5)}.s-l6{stroke:var(--l6)}.s-l7{stroke:var(--l7)}.s-l8{stroke:var(--l8)}.s-l9{stroke:var(--l9)}",
    ".f-k6{fill:var(--k6)}.f-k7{fill:var(--k7)}.f-k8{fill:var(--k8)}.f-k9{fill:var(--k9)}.f-k10{fill:var(--k10)}",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_a_colour_in_pictures() {
        // Lines and parts share some; none of them is missing, which would make it black.
        assert!(names().all(|n| sheet(&n) != (0, 0, 0)));
        let lines: std::collections::BTreeSet<_> = (0..LINES).map(|i| sheet(&format!("l{i}"))).collect();
        assert_eq!(lines.len(), LINES);
        for number in 0..names().count() {
            let shown = light((0xC0, 0xDE, number as u8));
            assert!(shown.0 != 0xC0 || shown.1 != 0xDE, "{number}");
        }
        assert_eq!((page(), ink()), ((255, 255, 255), (0x1d, 0x24, 0x30)));
        assert_eq!(light((1, 2, 3)), (1, 2, 3));
    }
}
