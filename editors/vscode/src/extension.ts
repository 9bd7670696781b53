// Starts the server and adds what the protocol does not have: the machine code of a function as a document.

import * as vscode from 'vscode';
import { LanguageClient, ServerOptions } from 'vscode-languageclient/node';
import { SassView } from './sass';

let client: LanguageClient | undefined;

function settings(): object {
    const ptx = vscode.workspace.getConfiguration('ptx');
    return {
        target: ptx.get<string>('target') || undefined,
        inlayHints: ptx.get('inlayHints'),
        codeLens: ptx.get('codeLens'),
        compile: ptx.get('compile'),
        lints: ptx.get('lints'),
    };
}

async function start(): Promise<LanguageClient> {
    const command = vscode.workspace.getConfiguration('ptx').get<string>('server.path', 'ptx-lsp');
    const server: ServerOptions = { command, args: ['--stdio'] };
    const started = new LanguageClient('ptx', 'PTX', server, {
        documentSelector: [{ language: 'ptx' }],
        initializationOptions: settings(),
    });
    await started.start();
    return started;
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    client = await start();
    const view = new SassView(() => client);
    context.subscriptions.push(
        view,
        vscode.commands.registerCommand('ptx.showSass', (uri: string, name: string) => view.show(vscode.Uri.parse(uri), { function: name })),
        vscode.commands.registerTextEditorCommand('ptx.showSassHere', editor => view.show(editor.document.uri, { position: editor.selection.active })),
        vscode.commands.registerCommand('ptx.restart', async () => {
            await client?.stop();
            client = await start();
        }),
        vscode.workspace.onDidChangeConfiguration(async change => {
            if (change.affectsConfiguration('ptx')) {
                await client?.sendNotification('workspace/didChangeConfiguration', { settings: settings() });
            }
        }),
    );
}

export async function deactivate(): Promise<void> {
    await client?.stop();
}
