// The machine code of the function under the cursor, in an editor beside the PTX. It follows the cursor from function to
// function and every edit; what is older than the text is grey. The selection in either marks lines in the other.

import * as vscode from 'vscode';
import { Server } from './server';

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
    /** Of the source's text that was compiled. */
    version: number;
    /** Without, the text says why there is none. */
    hasCode: boolean;
}

export const SCHEME = 'ptx-sass';
const LANGUAGE = 'ptx-sass';
/** After the last keystroke, and after the last movement of the cursor, in milliseconds. */
const PAUSE = 150;

export class SassView implements vscode.TextDocumentContentProvider, vscode.FoldingRangeProvider, vscode.Disposable {
    private readonly uri = vscode.Uri.from({ scheme: SCHEME, path: '/SASS' });
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    private shown: Shown | undefined;
    private reason = '';
    private timer: NodeJS.Timeout | undefined;
    private readonly mark = vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor('editor.selectionHighlightBackground'),
        overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.selectionHighlightForeground'),
    });
    private readonly stale = vscode.window.createTextEditorDecorationType({ opacity: '0.45' });
    private readonly note = vscode.window.createTextEditorDecorationType({
        after: { color: new vscode.ThemeColor('editorWarning.foreground'), margin: '0 0 0 2em' },
    });
    private readonly subscriptions: vscode.Disposable[];

    readonly onDidChange = this.changed.event;

    constructor(private readonly server: Server) {
        this.subscriptions = [
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.languages.registerFoldingRangeProvider({ language: LANGUAGE }, this),
            vscode.window.onDidChangeTextEditorSelection(event => this.moved(event.textEditor)),
            vscode.window.onDidChangeActiveTextEditor(editor => editor && this.moved(editor)),
            vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
            vscode.workspace.onDidChangeTextDocument(event => this.edited(event.document)),
            vscode.workspace.onDidCloseTextDocument(document => this.closed(document.uri)),
        ];
    }

    provideTextDocumentContent(): string {
        return this.shown?.text ?? '';
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

    /** Opens the machine code of a function of `source`. */
    async show(source: vscode.Uri, place: Place): Promise<void> {
        if (!this.server.client) {
            this.server.missing();
            return;
        }
        const answer = await this.ask(source, place);
        if (!answer) {
            void vscode.window.showInformationMessage('PTX: the cursor is not inside a function.');
            return;
        }
        this.take(answer);
        const opened = await vscode.workspace.openTextDocument(this.uri);
        const document = await vscode.languages.setTextDocumentLanguage(opened, LANGUAGE);
        await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: false });
        this.decorate();
    }

    /** `undefined` where the server has nothing to say, with the text's version at the time of asking. */
    private async ask(source: vscode.Uri, place: Place): Promise<Shown | undefined> {
        const document = vscode.workspace.textDocuments.find(open => open.uri.toString() === source.toString());
        const version = document?.version ?? 0;
        const parameters = { textDocument: { uri: source.toString() }, ...place };
        const answer = await this.server.client?.sendRequest<Answer | null>('ptx/sassView', parameters).catch(() => null);
        return answer ? { ...answer, source, version, hasCode: /^\/\*/m.test(answer.text) } : undefined;
    }

    private take(shown: Shown): void {
        if (!shown.hasCode && this.shown?.hasCode && this.shown.function === shown.function && this.isSource(shown.source)) {
            // The code as it was is worth more than the reason alone.
            this.reason = shown.text.replace(/^\/\/ /, '').trim();
            this.decorate();
            return;
        }
        const isNew = this.shown?.text !== shown.text;
        this.shown = shown;
        this.reason = '';
        if (isNew) {
            this.changed.fire(this.uri);
        }
        this.decorate();
    }

    private get isOpen(): boolean {
        return vscode.workspace.textDocuments.some(document => document.uri.scheme === SCHEME && !document.isClosed);
    }

    private isSource(uri: vscode.Uri): boolean {
        return this.shown?.source.toString() === uri.toString();
    }

    private moved(editor: vscode.TextEditor): void {
        // New text also moves the cursor of an editor without focus.
        if (!this.shown || !this.isOpen || editor !== vscode.window.activeTextEditor) {
            return;
        }
        this.decorate();
        if (editor.document.languageId === 'ptx') {
            const line = editor.selection.active.line;
            const known = this.shown.lines.flatMap(range => (range ? [range.start.line, range.end.line] : []));
            const isInside = this.isSource(editor.document.uri) && this.shown.version === editor.document.version
                && line >= Math.min(...known) && line <= Math.max(...known);
            if (!isInside) {
                this.soon(() => this.refresh(editor.document.uri, { position: editor.selection.active }));
            }
        }
    }

    private edited(document: vscode.TextDocument): void {
        if (document.uri.scheme === SCHEME) {
            this.decorate();
        } else if (this.shown && this.isSource(document.uri) && this.isOpen) {
            this.decorate();
            const name = this.shown.function;
            this.soon(() => this.refresh(document.uri, { function: name }));
        }
    }

    private soon(act: () => Promise<void>): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void act(), PAUSE);
    }

    private async refresh(source: vscode.Uri, place: Place): Promise<void> {
        const answer = await this.ask(source, place);
        if (answer) {
            this.take(answer);
        } else if (place.function) {
            this.reason = 'there is no such function any more';
            this.decorate();
        }
    }

    /** Whether the text has changed since it was compiled. */
    private get isStale(): boolean {
        const source = vscode.workspace.textDocuments.find(document => this.isSource(document.uri));
        return source !== undefined && source.version !== this.shown?.version;
    }

    /** Marks the lines that belong to the cursor's, in both directions. */
    private decorate(): void {
        const editors = vscode.window.visibleTextEditors;
        const views = editors.filter(editor => editor.document.uri.scheme === SCHEME);
        const sources = editors.filter(editor => this.isSource(editor.document.uri));
        if (views.length === 0 || !this.shown) {
            sources.forEach(editor => editor.setDecorations(this.mark, []));
            return;
        }
        const { lines } = this.shown;
        const isStale = this.isStale;
        for (const view of views) {
            const whole = new vscode.Range(0, 0, view.document.lineCount, 0);
            view.setDecorations(this.stale, isStale ? [whole] : []);
            const end = view.document.lineAt(0).range.end;
            const note = { range: new vscode.Range(end, end), renderOptions: { after: { contentText: this.reason } } };
            view.setDecorations(this.note, isStale && this.reason ? [note] : []);
        }
        // Ranges of an older text mean nothing in the new one.
        const cursor = isStale ? undefined : vscode.window.activeTextEditor;
        if (cursor && views.includes(cursor)) {
            const own = lines[cursor.selection.active.line];
            const range = own ? new vscode.Range(own.start.line, 0, own.end.line, 0) : undefined;
            sources.forEach(editor => this.highlight(editor, range ? [range] : [], true));
            const together = lines.flatMap((other, i) => (own && other?.start.line === own.start.line ? [line(i)] : []));
            views.forEach(editor => this.highlight(editor, together, false));
        } else {
            const source = isStale ? undefined : (sources.find(editor => editor === cursor) ?? sources[0]);
            const at = source?.selection.active.line;
            const marked = lines.flatMap((range, i) => (range && at !== undefined && range.start.line <= at && at <= range.end.line ? [line(i)] : []));
            views.forEach(editor => this.highlight(editor, marked, true));
            sources.forEach(editor => this.highlight(editor, at !== undefined && marked.length > 0 ? [line(at)] : [], false));
        }
    }

    private highlight(editor: vscode.TextEditor, ranges: vscode.Range[], reveals: boolean): void {
        editor.setDecorations(this.mark, ranges);
        if (reveals && ranges.length > 0) {
            editor.revealRange(ranges[0], vscode.TextEditorRevealType.InCenterIfOutsideViewport);
        }
    }

    private closed(uri: vscode.Uri): void {
        if (uri.scheme === SCHEME) {
            this.shown = undefined;
            vscode.window.visibleTextEditors.forEach(editor => editor.setDecorations(this.mark, []));
        }
    }

    dispose(): void {
        clearTimeout(this.timer);
        vscode.Disposable.from(...this.subscriptions, this.mark, this.stale, this.note, this.changed).dispose();
    }
}

function line(at: number): vscode.Range {
    return new vscode.Range(at, 0, at, 0);
}
