// Shows the page of a diagnostic, rendered from the Markdown text that the server sends.

import * as vscode from 'vscode';

const SCHEME = 'ptx-page';

export class Pages implements vscode.TextDocumentContentProvider {
    private readonly pages = new Map<string, string>();
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.pages.get(uri.path) ?? '';
    }

    register(): vscode.Disposable {
        return vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
    }

    async show(code: string, page: string): Promise<void> {
        const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code}.md` });
        this.pages.set(uri.path, page);
        // An earlier page of this name may still be open.
        this.changed.fire(uri);
        await vscode.commands.executeCommand('markdown.showPreviewToSide', uri);
    }
}
