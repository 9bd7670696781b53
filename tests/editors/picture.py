#!/usr/bin/env python3
"""Draws a captured terminal screen (`tmux capture-pane -e -p`) as SVG.

  CAPTURE=screen.ansi tests/editors/neovim.sh && tests/editors/picture.py screen.ansi > screen.svg
"""
import re, sys
from html import escape

WIDTH, HEIGHT, INK, PAPER = 8.4, 18, "#e0e2ea", "#14161b"
BASE = ["#07080d", "#ffc0b9", "#b3f6c0", "#fce094", "#a6dbff", "#ffcaff", "#8cf8f7", "#eef1f8"]


def color(codes):
    """Returns the color that follows a code 38 or 48, and removes its codes from the list."""
    if codes.pop(0) == 2:
        return "#%02x%02x%02x" % (codes.pop(0), codes.pop(0), codes.pop(0))
    n = codes.pop(0)
    if n < 16: return BASE[n % 8]
    if n >= 232: return "#%02x%02x%02x" % ((8 + (n - 232) * 10,) * 3)
    level = lambda v: 0 if v == 0 else 55 + 40 * v
    return "#%02x%02x%02x" % (level((n - 16) // 36), level((n - 16) // 6 % 6), level((n - 16) % 6))


def runs(line, style):
    """Yields the pieces of a line with their styles. `style` is kept for the next line."""
    for escape_codes, text in re.findall(r"\x1b\[([\d;:]*)m|([^\x1b]+)", line):
        if text:
            yield text, dict(style)
            continue
        codes = [int(c or 0) for c in re.sub(r"4:\d", "4", escape_codes).replace(":", ";").split(";")]
        while codes:
            c = codes.pop(0)
            if c == 0: style.clear()
            elif c == 1: style["bold"] = True
            elif c == 3: style["italic"] = True
            elif c == 4: style["underline"] = True
            elif c == 7: style["reverse"] = True
            elif c == 22: style.pop("bold", None)
            elif c == 23: style.pop("italic", None)
            elif c == 24: style.pop("underline", None)
            elif c == 27: style.pop("reverse", None)
            elif c in (38, 48): style["ink" if c == 38 else "paper"] = color(codes)
            elif c == 58: color(codes)
            elif c == 39: style.pop("ink", None)
            elif c == 49: style.pop("paper", None)
            elif 30 <= c <= 37: style["ink"] = BASE[c - 30]
            elif 40 <= c <= 47: style["paper"] = BASE[c - 40]
            elif 90 <= c <= 97: style["ink"] = BASE[c - 90]


def main():
    lines = open(sys.argv[1], encoding="utf-8").read().rstrip("\n").split("\n")
    columns = max(len(re.sub(r"\x1b\[[\d;:]*m", "", line)) for line in lines)
    width, height = columns * WIDTH + 16, len(lines) * HEIGHT + 16
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
          f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">')
    print(f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>')
    style = {}
    for row, line in enumerate(lines):
        column, y = 0, 8 + row * HEIGHT
        for text, s in runs(line, style):
            ink, paper = s.get("ink", INK), s.get("paper", PAPER)
            if "reverse" in s: ink, paper = paper, ink
            x, length = 8 + column * WIDTH, len(text) * WIDTH
            if paper != PAPER:
                print(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{HEIGHT}" fill="{paper}"/>')
            # Browsers draw several blanks as one, so text between them gets its own position.
            for piece in re.finditer(r"[^ ]+(?: [^ ]+)*", text):
                extra = ' font-weight="bold"' if "bold" in s else ""
                extra += ' font-style="italic"' if "italic" in s else ""
                extra += ' text-decoration="underline"' if "underline" in s else ""
                print(f'<text x="{x + piece.start() * WIDTH:.1f}" y="{y + 13}" '
                      f'textLength="{len(piece[0]) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" '
                      f'fill="{ink}"{extra}>{escape(piece[0])}</text>')
            column += len(text)
    print("</svg>")


main()
