// Features of every document with machine code: hovers and folding.

import * as vscode from 'vscode';
import { LANGUAGE } from './sass';
import { Server } from './server';

/** The code of a control word, a constant, or the name of an instruction or an operand with its suffixes. */
const WORD = /\bB[-\d]{6}:R[-\d]:W[-\d]:[-Y]:S\d\d|\bc\[0x[\da-f]+\]\[[^\]]*\]|\b[A-Z][\w.]*/;

export class MachineCode implements vscode.HoverProvider, vscode.FoldingRangeProvider {
    constructor(private readonly server: Server) {}

    register(): vscode.Disposable {
        const selector = { language: LANGUAGE };
        return vscode.Disposable.from(
            vscode.languages.registerHoverProvider(selector, this),
            vscode.languages.registerFoldingRangeProvider(selector, this),
        );
    }

    /** What the word under the cursor means. */
    async provideHover(document: vscode.TextDocument, position: vscode.Position): Promise<vscode.Hover | undefined> {
        const range = document.getWordRangeAtPosition(position, WORD);
        const comment = document.lineAt(position.line).text.indexOf('//');
        if (!range || !this.server.client || (comment >= 0 && comment < range.start.character)) {
            return undefined;
        }
        // With `true`, the server returns the page and leaves its display to the client. Other words have no page.
        const parameters = { command: 'ptx.explain', arguments: [document.getText(range), true] };
        const page = await this.server.client.sendRequest<string | null>('workspace/executeCommand', parameters).catch(() => null);
        return page ? new vscode.Hover(new vscode.MarkdownString(page), range) : undefined;
    }

    /** Each line of PTX folds the machine code below it. */
    provideFoldingRanges(document: vscode.TextDocument): vscode.FoldingRange[] {
        const heads: number[] = [];
        for (let line = 0; line < document.lineCount; line++) {
            if (document.lineAt(line).text.startsWith('//')) {
                heads.push(line);
            }
        }
        const ends = [...heads.slice(1), document.lineCount];
        return heads.map((head, i) => new vscode.FoldingRange(head, ends[i] - 1)).filter(range => range.end > range.start);
    }
}
