// Pictures of the function whose code is shown or which is under the cursor. The server draws them. The panel follows
// the machine code, and a click on a block of the control flow goes to the first line of the block.

import * as vscode from 'vscode';
import { notInside, Place, SassView } from './sass';
import { Server } from './server';

interface Answer {
    function: string;
    html: string;
    /** Why the function is not compiled. */
    reason?: string;
}

/** The only command that links in the panel may run. */
const GO = 'ptx.goToLine';

export class Pictures implements vscode.Disposable {
    private panel: vscode.WebviewPanel | undefined;
    private source: vscode.Uri | undefined;
    private shown = '';
    /** The latest pictures of the function in the panel. */
    private last: Answer | undefined;
    private timer: NodeJS.Timeout | undefined;
    private readonly subscriptions: vscode.Disposable[];

    constructor(private readonly server: Server, private readonly view: SassView) {
        this.subscriptions = [
            vscode.commands.registerCommand(GO, (source: string, line: number) => this.go(vscode.Uri.parse(source), line)),
            view.onDidRefresh(({ source, place }) => this.soon(source, place)),
            vscode.workspace.onDidChangeTextDocument(({ document }) => {
                if (document.uri.toString() === this.source?.toString()) {
                    this.soon(document.uri, { function: this.shown });
                }
            }),
        ];
    }

    async show(): Promise<void> {
        if (!this.server.client) {
            this.server.missing();
            return;
        }
        const place = this.view.place();
        const answer = place && await this.ask(place.source, place.place);
        if (!answer) {
            notInside();
            return;
        }
        if (!this.panel) {
            const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
            const options = { enableFindWidget: true, enableCommandUris: [GO] };
            this.panel = vscode.window.createWebviewPanel('ptx-pictures', 'PTX', column, options);
            this.panel.onDidDispose(() => { this.panel = undefined; });
        }
        this.take(place.source, answer);
        this.panel.reveal(undefined, true);
    }

    /** Saves the pictures as an HTML page. */
    async save(): Promise<void> {
        const place = this.view.place();
        const answer = place && await this.ask(place.source, place.place, false);
        if (!answer) {
            notInside();
            return;
        }
        const folder = vscode.Uri.joinPath(place.source, '..');
        const file = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(folder, `${answer.function}.html`), filters: { HTML: ['html'] } });
        if (file) {
            await vscode.workspace.fs.writeFile(file, Buffer.from(answer.html));
        }
    }

    private async ask(source: vscode.Uri, place: Place, linked = true): Promise<Answer | null | undefined> {
        const uri = source.toString();
        const [before, after] = [`[${JSON.stringify(uri)},`, ']'].map(encodeURIComponent);
        const link = linked ? `command:${GO}?${before}{line}${after}` : undefined;
        const parameters = { textDocument: { uri }, link, ...place };
        return this.server.client?.sendRequest<Answer | null>('ptx/pictures', parameters).catch(() => null);
    }

    /** Goes to a line of the PTX, from 1, in the editor that shows it. */
    private async go(source: vscode.Uri, line: number): Promise<void> {
        const shown = vscode.window.visibleTextEditors.find(editor => editor.document.uri.toString() === source.toString());
        const selection = new vscode.Range(line - 1, 0, line - 1, 0);
        const editor = await vscode.window.showTextDocument(source, { viewColumn: shown?.viewColumn ?? vscode.ViewColumn.One, selection });
        editor.revealRange(selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }

    private take(source: vscode.Uri, answer: Answer): void {
        const isSame = this.last?.function === answer.function && this.source?.toString() === source.toString();
        this.source = source;
        this.shown = answer.function;
        if (!answer.reason || !isSame) {
            this.last = answer.reason ? undefined : answer;
        }
        if (this.panel) {
            this.panel.title = `${answer.function}: pictures`;
            this.panel.webview.html = answer.reason && this.last ? stale(this.last.html, answer.reason) : answer.html;
        }
    }

    private soon(source: vscode.Uri, place: Place): void {
        if (!this.panel) {
            return;
        }
        clearTimeout(this.timer);
        this.timer = setTimeout(async () => {
            const answer = await this.ask(source, place);
            if (answer) {
                this.take(source, answer);
            }
        }, 300);
    }

    dispose(): void {
        clearTimeout(this.timer);
        vscode.Disposable.from(...this.subscriptions).dispose();
        this.panel?.dispose();
    }
}

/** An outdated page, drawn pale, with the reason why there is no current one. */
function stale(html: string, reason: string): string {
    const escaped = reason.replace(/[&<>]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c] ?? c);
    return html.replace('<body>', `<body><p style="color:var(--mark)">${escaped}</p><div style="opacity:.45">`).replace('</body>', '</div></body>');
}
