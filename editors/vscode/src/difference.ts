// The machine code of a function compared with its code at the last save, for another target or with another option, in
// the difference view of the editor. The code is compiled again after each edit and each save.

import * as vscode from 'vscode';
import { LANGUAGE, notInside, Place, SassView } from './sass';
import { Server } from './server';

const SCHEME = 'ptx-sass-difference';
const PAUSE = 300;

type With = { saved: true } | { target: string } | { optLevel: number } | { maxRegisters: number };

interface Side {
    title: string;
    text: string;
}

interface Answer {
    function: string;
    summary: string;
    before: Side;
    after: Side;
}

interface Shown {
    source: vscode.Uri;
    with: With;
    answer: Answer;
}

export class Differences implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    private readonly before = vscode.Uri.from({ scheme: SCHEME, path: '/before' });
    private readonly after = vscode.Uri.from({ scheme: SCHEME, path: '/after' });
    private shown: Shown | undefined;
    private timer: NodeJS.Timeout | undefined;
    private readonly subscriptions: vscode.Disposable[];

    readonly onDidChange = this.changed.event;

    constructor(private readonly server: Server, private readonly view: SassView) {
        this.subscriptions = [
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.workspace.onDidChangeTextDocument(event => this.edited(event.document)),
            vscode.workspace.onDidSaveTextDocument(document => this.edited(document)),
        ];
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        const side = uri.path === this.before.path ? this.shown?.answer.before : this.shown?.answer.after;
        return side?.text ?? '';
    }

    /** Asks what to compare with, and shows the difference. */
    async choose(): Promise<void> {
        const place = this.place();
        if (!place) {
            return;
        }
        const choice = await vscode.window.showQuickPick([
            { label: 'The last save', with: async (): Promise<With> => ({ saved: true }) },
            { label: 'Another target…', with: chooseTarget },
            { label: 'Another optimization level…', with: chooseLevel },
            { label: 'Another limit of registers…', with: chooseRegisters },
        ], { placeHolder: 'Compare the machine code with that of' });
        const other = await choice?.with();
        if (other) {
            await this.show(place.source, place.place, other);
        }
    }

    async withSaved(): Promise<void> {
        const place = this.place();
        if (place) {
            await this.show(place.source, place.place, { saved: true });
        }
    }

    private place(): { source: vscode.Uri; place: Place } | undefined {
        if (!this.server.client) {
            this.server.missing();
            return undefined;
        }
        const place = this.view.place();
        if (!place) {
            notInside();
        }
        return place;
    }

    private async show(source: vscode.Uri, place: Place, other: With): Promise<void> {
        const answer = await this.ask(source, place, other).catch((error: Error) => void vscode.window.showErrorMessage(`PTX: ${error.message}`));
        if (!answer) {
            if (answer === null) {
                notInside();
            }
            return;
        }
        this.take({ source, with: other, answer });
        for (const uri of [this.before, this.after]) {
            await vscode.languages.setTextDocumentLanguage(await vscode.workspace.openTextDocument(uri), LANGUAGE);
        }
        const title = `${answer.before.title} ↔ ${answer.after.title}`;
        await vscode.commands.executeCommand('vscode.diff', this.before, this.after, title, { preview: false });
        void vscode.window.showInformationMessage(`PTX: ${answer.function}: ${answer.summary}`);
    }

    private async ask(source: vscode.Uri, place: Place, other: With): Promise<Answer | null | undefined> {
        const parameters = { textDocument: { uri: source.toString() }, ...place, with: other };
        return this.server.client?.sendRequest<Answer | null>('ptx/sassDifference', parameters);
    }

    private take(shown: Shown): void {
        this.shown = shown;
        this.changed.fire(this.before);
        this.changed.fire(this.after);
    }

    private edited(document: vscode.TextDocument): void {
        const shown = this.shown;
        const isOpen = vscode.workspace.textDocuments.some(open => open.uri.scheme === SCHEME && !open.isClosed);
        if (!shown || !isOpen || document.uri.toString() !== shown.source.toString()) {
            return;
        }
        clearTimeout(this.timer);
        this.timer = setTimeout(async () => {
            const answer = await this.ask(shown.source, { function: shown.answer.function }, shown.with).catch(() => null);
            if (answer && this.shown === shown) {
                this.take({ ...shown, answer });
                vscode.window.setStatusBarMessage(`PTX: ${answer.function}: ${answer.summary}`, 10_000);
            }
        }, PAUSE);
    }

    dispose(): void {
        clearTimeout(this.timer);
        vscode.Disposable.from(...this.subscriptions, this.changed).dispose();
    }
}

async function chooseTarget(): Promise<With | undefined> {
    const target = await vscode.window.showInputBox({ prompt: 'The target to compare with', placeHolder: 'sm_100' });
    return target ? { target: target.trim() } : undefined;
}

async function chooseLevel(): Promise<With | undefined> {
    const level = await vscode.window.showQuickPick(['0', '1', '2', '3'], { placeHolder: 'The optimization level to compare with' });
    return level ? { optLevel: Number(level) } : undefined;
}

async function chooseRegisters(): Promise<With | undefined> {
    const most = await vscode.window.showInputBox({
        prompt: 'The most registers to compare with',
        placeHolder: '32',
        validateInput: text => (/^\d+$/.test(text.trim()) ? undefined : 'a number'),
    });
    return most ? { maxRegisters: Number(most) } : undefined;
}
