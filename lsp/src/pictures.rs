//! Pictures of a compiled function as SVG: registers along the code, occupancy, control flow, fragments. One HTML page
//! shows the pictures of one function, for editors and browsers; one SVG shows those of a whole file, for pull
//! requests.
//!
//! Colors are CSS variables, so that the pictures fit light and dark themes. The pictures contain no scripts.

mod canvas;
mod flow;
mod fragments;
mod occupancy;
mod placement;
mod pressure;

use std::fmt::Write as _;

use canvas::escape;
pub use flow::{Described, blocks};
use ptx_analysis::ide::{self, Portrait};

/// One picture: the content of the SVG element, and its size.
pub struct Picture {
    /// The heading, which says what the picture shows.
    pub title: String,
    pub body: String,
    pub width: u32,
    pub height: u32,
}

/// The colors of a light theme, of a dark theme, and of VS Code's theme, which the body of the page names.
const LIGHT: &str = "--paper:#ffffff;--ink:#1f2328;--soft:#59636e;--grid:#d9dfe5;--box:#f3f6f9;--line:#0969da;\
--area:#0969da2e;--hot:#cf222e;--mark:#9a6700;--loop:#8250df";
const DARK: &str = "--paper:#14161b;--ink:#e6e9ee;--soft:#9aa4b2;--grid:#333a44;--box:#1d2229;--line:#58a6ff;\
--area:#58a6ff33;--hot:#ff7b72;--mark:#e3b341;--loop:#bc8cff";

/// The style sheet of the pictures.
const STYLE: &str = "svg{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:12px}\
text{fill:var(--ink)}.soft{fill:var(--soft)}.small{font-size:10px}.bold{font-weight:600}\
.halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}\
.mono{font-family:'DejaVu Sans Mono',ui-monospace,monospace}.middle{text-anchor:middle}.end{text-anchor:end}\
.grid{stroke:var(--grid);fill:none}.axis{stroke:var(--soft);fill:none}.line{stroke:var(--line);fill:none;stroke-width:1.6}\
.area{fill:var(--area)}.limit{stroke:var(--mark);fill:none;stroke-dasharray:5 4}.mark{fill:var(--mark)}\
.hot{fill:var(--hot)}.bar{fill:var(--soft)}.loop{fill:var(--loop);fill-opacity:.09}\
.ring{fill:none;stroke:var(--loop);stroke-dasharray:4 3}.node{stroke:var(--soft);fill:var(--box)}\
.edge{stroke:var(--soft);fill:none;stroke-width:1.3}.back{stroke:var(--loop);fill:none;stroke-width:1.6}\
a{cursor:pointer}a:hover .node{stroke:var(--line);stroke-width:2}.tip{fill:var(--soft)}.backtip{fill:var(--loop)}.looptext{fill:var(--loop)}.marktext{fill:var(--mark)}.none{fill:transparent}";

/// The pictures of a function.
fn pictures(portrait: &Portrait, link: Option<&str>) -> Vec<Picture> {
    let mut all = vec![pressure::draw(portrait)];
    all.extend(occupancy::draw(portrait));
    all.extend(flow::draw(portrait, link));
    all.extend(fragments::draw(portrait));
    all
}

/// The line under a function's name.
fn summary(portrait: &Portrait) -> String {
    let resources = portrait.resources;
    let mut parts = vec![
        portrait.target.to_string(),
        format!("{} registers", resources.registers),
        format!("{} instructions", portrait.instructions.len()),
    ];
    match resources.spill_store_bytes + resources.spill_load_bytes {
        0 => parts.push("no spills".to_owned()),
        bytes => parts.push(format!("{bytes} bytes spilled")),
    }
    if resources.shared_bytes > 0 {
        parts.push(format!("{} bytes of shared memory", resources.shared_bytes));
    }
    if let Some(occupancy) = portrait.occupancy {
        parts.push(format!("{}% occupancy, limited by {}", occupancy.percent(), occupancy.limiter));
    }
    parts.join(" · ")
}

/// A self-contained page with the pictures of functions. `link` is an address with `{line}` in place of a line number;
/// with it, the blocks of the control-flow graph link to their first lines.
pub fn page(title: &str, portraits: &[Portrait], link: Option<&str>) -> String {
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    let _ = write!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>:root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}\
         body.vscode-light{{{LIGHT}}}body.vscode-dark,body.vscode-high-contrast{{{DARK}}}\
         body.vscode-light,body.vscode-dark,body.vscode-high-contrast{{--paper:var(--vscode-editor-background);\
         --ink:var(--vscode-editor-foreground)}}\
         body{{background:var(--paper);color:var(--ink);font:14px system-ui,'DejaVu Sans',sans-serif;margin:1.5em}}\
         h1,.name{{overflow-wrap:anywhere}}h1{{font-size:1.3em;margin:.4em 0 .1em}}.name{{font-size:.85em}}h2{{font-size:1.05em;margin:1.6em 0 .5em}}p{{color:var(--soft);margin:0}}\
         svg{{max-width:max(100%,520px);height:auto}}{STYLE}</style></head>\n<body>\n",
        escape(title)
    );
    for portrait in portraits {
        let (name, line) = (heading(&portrait.function), escape(&summary(portrait)));
        let _ = writeln!(out, "{name}<p>{line}</p>");
        for picture in pictures(portrait, link) {
            let Picture { title, body, width, height } = picture;
            let title = escape(&title);
            let _ = write!(
                out,
                "<h2>{title}</h2>\n<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
                 role=\"img\" aria-label=\"{title}\">\n{body}</svg>\n"
            );
        }
    }
    out.push_str("</body></html>\n");
    out
}

/// The demangled name of a function, and below it the name in the file.
fn heading(function: &str) -> String {
    match ide::readable(function) {
        Some(readable) => {
            format!("<h1>{}</h1>\n<p class=\"name\">{}</p>\n", escape(&readable), escape(function))
        }
        None => format!("<h1>{}</h1>\n", escape(function)),
    }
}

/// A page that says why there are no pictures.
pub fn apology(function: &str, why: &str) -> String {
    let start = format!("<body>\n{}<p>{}</p>\n", heading(function), escape(why));
    page(function, &[], None).replace("<body>\n", &start)
}

/// All pictures in one SVG, one below the other.
pub fn svg(portraits: &[Portrait]) -> String {
    const MARGIN: u32 = 20;
    let (mut inner, mut y, mut widest) = (String::new(), MARGIN, 400);
    for portrait in portraits {
        let name = ide::readable(&portrait.function).unwrap_or_else(|| portrait.function.clone());
        let (name, line) = (escape(&name), escape(&summary(portrait)));
        let _ = write!(
            inner,
            "<text x=\"{MARGIN}\" y=\"{}\" style=\"font-size:18px;font-weight:600\">{name}</text>\n\
             <text class=\"soft\" x=\"{MARGIN}\" y=\"{}\">{line}</text>\n",
            y + 16,
            y + 36
        );
        y += 56;
        for picture in pictures(portrait, None) {
            let _ = write!(
                inner,
                "<text class=\"bold\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n<g transform=\"translate({MARGIN} {})\">\n{}</g>\n",
                y + 12,
                escape(&picture.title),
                y + 24,
                picture.body
            );
            y += picture.height + 44;
            widest = widest.max(picture.width + 2 * MARGIN);
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{widest}\" height=\"{y}\" viewBox=\"0 0 {widest} {y}\">\n\
         <style>svg{{{LIGHT}}}@media(prefers-color-scheme:dark){{svg{{{DARK}}}}}{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n{inner}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::Database;

    const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n)\n{\n\
        .reg .b32 %r<9>;\n.reg .f32 %f<5>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\nld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\n\
        mov.u32 %r2, 0;\nL:\natom.global.add.u32 %r3, [%rd1], %r2;\nadd.s32 %r2, %r2, %r3;\nsetp.lt.u32 %p, %r2, %r1;\n\
        @%p bra L;\nmov.f32 %f1, 0f00000000;\n\
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r1}, {%r2, %r3}, {%f1, %f1, %f1, %f1};\n\
        st.global.f32 [%rd1], %f1;\nret;\n}\n";

    fn portraits() -> Vec<Portrait> {
        let db = Database::default();
        let file = db.add_file(KERNEL);
        ide::portraits(&db, file)
    }

    #[test]
    fn a_kernel_has_all_pictures() {
        let all = portraits();
        let titles: Vec<String> = pictures(&all[0], None).into_iter().map(|picture| picture.title).collect();
        assert_eq!(titles.len(), 7, "{titles:?}");
        for (i, start) in
            ["Live registers", "Occupancy", "Control flow", "Fragment d", "Fragment a"].iter().enumerate()
        {
            assert!(titles[i].starts_with(start), "{titles:?}");
        }
        let page = page("k", &all, None);
        assert!(!page.contains("<script") && page.contains("Content-Security-Policy"));
        for text in ["registers allocated", "current", "issue cycles", "lane 5"] {
            assert!(page.contains(text), "no {text}");
        }
        for number in ["NaN", "inf"] {
            assert!(!page.contains(&format!("\"{number}")), "{number} as a coordinate");
        }
    }

    #[test]
    fn blocks_name_their_lines_and_lead_to_them() {
        let all = portraits();
        let text = page("k", &all, Some("go:{line}?a&b"));
        let described = blocks(&all[0]);
        let lines: Vec<Option<u32>> = described.iter().map(|block| block.line).collect();
        assert_eq!(text.matches("<a href=").count(), lines.len());
        for line in lines.iter().flatten() {
            assert!(text.contains(&format!("<a href=\"go:{line}?a&amp;b\">")), "no link to {line}");
        }
        // The loop: `atom`, `add`, `setp` and the branch.
        assert!(text.contains("<title>B1: lines 14–17\nMOV "), "{text}");
        let found = described[1].text.as_str();
        assert!(found.starts_with("B1 ") && found.contains("lines 14–17 · "), "{found}");
        // Threads yield in a separate block before each further iteration.
        assert!(found.ends_with("loop depth 1 → B2, B4"), "{found}");
        assert!(!page("k", &all, None).contains("<a "));
        let body = text.find("<h1>").expect("a body")..text.find("</body>").expect("its end");
        assert_well_formed(&text[body]);
    }

    #[test]
    fn the_drawing_is_well_formed() {
        assert_well_formed(&svg(&portraits()));
    }

    /// Checks that every opened tag is closed, in order.
    fn assert_well_formed(text: &str) {
        let mut open = Vec::new();
        for piece in text.split('<').skip(1) {
            let tag = piece.split('>').next().unwrap_or_default();
            let name = tag.split([' ', '\n', '/']).find(|word| !word.is_empty()).unwrap_or_default();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "in {tag}");
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn names_are_text() {
        let mut all = portraits();
        all[0].function = "k<script>&".to_owned();
        assert!(page("<b>", &all, None).contains("k&lt;script&gt;&amp;"));
    }
}
