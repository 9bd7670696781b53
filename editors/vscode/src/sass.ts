// The machine code of the function under the cursor, or its text after a stage of the compiler, in an editor beside the
// PTX. The view follows the cursor from
// function to function and is updated after every edit; outdated code is gray. A selection in one editor marks the
// matching lines in the other. In machine code, cells beside each instruction show its live registers and its stall cycles; higher
// figures are redder.

import * as vscode from 'vscode';
import { heatCells } from './heat';
import { Server } from './server';

export interface Place {
    function?: string;
    position?: vscode.Position;
}

interface Range {
    start: { line: number; character: number };
    end: { line: number; character: number };
}

interface Answer {
    function: string;
    text: string;
    lines: (Range | null)[];
    heat: ([number, number] | null)[];
    hasCode: boolean;
}

interface Shown extends Answer {
    source: vscode.Uri;
    /** The version of the source text that was compiled. */
    version: number;
}

const CONTROLS = ['codes', 'words', 'hidden'] as const;
type Controls = typeof CONTROLS[number];

export const SCHEME = 'ptx-sass';
export const LANGUAGE = 'ptx-sass';
/** The delay after the last keystroke or cursor movement, in milliseconds. */
const PAUSE = 150;
/** The lines above and below the visible ones that get cells. Each cell is a separate style; thousands are slow. */
const AROUND = 150;

export function notInside(): void {
    void vscode.window.showInformationMessage('PTX: the cursor is not inside a function.');
}

export class SassView implements vscode.TextDocumentContentProvider, vscode.DefinitionProvider, vscode.DocumentLinkProvider,
    vscode.Disposable {
    private readonly uri: vscode.Uri;
    /** The stage of the compiler that is shown instead of the machine code. */
    private stage: string | undefined;
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    private readonly refreshed = new vscode.EventEmitter<{ source: vscode.Uri; place: Place }>();
    private shown: Shown | undefined;
    private reason = '';
    /** What is different since the last save. */
    private difference = '';
    private timer: NodeJS.Timeout | undefined;
    /** The number of requests sent. Only the answer to the last one is used. */
    private asked = 0;
    private readonly mark = vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor('editor.selectionHighlightBackground'),
        overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.selectionHighlightForeground'),
    });
    private readonly stale = vscode.window.createTextEditorDecorationType({ opacity: '0.45' });
    private readonly note = vscode.window.createTextEditorDecorationType({
        after: { color: new vscode.ThemeColor('editorWarning.foreground'), margin: '0 0 0 2em' },
    });
    private readonly heat = vscode.window.createTextEditorDecorationType({
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    });
    /** For each editor, the lines that have cells and the code that the cells describe. */
    private heated = new WeakMap<vscode.TextEditor, { shown: Shown; isStale: boolean; first: number; end: number }>();
    private readonly subscriptions: vscode.Disposable[];

    readonly onDidChange = this.changed.event;
    /** Fired when the shown function was compiled again or another function is shown. */
    readonly onDidRefresh = this.refreshed.event;

    constructor(
        private readonly server: Server, private readonly memory: vscode.Memento,
        private readonly scheme = SCHEME, name = 'SASS',
    ) {
        this.uri = vscode.Uri.from({ scheme, path: `/${name}` });
        const selector = { scheme };
        this.subscriptions = [
            vscode.workspace.registerTextDocumentContentProvider(scheme, this),
            vscode.languages.registerDefinitionProvider(selector, this),
            vscode.languages.registerDocumentLinkProvider(selector, this),
            vscode.window.onDidChangeTextEditorSelection(event => this.moved(event.textEditor)),
            vscode.window.onDidChangeActiveTextEditor(editor => editor && this.moved(editor)),
            vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
            vscode.window.onDidChangeTextEditorVisibleRanges(event => this.showHeat(event.textEditor)),
            vscode.workspace.onDidChangeTextDocument(event => this.edited(event.document)),
            vscode.workspace.onDidSaveTextDocument(document => this.edited(document)),
            vscode.workspace.onDidCloseTextDocument(document => this.closed(document.uri)),
        ];
    }

    provideTextDocumentContent(): string {
        return this.shown?.text ?? '';
    }

    /** The PTX statement that an instruction comes from. */
    provideDefinition(document: vscode.TextDocument, position: vscode.Position): vscode.Location | undefined {
        const range = this.shown?.lines[position.line];
        return this.shown && range && document.uri.toString() === this.uri.toString()
            ? new vscode.Location(this.shown.source, new vscode.Position(range.start.line, range.start.character))
            : undefined;
    }

    /** If the function has no code, a link to the statement that cannot be compiled. */
    provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
        if (!this.shown || this.shown.hasCode || document.uri.toString() !== this.uri.toString()) {
            return [];
        }
        const { lines, source } = this.shown;
        return lines.flatMap((range, line) => {
            if (!range || line >= document.lineCount) {
                return [];
            }
            const target = source.with({ fragment: `L${range.start.line + 1},${range.start.character + 1}` });
            const link = new vscode.DocumentLink(document.lineAt(line).range, target);
            link.tooltip = 'Go to the statement';
            return [link];
        });
    }

    /** Opens the machine code of a function of `source`. */
    async show(source: vscode.Uri, place: Place): Promise<void> {
        if (!this.server.client) {
            this.server.missing();
            return;
        }
        const answer = await this.ask(source, place).catch(() => undefined);
        if (!answer) {
            notInside();
            return;
        }
        this.take(answer);
        const opened = await vscode.workspace.openTextDocument(this.uri);
        const document = await vscode.languages.setTextDocumentLanguage(opened, LANGUAGE);
        await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: false });
        this.decorate();
        void this.compareWithSaved();
    }

    /** Asks for a stage of the compiler, and shows the function after it. */
    async chooseStage(place: { source: vscode.Uri; place: Place } | undefined): Promise<void> {
        if (!this.server.client) {
            this.server.missing();
            return;
        }
        if (!place) {
            notInside();
            return;
        }
        const stages = await this.server.client.sendRequest<{ name: string; about: string }[]>('ptx/stages', {});
        const choices = stages.map(stage => ({ label: stage.name, detail: stage.about, picked: stage.name === this.stage }));
        const choice = await vscode.window.showQuickPick(choices, { placeHolder: 'Show the function after', matchOnDetail: true });
        if (choice) {
            this.stage = choice.label;
            this.shown = undefined;
            await this.show(place.source, place.place);
        }
    }

    /** Switches the display of control words: a column of codes, words, or hidden. */
    async switchControls(): Promise<void> {
        const next = CONTROLS[(CONTROLS.indexOf(this.controls) + 1) % CONTROLS.length];
        await this.memory.update('sass.controls', next);
        if (this.shown) {
            await this.refresh(this.shown.source, { function: this.shown.function });
        }
    }

    private get controls(): Controls {
        return this.memory.get<Controls>('sass.controls', 'codes');
    }

    /** The place that a command applies to: the cursor in a PTX editor, otherwise the function shown in the view. */
    place(): { source: vscode.Uri; place: Place } | undefined {
        const editor = vscode.window.activeTextEditor;
        if (editor?.document.languageId === 'ptx') {
            return { source: editor.document.uri, place: { position: editor.selection.active } };
        }
        return this.shown && { source: this.shown.source, place: { function: this.shown.function } };
    }

    /** The server's answer, if any, with the version of the text at this time. Throws if the request is cancelled. */
    private async ask(source: vscode.Uri, place: Place): Promise<Shown | undefined> {
        const document = vscode.workspace.textDocuments.find(open => open.uri.toString() === source.toString());
        const version = document?.version ?? 0;
        const parameters = { textDocument: { uri: source.toString() }, ...place, controls: this.controls, live: false, stage: this.stage };
        const answer = await this.server.client?.sendRequest<Answer | null>('ptx/sassView', parameters);
        return answer ? { ...answer, source, version } : undefined;
    }

    private take(shown: Shown): void {
        if (!shown.hasCode && this.shown?.hasCode && this.shown.function === shown.function && this.isSource(shown.source)) {
            // Keep the old code: it is more useful than the reason alone.
            this.reason = shown.text.split('\n')[0].replace(/^\/\/ /, '').trim();
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
        this.refreshed.fire({ source: shown.source, place: { function: shown.function } });
    }

    /** Shows in the first line what has changed since the last save. */
    private async compareWithSaved(): Promise<void> {
        const shown = this.shown;
        const source = vscode.workspace.textDocuments.find(document => this.isSource(document.uri));
        this.difference = '';
        if (!this.stage && shown?.hasCode && source?.isDirty && source.uri.scheme === 'file') {
            const parameters = { textDocument: { uri: source.uri.toString() }, function: shown.function, with: { saved: true } };
            const answer = await this.server.client?.sendRequest<{ summary: string } | null>('ptx/sassDifference', parameters).catch(() => null);
            if (this.shown !== shown) {
                return;
            }
            this.difference = answer ? `${answer.summary} since the last save` : '';
        }
        this.decorate();
    }

    private get isOpen(): boolean {
        return vscode.workspace.textDocuments.some(document => document.uri.scheme === this.scheme && !document.isClosed);
    }

    private isSource(uri: vscode.Uri): boolean {
        return this.shown?.source.toString() === uri.toString();
    }

    private moved(editor: vscode.TextEditor): void {
        // A change of the text also moves the cursor of an editor without focus; ignore this movement.
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
        if (document.uri.scheme === this.scheme) {
            // A change of the text removes its cells.
            this.heated = new WeakMap();
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
        const own = ++this.asked;
        let answer: Shown | undefined;
        try {
            answer = await this.ask(source, place);
        } catch {
            // This text or another one changed while the server worked, which cancelled the request.
            if (own === this.asked && this.server.client) {
                this.soon(() => this.refresh(source, place));
            }
            return;
        }
        if (own !== this.asked) {
            return;
        }
        if (answer) {
            this.take(answer);
            await this.compareWithSaved();
        } else if (place.function) {
            this.reason = 'the function no longer exists';
            this.decorate();
        }
    }

    /** Whether the text has changed since it was compiled. */
    private get isStale(): boolean {
        const source = vscode.workspace.textDocuments.find(document => this.isSource(document.uri));
        return source !== undefined && source.version !== this.shown?.version;
    }

    /** Marks the lines that correspond to the cursor's line, in both editors. */
    private decorate(): void {
        const editors = vscode.window.visibleTextEditors;
        const views = editors.filter(editor => editor.document.uri.toString() === this.uri.toString());
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
            const text = isStale ? this.reason : this.difference;
            const note = { range: new vscode.Range(end, end), renderOptions: { after: { contentText: text } } };
            view.setDecorations(this.note, text ? [note] : []);
            this.showHeat(view);
        }
        // Ranges of the old text are invalid in the new one.
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

    /** Adds cells to the visible lines and some lines around them, unless they already have cells. */
    private showHeat(view: vscode.TextEditor): void {
        const shown = this.shown;
        // As long as the document has its old text, the figures do not match its lines.
        if (!shown || view.document.uri.toString() !== this.uri.toString() || view.document.lineCount < shown.heat.length) {
            return;
        }
        const isStale = this.isStale;
        const top = view.visibleRanges[0]?.start.line ?? 0;
        const bottom = view.visibleRanges[view.visibleRanges.length - 1]?.end.line ?? 0;
        const last = this.heated.get(view);
        const isEnough = last?.shown === shown && last.isStale === isStale
            && (last.first === 0 || last.first + AROUND / 3 <= top) && (last.end === shown.heat.length || bottom + AROUND / 3 < last.end);
        if (!isEnough) {
            const [first, end] = [Math.max(0, top - AROUND), Math.min(shown.heat.length, bottom + AROUND)];
            this.heated.set(view, { shown, isStale, first, end });
            view.setDecorations(this.heat, heatCells(shown.heat, isStale, first, end));
        }
    }

    private highlight(editor: vscode.TextEditor, ranges: vscode.Range[], reveals: boolean): void {
        editor.setDecorations(this.mark, ranges);
        if (reveals && ranges.length > 0) {
            editor.revealRange(ranges[0], vscode.TextEditorRevealType.InCenterIfOutsideViewport);
        }
    }

    private closed(uri: vscode.Uri): void {
        // A change of its language also reports a document as closed, but it stays in the list of open documents.
        const isOpen = vscode.workspace.textDocuments.some(document => document.uri.toString() === this.uri.toString());
        if (uri.toString() === this.uri.toString() && !isOpen) {
            this.shown = undefined;
            vscode.window.visibleTextEditors.forEach(editor => editor.setDecorations(this.mark, []));
        }
    }

    dispose(): void {
        clearTimeout(this.timer);
        vscode.Disposable.from(...this.subscriptions, this.mark, this.stale, this.note, this.heat, this.changed, this.refreshed).dispose();
    }
}

function line(at: number): vscode.Range {
    return new vscode.Range(at, 0, at, 0);
}
