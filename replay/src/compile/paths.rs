//! Names: absolute, normalised by text, and which of them are files of the model.

/// Stands for a working directory that the trace does not tell.
pub(super) const UNKNOWN_CWD: &str = "/(cwd)";

/// `path` as an absolute path without `.`, `..` and doubled slashes. Symbolic links are not known and not followed.
pub(super) fn absolute(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let relative = !path.starts_with('/');
    let whole = relative.then_some(base).into_iter().chain([path]);
    for part in whole.flat_map(|p| p.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let mut out = String::with_capacity(path.len() + 1);
    for part in parts {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

/// The containing directory; `None` for `/`.
pub(super) fn parent(path: &str) -> Option<&str> {
    if path == "/" {
        return None;
    }
    match path.rfind('/')? {
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// The last component.
pub(super) fn name(path: &str) -> &str {
    path.rfind('/').map_or(path, |at| &path[at + 1..])
}

/// `path` is `dir` or lies in it.
pub(super) fn is_under(path: &str, dir: &str) -> bool {
    dir == "/" || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What `-y` appends to a path whose name is gone.
pub(super) fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").or_else(|| path.strip_suffix("(deleted)")).unwrap_or(path)
}

/// Names that never have pages on a disk: kernel file systems, devices, and what `-y` prints for anonymous objects.
pub(super) fn is_special(path: &str) -> bool {
    !path.starts_with('/')
        || ["/dev", "/proc", "/sys"].iter().any(|dir| is_under(path, dir))
        || path.starts_with("/memfd:")
        || path.starts_with("/anon_hugepage")
        || path.starts_with("/SYSV")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_by_text() {
        assert_eq!(absolute("/a/b", "c"), "/a/b/c");
        assert_eq!(absolute("/a/b", "../c/./d//e"), "/a/c/d/e");
        assert_eq!(absolute("/a", "/x/../.."), "/");
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
        assert!(is_under("/mnt/disk/x", "/mnt/disk") && is_under("/mnt/disk", "/mnt/disk"));
        assert!(!is_under("/mnt/disk2", "/mnt/disk"));
        assert_eq!(without_deleted("/a/b (deleted)"), "/a/b");
    }

    #[test]
    fn special_names() {
        for p in ["pipe:[7]", "socket:[1]", "anon_inode:[eventfd]", "/dev/null", "/proc/self/maps", "/memfd:x"] {
            assert!(is_special(p), "{p}");
        }
        for p in ["/devel/x", "/home/a", "/"] {
            assert!(!is_special(p), "{p}");
        }
    }
}
