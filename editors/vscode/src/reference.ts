// The machine code of a function by our compiler and by the user's reference compiler, side by side.

import * as vscode from 'vscode';
import { Server } from './server';

interface Answer {
    function: string;
    ours: string;
    theirs: string;
}

const SCHEME = 'ptx-reference';

export class Reference implements vscode.TextDocumentContentProvider {
    private readonly texts = new Map<string, string>();
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();

    readonly onDidChange = this.changed.event;

    constructor(private readonly server: Server) {}

    register(): vscode.Disposable {
        return vscode.Disposable.from(
            this.changed,
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.commands.registerCommand('ptx.showReference', (uri: string, name: string) => this.show(uri, name)),
            vscode.workspace.onDidCloseTextDocument(document => this.texts.delete(document.uri.toString())),
        );
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.toString()) ?? '';
    }

    private async show(uri: string, name: string): Promise<void> {
        const parameters = { textDocument: { uri }, function: name };
        const answer = await this.server.client?.sendRequest<Answer | null>('ptx/reference', parameters);
        if (!answer) {
            void vscode.window.showWarningMessage(`PTX: the reference compiler has not compiled ${name}.`);
            return;
        }
        const side = (label: string, text: string) => {
            const document = vscode.Uri.from({ scheme: SCHEME, path: `/${name} ${label}.sass` });
            this.texts.set(document.toString(), text);
            this.changed.fire(document);
            return document;
        };
        await vscode.commands.executeCommand('vscode.diff', side('(reference)', answer.theirs), side('(ours)', answer.ours), `${name}: reference ↔ ours`);
    }
}
