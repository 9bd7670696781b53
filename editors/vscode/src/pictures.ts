// Pictures of the function that is shown or under the cursor: the server draws them. The panel follows the machine code.

import * as vscode from 'vscode';
import { Place, SassView } from './sass';
import { Server } from './server';

interface Answer {
    function: string;
    html: string;
}

export class Pictures implements vscode.Disposable {
    private panel: vscode.WebviewPanel | undefined;
    private source: vscode.Uri | undefined;
    private shown = '';
    private timer: NodeJS.Timeout | undefined;
    private readonly subscriptions: vscode.Disposable[];

    constructor(private readonly server: Server, private readonly view: SassView) {
        this.subscriptions = [
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
            void vscode.window.showInformationMessage('PTX: the cursor is not inside a function.');
            return;
        }
        if (!this.panel) {
            const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
            this.panel = vscode.window.createWebviewPanel('ptx-pictures', 'PTX', column, { enableFindWidget: true });
            this.panel.onDidDispose(() => { this.panel = undefined; });
        }
        this.take(place.source, answer);
        this.panel.reveal(undefined, true);
    }

    /** Writes them as a page of their own. */
    async save(): Promise<void> {
        const place = this.view.place();
        const answer = place && await this.ask(place.source, place.place);
        if (!answer) {
            return;
        }
        const folder = vscode.Uri.joinPath(place.source, '..');
        const file = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(folder, `${answer.function}.html`), filters: { HTML: ['html'] } });
        if (file) {
            await vscode.workspace.fs.writeFile(file, Buffer.from(answer.html));
        }
    }

    private async ask(source: vscode.Uri, place: Place): Promise<Answer | null | undefined> {
        const parameters = { textDocument: { uri: source.toString() }, ...place };
        return this.server.client?.sendRequest<Answer | null>('ptx/pictures', parameters).catch(() => null);
    }

    private take(source: vscode.Uri, answer: Answer): void {
        this.source = source;
        this.shown = answer.function;
        if (this.panel) {
            this.panel.title = `${answer.function}: pictures`;
            this.panel.webview.html = answer.html;
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
