//! Programs as loads start them: code mapped from a file and paged in here and there, resources read, memory written.

use super::script::{Area, Script, Task};
use super::untar::Lcg;

/// A program.
#[derive(Clone, Copy)]
pub(super) struct Program<'p> {
    /// File with its code.
    pub(super) path: &'p str,
    /// Size of that file, bytes.
    pub(super) text_bytes: u64,
    /// Bytes of resources read from `<path>.data`.
    pub(super) data_bytes: u64,
    /// Memory that it writes at the start, bytes.
    pub(super) heap_bytes: u64,
    /// Computing in all, microseconds, spread over the start.
    pub(super) think_us: u64,
}

/// Pages of code that a program goes through before it jumps elsewhere.
const RUN_PAGES: u64 = 16;

impl Program<'_> {
    /// Declare its files.
    pub(super) fn files(&self, script: &mut Script<'_>) {
        script.lying_file(self.path, self.text_bytes);
        if self.data_bytes > 0 {
            script.lying_file(&format!("{}.data", self.path), self.data_bytes);
        }
    }

    /// Start it: code in runs of 16 pages in a random order (each run once), resources in 4 KiB reads, memory in order; the three
    /// side by side, as a program does that loads a library, reads its settings and builds its tables. Returns code and memory.
    pub(super) fn start(&self, script: &mut Script<'_>, task: &mut Task, seed: u32) -> (Area, Area) {
        let fd = script.open(task, self.path, "O_RDONLY");
        let text = script.map_file(task, fd, self.text_bytes);
        script.close(task, fd);
        let heap = script.map_anonymous(task, self.heap_bytes);
        let data = (self.data_bytes > 0).then(|| script.open(task, &format!("{}.data", self.path), "O_RDONLY"));
        let text_pages = self.text_bytes / 4096;
        let mut runs: Vec<u64> = (0..text_pages.div_ceil(RUN_PAGES)).collect();
        shuffle(&mut runs, seed);
        let steps = runs.len().max(1) as u64;
        let (mut heap_done, mut data_done) = (0, 0);
        for (step, run) in runs.iter().enumerate() {
            let first = run * RUN_PAGES;
            script.touch(task, text, first, RUN_PAGES.min(text_pages - first), 1, false);
            let upto = |total: u64| total * (step as u64 + 1) / steps;
            let heap_upto = upto(self.heap_bytes / 4096);
            if heap_upto > heap_done {
                script.touch(task, heap, heap_done, heap_upto - heap_done, 1, true);
            }
            heap_done = heap_upto;
            if let Some(fd) = data {
                let data_upto = upto(self.data_bytes / 4096);
                (data_done..data_upto).for_each(|_| script.io(task, "read", fd, 4096));
                data_done = data_upto;
            }
            script.compute_us(task, self.think_us / steps);
        }
        if let Some(fd) = data {
            script.close(task, fd);
        }
        (text, heap)
    }
}

/// Fisher and Yates, with the loads' random numbers.
pub(super) fn shuffle(items: &mut [u64], seed: u32) {
    let mut random = Lcg::seeded(seed);
    for i in (1..items.len()).rev() {
        let j = random.next_value() as usize % (i + 1);
        items.swap(i, j);
    }
}
