//! plotters on pixels: shapes by its own rasteriser on a surface four times as fine as drawn, glyphs from a font that is part of
//! the program, so that a picture needs no fonts of the machine.

use super::theme;
use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontStyle,
};
use std::convert::Infallible;

/// Pixels of the surface for one of the drawing.
const FINE: i32 = 4;
/// Pixels of the finished picture for one of the drawing: sharp on screens of today.
pub(super) const SHARP: u32 = 2;

/// The result of drawing: plotters asks for its own error type.
type Drawn = std::result::Result<(), DrawingErrorKind<Infallible>>;

/// Fonts of the pictures (DejaVu Sans Condensed): letters of Europe, and signs; what they lack is drawn as an empty box.
pub(super) struct Fonts {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
}

impl Fonts {
    /// The built-in fonts.
    ///
    /// # Errors
    /// If they cannot be read: never, unless the program was built with others.
    pub(super) fn new() -> std::result::Result<Fonts, String> {
        let read = |bytes: &'static [u8]| FontRef::try_from_slice(bytes).map_err(|e| e.to_string());
        Ok(Fonts { regular: read(dejavu::sans_condensed::regular())?, bold: read(dejavu::sans_condensed::bold())? })
    }
}

/// A surface of [`FINE`] pixels for each of the drawing, RGB.
struct Surface {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl DrawingBackend for Surface {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }
    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }
    fn present(&mut self) -> Drawn {
        Ok(())
    }
    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return Ok(()) };
        if x >= self.width || y >= self.height {
            return Ok(());
        }
        let at = (y as usize * self.width as usize + x as usize) * 3;
        let rgb = [color.rgb.0, color.rgb.1, color.rgb.2];
        for (old, new) in self.pixels[at..at + 3].iter_mut().zip(rgb) {
            *old = (f64::from(*old) + (f64::from(new) - f64::from(*old)) * color.alpha).round() as u8;
        }
        Ok(())
    }
}

/// A style of the drawing on the surface: true colour, scaled width.
struct Fine {
    color: BackendColor,
    width: u32,
}

impl BackendStyle for Fine {
    fn color(&self) -> BackendColor {
        self.color
    }
    fn stroke_width(&self) -> u32 {
        self.width
    }
}

fn fine(style: &impl BackendStyle) -> Fine {
    let color = style.color();
    Fine {
        color: BackendColor { alpha: color.alpha, rgb: theme::light(color.rgb) },
        width: style.stroke_width() * FINE as u32,
    }
}

fn scaled((x, y): BackendCoord) -> BackendCoord {
    (x.saturating_mul(FINE), y.saturating_mul(FINE))
}

/// A drawing in pixels.
pub(super) struct Canvas<'f> {
    fonts: &'f Fonts,
    surface: Surface,
}

impl<'f> Canvas<'f> {
    /// An empty drawing of this size, pixels.
    pub(super) fn new(fonts: &'f Fonts, (width, height): (u32, u32)) -> Canvas<'f> {
        let (width, height) = (width * FINE as u32, height * FINE as u32);
        let page = theme::page();
        let pixels = [page.0, page.1, page.2].repeat(width as usize * height as usize);
        Canvas { fonts, surface: Surface { width, height, pixels } }
    }

    /// Width of a text, pixels of the drawing.
    fn width_of(&self, text: &str, size: f64, bold: bool) -> f64 {
        let font = if bold { &self.fonts.bold } else { &self.fonts.regular };
        let font = font.as_scaled(scale(font, size));
        text.chars().map(|c| f64::from(font.h_advance(font.glyph_id(c)))).sum()
    }

    /// Draws a text with its base line at `y` and its left end at `x`, pixels of the drawing; `size` is that of the em.
    pub(super) fn write(&mut self, text: &str, (x, y): (f64, f64), size: f64, bold: bool, color: BackendColor) {
        let font = if bold { &self.fonts.bold } else { &self.fonts.regular };
        let scale = scale(font, size * f64::from(FINE));
        let advance = font.as_scaled(scale);
        let mut at = point((x * f64::from(FINE)) as f32, (y * f64::from(FINE)) as f32);
        for c in text.chars() {
            let id = font.glyph_id(c);
            let glyph = Glyph { id, scale, position: at };
            at.x += advance.h_advance(id);
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            let (left, top) = (corner.x as i32, corner.y as i32);
            let surface = &mut self.surface;
            outline.draw(|dx, dy, cover| {
                let ink = BackendColor { alpha: color.alpha * f64::from(cover.clamp(0.0, 1.0)), rgb: color.rgb };
                // Pixels beyond the surface are dropped; there is nothing else that could go wrong.
                let _ = surface.draw_pixel((left + dx as i32, top + dy as i32), ink);
            });
        }
    }

    /// The finished picture: rows of RGB, [`SHARP`] pixels for each of the drawing.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let block = FINE as usize / SHARP as usize;
        let (width, height) = (self.surface.width as usize, self.surface.height as usize);
        (0..height / block).map(move |row| {
            let mut out = Vec::with_capacity(width / block * 3);
            for column in 0..width / block {
                for channel in 0..3 {
                    let mut sum = 0usize;
                    for y in row * block..(row + 1) * block {
                        for x in column * block..(column + 1) * block {
                            sum += usize::from(self.surface.pixels[(y * width + x) * 3 + channel]);
                        }
                    }
                    out.push(((sum + block * block / 2) / (block * block)) as u8);
                }
            }
            out
        })
    }
}

/// `ab_glyph` measures a font by its height, the drawing by its em.
fn scale(font: &FontRef<'_>, em: f64) -> PxScale {
    let per_em = font.units_per_em().unwrap_or(2048.0);
    PxScale::from(em as f32 * font.height_unscaled() / per_em)
}

impl DrawingBackend for &mut Canvas<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.surface.width / FINE as u32, self.surface.height / FINE as u32)
    }
    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }
    fn present(&mut self) -> Drawn {
        Ok(())
    }
    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn {
        let (x, y) = scaled(at);
        let style = Fine { color: BackendColor { alpha: color.alpha, rgb: theme::light(color.rgb) }, width: 1 };
        self.surface.draw_rect((x, y), (x + FINE - 1, y + FINE - 1), &style, true)
    }
    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.surface.draw_line(scaled(from), scaled(to), &fine(style))
    }
    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn {
        self.surface.draw_rect(scaled(from), scaled(to), &fine(style), fill)
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        // Piece by piece, with round joints: a long path as one polygon would cross itself, and take long.
        let style = fine(style);
        let joint = style.width / 2;
        let mut before: Option<BackendCoord> = None;
        for at in path.into_iter().map(scaled) {
            if let Some(before) = before {
                self.surface.draw_line(before, at, &style)?;
                if joint > 1 && style.color.alpha >= 1.0 {
                    self.surface.draw_circle(at, joint, &style, true)?;
                }
            }
            before = Some(at);
        }
        Ok(())
    }
    fn draw_circle<S: BackendStyle>(&mut self, center: BackendCoord, radius: u32, style: &S, fill: bool) -> Drawn {
        self.surface.draw_circle(scaled(center), radius * FINE as u32, &fine(style), fill)
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        self.surface.fill_polygon(path.into_iter().map(scaled).collect::<Vec<_>>(), &fine(style))
    }
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Drawn {
        let size = style.size() / theme::FONT_FACTOR;
        let bold = matches!(style.style(), FontStyle::Bold);
        let width = self.width_of(text, size, bold);
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // As plotters' SVG places them: by parts of the em.
        let down = match style.anchor().v_pos {
            VPos::Top => 0.76,
            VPos::Center => 0.27,
            VPos::Bottom => -0.27,
        };
        let color = style.color();
        let color = BackendColor { alpha: color.alpha, rgb: theme::light(color.rgb) };
        self.write(text, (f64::from(x) + left, f64::from(y) + down * size), size, bold, color);
        Ok(())
    }
    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> std::result::Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = style.size() / theme::FONT_FACTOR;
        Ok((self.width_of(text, size, false).ceil() as u32, size.ceil() as u32))
    }
}
