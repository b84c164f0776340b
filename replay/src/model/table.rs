//! Tables of a Markdown text.

/// A table: headings and rows, cells without backquotes and without the stars of what is bold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The first heading.
    pub(super) fn first(&self) -> &str {
        self.head.first().map_or("", String::as_str)
    }

    /// The column under one of these headings.
    pub(super) fn column(&self, names: &[&str]) -> Option<usize> {
        self.head.iter().position(|h| names.contains(&h.as_str()))
    }

    /// The rows.
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }
}

/// All tables of `text`, in order. A table is a line of headings, one of dashes, and the lines with bars that follow.
pub(super) fn tables(text: &str) -> Vec<Table> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 1 < lines.len() {
        let dashes = lines[at + 1];
        let is_rule = dashes.starts_with('|') && dashes.chars().all(|c| matches!(c, '|' | '-' | ' ' | ':'));
        if !lines[at].starts_with('|') || !is_rule {
            at += 1;
            continue;
        }
        let head = cells(lines[at]);
        let rows: Vec<Vec<String>> =
            lines[at + 2..].iter().take_while(|l| l.starts_with('|')).map(|l| cells(l)).collect();
        at += 2 + rows.len();
        found.push(Table { head, rows });
    }
    found
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_matches('|');
    inner.split('|').map(|c| c.replace("**", "").replace('`', "").trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_between_other_text() {
        let text = "a\n\n| x | `y` |\n|---|--:|\n| 1 | **2** |\n| 3 |  |\n\nb | c\n| lonely |\n";
        let found = tables(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].first(), found[0].column(&["z", "y"])), ("x", Some(1)));
        assert_eq!(found[0].rows(), [vec!["1".to_string(), "2".into()], vec!["3".into(), String::new()]]);
    }
}
