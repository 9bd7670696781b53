// The machine code of a function in an editor beside the PTX; the selection in one marks lines in the other.

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

interface Place {
    function?: string;
    position?: vscode.Position;
}

interface Answer {
    function: string;
    text: string;
    lines: ({ start: { line: number }; end: { line: number } } | null)[];
}

interface Shown extends Answer {
    source: vscode.Uri;
}

const SCHEME = 'ptx-sass';

export class SassView implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    private readonly shown = new Map<string, Shown>();
    private readonly mark = vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor('editor.rangeHighlightBackground'),
    });
    private readonly subscriptions: vscode.Disposable[];

    readonly onDidChange = this.changed.event;

    constructor(private readonly client: () => LanguageClient | undefined) {
        this.subscriptions = [
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.window.onDidChangeTextEditorSelection(event => this.follow(event.textEditor)),
            vscode.workspace.onDidSaveTextDocument(document => this.refresh(document.uri)),
            vscode.workspace.onDidCloseTextDocument(document => this.shown.delete(document.uri.toString())),
        ];
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.shown.get(uri.toString())?.text ?? '';
    }

    /** Opens the machine code of a function of `source`, or brings it up to date. */
    async show(source: vscode.Uri, place: Place): Promise<void> {
        if (!this.client()) {
            void vscode.window.showWarningMessage('PTX: the language server is not running.', 'Start').then(answer => {
                if (answer) {
                    void vscode.commands.executeCommand('ptx.restart');
                }
            });
            return;
        }
        const answer = await this.ask(source, place);
        if (!answer) {
            void vscode.window.showInformationMessage('PTX: there is no function at the cursor.');
            return;
        }
        const uri = this.keep(source, answer);
        const document = await vscode.workspace.openTextDocument(uri);
        await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
    }

    private async ask(source: vscode.Uri, place: Place): Promise<Answer | null> {
        const parameters = { textDocument: { uri: source.toString() }, ...place };
        return (await this.client()?.sendRequest<Answer | null>('ptx/sassView', parameters)) ?? null;
    }

    private keep(source: vscode.Uri, answer: Answer): vscode.Uri {
        const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${answer.function}.sass`, query: source.toString() });
        this.shown.set(uri.toString(), { ...answer, source });
        this.changed.fire(uri);
        return uri;
    }

    private async refresh(source: vscode.Uri): Promise<void> {
        for (const shown of [...this.shown.values()]) {
            if (shown.source.toString() === source.toString()) {
                const answer = await this.ask(source, { function: shown.function });
                if (answer) {
                    this.keep(source, answer);
                }
            }
        }
    }

    private follow(editor: vscode.TextEditor): void {
        const here = editor.document.uri.toString();
        const line = editor.selection.active.line;
        for (const [view, shown] of this.shown) {
            if (view === here) {
                const range = shown.lines[line];
                this.reveal(shown.source.toString(), range ? [range.start.line] : []);
            } else if (shown.source.toString() === here) {
                const lines = shown.lines.flatMap((range, i) => (range?.start.line === line ? [i] : []));
                this.reveal(view, lines);
            }
        }
    }

    private reveal(uri: string, lines: number[]): void {
        for (const editor of vscode.window.visibleTextEditors) {
            if (editor.document.uri.toString() === uri) {
                const ranges = lines.map(line => new vscode.Range(line, 0, line, 0));
                editor.setDecorations(this.mark, ranges);
                if (ranges.length > 0) {
                    editor.revealRange(ranges[0], vscode.TextEditorRevealType.InCenterIfOutsideViewport);
                }
            }
        }
    }

    dispose(): void {
        vscode.Disposable.from(...this.subscriptions, this.mark, this.changed).dispose();
    }
}
