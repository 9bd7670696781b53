// Cells before the instructions show live registers and stall cycles; higher figures are redder.

import * as vscode from 'vscode';

const SPACE = '\u00a0';
/** The cell text of lines without an instruction. */
const BLANK = SPACE.repeat(8);

/** The color for a share of the maximum: transparent at 0, red at 1. */
function color(share: number): string {
    const hue = Math.round(55 - 55 * share);
    return `hsla(${hue}, 90%, 50%, ${(0.55 * share).toFixed(2)})`;
}

function cell(text: string, share: number | undefined): vscode.ThemableDecorationAttachmentRenderOptions {
    if (share === undefined) {
        return { contentText: text, color: new vscode.ThemeColor('disabledForeground') };
    }
    return { contentText: text, backgroundColor: color(share), color: new vscode.ThemeColor('editor.foreground') };
}

/** The cells of lines `first` to `end - 1`. Lines without figures get blanks; stale cells get no color. */
export function heatCells(heat: ([number, number] | null)[], isStale: boolean, first: number, end: number): vscode.DecorationOptions[] {
    const most = (index: 0 | 1) => Math.max(1, ...heat.map(figures => figures?.[index] ?? 0));
    const [mostLive, mostStall] = [most(0), most(1)];
    return heat.slice(first, end).map((figures, index): vscode.DecorationOptions => {
        const at = new vscode.Range(first + index, 0, first + index, 0);
        if (!figures) {
            return { range: at, renderOptions: { before: { contentText: BLANK } } };
        }
        const [live, stall] = figures;
        const hover = `${live} live register${live === 1 ? '' : 's'} before it; ${stall} cycle${stall === 1 ? '' : 's'} until the next instruction of the warp`;
        const padded = (value: number, width: number) => `${SPACE}${String(value).padStart(width, SPACE)}`;
        return {
            range: at,
            hoverMessage: hover,
            renderOptions: {
                before: cell(padded(live, 3), isStale ? undefined : live / mostLive),
                after: { ...cell(padded(stall, 2), isStale ? undefined : stall / mostStall), margin: '0 1ch 0 0' },
            },
        };
    });
}
