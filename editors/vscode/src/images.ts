// Shows the PTX and the machine code in cubins, fatbins and programs as documents. The server's program extracts them.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as vscode from 'vscode';

interface Image {
    name: string;
    language: string;
    text?: string;
    error?: string;
}

const SCHEME = 'ptx-image';
/** The largest answer accepted from the program, in bytes. */
const MOST_BYTES = 1 << 30;

export class Images implements vscode.TextDocumentContentProvider, vscode.CustomReadonlyEditorProvider {
    private readonly texts = new Map<string, string>();

    constructor(private readonly program: () => string, private readonly cwd: string) {}

    register(): vscode.Disposable {
        return vscode.Disposable.from(
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.window.registerCustomEditorProvider('ptx.images', this),
            vscode.commands.registerCommand('ptx.openImages', (uri?: vscode.Uri) => uri && this.show(uri)),
            vscode.workspace.onDidCloseTextDocument(document => this.texts.delete(document.uri.toString())),
        );
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.toString()) ?? '';
    }

    openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
        return { uri, dispose: () => undefined };
    }

    /** The file's own editor closes if documents were opened in its place; otherwise it shows the reason. */
    async resolveCustomEditor(document: vscode.CustomDocument, panel: vscode.WebviewPanel): Promise<void> {
        const said = await this.show(document.uri);
        if (said === undefined) {
            panel.dispose();
            return;
        }
        const escaped = said.replace(/[&<>]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c] ?? c);
        panel.webview.html = `<!DOCTYPE html><body><p>${escaped}</p></body>`;
    }

    /** Opens a document for each image. Returns the error message, if there is one. */
    private async show(file: vscode.Uri): Promise<string | undefined> {
        let images: Image[];
        try {
            const options = { timeout: 60_000, maxBuffer: MOST_BYTES, cwd: this.cwd };
            const { stdout } = await promisify(execFile)(this.program(), ['images', file.fsPath], options);
            images = JSON.parse(stdout);
        } catch (error) {
            const failure = error as { stderr?: string; message?: string };
            const reason = (failure.stderr || failure.message || String(error)).trim();
            void vscode.window.showErrorMessage(`PTX: ${reason}`);
            return reason;
        }
        for (const image of images) {
            const uri = vscode.Uri.from({ scheme: SCHEME, path: `${file.path}/${image.name}` });
            this.texts.set(uri.toString(), image.text ?? `// ${image.error ?? ''}\n`);
            const opened = await vscode.workspace.openTextDocument(uri);
            const document = await vscode.languages.setTextDocumentLanguage(opened, image.language);
            await vscode.window.showTextDocument(document, { preview: false });
        }
        return undefined;
    }
}
