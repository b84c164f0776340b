//! An audio stream with deadlines, beside other loads: a player decodes what comes over a network (or lies in a file) ahead of a
//! sound device.
//!
//! The device is a link of its own whose messages are fragments, so it keeps its own time: it plays one after the other as long as
//! there are any in its buffer, which has a task a place. Where a message finds the link idle, the device had run dry: a gap.

use super::layout::Image;
use super::params::param;
use super::script::{Area, Pipe, Script, Task};
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

/// Fragment of the device: 16 KiB of 44.1 kHz stereo at 16 bits.
const FRAGMENT_BYTES: u64 = 16_384;
/// Bytes of that sound a second.
const SOUND_BYTES_S: u64 = 176_400;
/// Compressed bytes of a fragment at 128 kbit/s.
const FRAME_BYTES: u64 = FRAGMENT_BYTES * 16_000 / SOUND_BYTES_S;
/// Fragments that the device holds.
const BUFFERED: u64 = 4;
/// Rate of the network that the stream comes over, bytes/s: 10 Mbit/s, so the sender is always ahead of the player.
const STREAM_BYTES_S: u64 = 1_250_000;
/// What the player reads at a time.
const READ_BYTES: u64 = 4096;
/// Decoding a fragment on a processor of 266 to 500 MHz, us.
const DECODE_US: u64 = 9_000;
/// The player's memory, pages: tables and windows that each fragment goes through.
const HEAP_PAGES: u64 = 192;

/// A parameter for loads with audio.
pub(super) const SECONDS: ParamSpec =
    param("audio_s", "", 0, (0, 3600), "seconds of audio that plays beside it; 0: none");

/// Where the audio comes from.
pub(super) const STREAM: ParamSpec =
    param("audio_stream", "", 1, (0, 1), "1: the audio comes over the network; 0: from a file");

const PARAMS: &[ParamSpec] = &[
    param("audio_s", "", 60, (1, 3600), "seconds of audio that play"),
    STREAM,
    param("written_mib", "", 300, (0, 2048), "size at which the writer begins anew, MiB; 0: no writer"),
    param("chunk_bytes", "", 65_536, (4096, 1 << 24), "size of a write, bytes"),
    param("before_s", "", 5, (0, 3600), "seconds that the audio plays before the writer begins"),
];

pub(super) const LOAD: Load = Load {
    name: "audio",
    about: "a player with deadlines beside a process that writes a large file for ever",
    params: PARAMS,
    generate: beside_a_writer,
};

fn beside_a_writer(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let (seconds, size, chunk) = (p.get("audio_s"), p.mib("written_mib"), p.get("chunk_bytes"));
    let audio = Audio { seconds, stream: p.on("audio_stream") };
    audio.file(script);
    let mut main = script.main_task();
    audio.start(script, &mut main);
    if size > 0 {
        let mut writer = script.run(&mut main, None);
        writer.set_client("writer".into());
        script.sleep_ms(&mut writer, p.get("before_s") * 1000);
        let fd = script.open(&mut writer, "/mnt/flood", "O_RDWR|O_CREAT|O_TRUNC");
        writer.repeat_from(script.next_line());
        (0..size.div_ceil(chunk)).for_each(|_| script.io(&mut writer, "write", fd, chunk));
        script.seek(&mut writer, fd, 0);
        script.background(&mut writer);
    }
    script.sleep_ms(&mut main, seconds * 1000);
    script.end(&mut main);
}

/// Player and device; both go on in the background of the load.
#[derive(Clone, Copy)]
pub(super) struct Audio {
    /// How long they play.
    pub(super) seconds: u64,
    /// Data come over the network, else from a file.
    pub(super) stream: bool,
}

/// Where the player gets its data.
#[derive(Clone, Copy)]
enum Source {
    File(i64),
    Network(usize),
}

impl Audio {
    /// Declare the file.
    pub(super) fn file(self, script: &mut Script<'_>) {
        if !self.stream {
            script.lying_file("/mnt/music", self.seconds * 16_000 + READ_BYTES);
        }
    }

    /// Start both.
    pub(super) fn start(self, script: &mut Script<'_>, main: &mut Task) {
        let device = script.link(LinkSpec { kind: LinkKind::Fifo, rate_bytes_s: SOUND_BYTES_S, clients: 1 });
        let mut ready: Vec<Pipe> = (0..BUFFERED).map(|_| script.pipe(main)).collect();
        let mut free = script.pipe(main);
        let mut player = script.run(main, None);
        player.set_client("player".into());
        let mut places: Vec<Task> = (0..BUFFERED)
            .map(|_| {
                let mut place = script.clone_task(main);
                place.set_client("sound".into());
                place
            })
            .collect();
        let source = if self.stream {
            Source::Network(script.link(LinkSpec { kind: LinkKind::Fifo, rate_bytes_s: STREAM_BYTES_S, clients: 1 }))
        } else {
            Source::File(script.open(&mut player, "/mnt/music", "O_RDONLY"))
        };
        let heap = script.map_anonymous(&mut player, HEAP_PAGES * 4096);
        let fragments = self.seconds * SOUND_BYTES_S / FRAGMENT_BYTES;
        let mut read = 0;
        for n in 0..fragments {
            let place = (n % BUFFERED) as usize;
            if n >= BUFFERED {
                play(script, &mut places[place], device, &mut ready[place], &mut free);
                script.take(&mut player, &mut free);
            }
            decode(script, &mut player, source, heap, n, &mut read);
            script.post(&mut player, &mut ready[place]);
        }
        for n in fragments.saturating_sub(BUFFERED)..fragments {
            let place = (n % BUFFERED) as usize;
            play(script, &mut places[place], device, &mut ready[place], &mut free);
        }
        script.background(&mut player);
        places.iter_mut().for_each(|place| script.background(place));
    }
}

/// A place of the buffer gets a fragment, and the device plays it when it comes to it.
fn play(script: &mut Script<'_>, sound: &mut Task, device: usize, ready: &mut Pipe, free: &mut Pipe) {
    script.take(sound, ready);
    script.message(sound, device, FRAGMENT_BYTES);
    script.mark(sound, "audio");
    script.post(sound, free);
}

/// The player makes one fragment.
fn decode(script: &mut Script<'_>, player: &mut Task, source: Source, heap: Area, n: u64, read: &mut u64) {
    while *read < (n + 1) * FRAME_BYTES {
        match source {
            Source::File(fd) => script.io(player, "read", fd, READ_BYTES),
            Source::Network(link) => script.message(player, link, READ_BYTES),
        }
        *read += READ_BYTES;
    }
    script.touch(player, heap, 0, HEAP_PAGES, 1, true);
    script.compute_us(player, DECODE_US);
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fragment_lasts_a_tenth_of_a_second() {
        assert_eq!(super::FRAGMENT_BYTES * 1000 / super::SOUND_BYTES_S, 92);
        assert_eq!(super::FRAME_BYTES, 1486);
    }
}
