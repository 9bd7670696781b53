// Starts code-server with the packaged extension, and a headless Chromium that shows its workbench.

import { spawn, execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const require = createRequire(process.env.DRIVER + '/');
const { chromium } = require('playwright-core');

const SETTINGS = {
    'workbench.startupEditor': 'none', 'telemetry.telemetryLevel': 'off', 'chat.disableAIFeatures': true,
    'extensions.autoCheckUpdates': false, 'extensions.autoUpdate': false, 'git.enabled': false,
    'workbench.enableExperiments': false, 'workbench.secondarySideBar.defaultVisibility': 'hidden',
    'files.autoSave': 'off', 'breadcrumbs.enabled': false,     'editor.inlayHints.enabled': 'on', 'editor.minimap.enabled': false, 'editor.hover.delay': 100,
    'workbench.colorTheme': 'Default Dark Modern', 'editor.fontFamily': 'DejaVu Sans Mono', 'editor.fontSize': 13,
    'workbench.layoutControl.enabled': false, 'window.commandCenter': false, 'explorer.autoReveal': false,
    'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never',
};

/** Repeats a check until it succeeds or the time is over. A check fails if VS Code replaces what it looks at meanwhile. */
export async function until(what, ask, seconds = 30) {
    const end = Date.now() + 1000 * seconds;
    for (;;) {
        let reason = '';
        try {
            const answer = await ask();
            if (answer) return answer;
        } catch (error) {
            reason = `: ${error.message}`;
        }
        if (Date.now() > end) throw new Error(`no ${what} within ${seconds} s${reason}`);
        await new Promise(done => setTimeout(done, 100));
    }
}

export class Workbench {
    /** `settings` are the user settings. If `trusted` is set, VS Code does not ask whether the folder is trusted. */
    static async start(options) {
        const self = new Workbench();
        try {
            await self.begin(options);
        } catch (error) {
            await self.stop();
            throw error;
        }
        return self;
    }

    /** Starts one part after another; `stop` ends those that have started. */
    async begin({ extension, folder, settings = {}, trusted = true, width = 1280, height = 800 }) {
        this.data = mkdtempSync(path.join(tmpdir(), 'ptx-code-'));
        this.settings = SETTINGS;
        this.configure(settings);
        const entry = `${process.env.CODE_SERVER}/out/node/entry.js`;
        const common = ['--user-data-dir', `${this.data}/user`, '--extensions-dir', `${this.data}/extensions`];
        const env = { ...process.env, XDG_CONFIG_HOME: this.data, XDG_DATA_HOME: this.data, EXTENSIONS_GALLERY: '{}', DISPLAY: '' };
        execFileSync('node', [entry, ...common, '--install-extension', extension], { env, stdio: 'ignore' });
        const port = await new Promise(done => {
            const server = createServer().listen(0, '127.0.0.1', () => {
                const { port } = server.address();
                server.close(() => done(port));
            });
        });
        this.server = spawn('node', [entry, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry',
            '--disable-update-check', '--disable-getting-started-override', ...(trusted ? ['--disable-workspace-trust'] : []),
            ...common, folder], { env, stdio: 'ignore' });
        await until('code-server', () => fetch(`http://127.0.0.1:${port}/healthz`).then(r => r.ok, () => false), 60);
        this.browser = await chromium.launch({
            executablePath: process.env.CHROMIUM, headless: true,
            args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
                '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
        });
        this.page = await (await this.browser.newContext({ viewport: { width, height } })).newPage();
        await this.page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(folder)}`, { timeout: 90000 });
        await this.page.waitForSelector('.monaco-workbench .explorer-folders-view', { timeout: 90000 });
    }

    /** Adds user settings. They also take effect while the workbench is open. */
    configure(settings) {
        this.settings = { ...this.settings, ...settings };
        for (const place of ['User', 'Machine']) {
            mkdirSync(`${this.data}/user/${place}`, { recursive: true });
            writeFileSync(`${this.data}/user/${place}/settings.json`, JSON.stringify(this.settings));
        }
    }

    async stop() {
        try {
            await this.browser?.close();
        } finally {
            if (this.server && this.server.exitCode === null && this.server.signalCode === null) {
                const ended = new Promise(done => this.server.once('exit', done));
                this.server.kill();
                await ended;
            }
            if (this.data) rmSync(this.data, { recursive: true, force: true, maxRetries: 5 });
        }
    }

    async press(...keys) {
        for (const key of keys) await this.page.keyboard.press(key);
    }

    /** Opens Quick Open with a key and types a text into it. */
    async prompt(key, text) {
        await this.press(key);
        await this.page.waitForSelector('.quick-input-widget:visible');
        await this.page.keyboard.type(text, { delay: 5 });
    }

    async closed(timeout) {
        await this.page.waitForSelector('.quick-input-widget', { state: 'hidden', timeout });
        return true;
    }

    /** Enters a text in Quick Open: a file, or `>` and a command. Chooses the row with the text `row`. */
    async quick(text, row) {
        await this.prompt(text.startsWith('>') ? 'F1' : 'Control+P', text.replace(/^>/, ''));
        // The list may still show the rows of an earlier filter; Enter could then choose a wrong row.
        await this.page.locator('.quick-input-list .monaco-list-row', { hasText: row }).first().click({ timeout: 60000 });
        await this.closed();
    }

    async open(file, text) {
        await this.quick(file, file);
        await this.line(text).first().waitFor({ timeout: 30000 });
    }

    /**
     * Moves the cursor. A web view may take the focus back some time after a click in it; the prompt then
     * finds no editor and ignores Enter. So this tries again, in the first editor group.
     */
    async go(line, column = 1) {
        await until(`cursor in line ${line}`, async () => {
            await this.prompt('Control+G', `${line}:${column}`);
            await this.page.waitForTimeout(150);
            await this.press('Enter');
            if (await this.closed(5000).catch(() => false)) return true;
            await this.press('Escape', 'Control+1');
        }, 60);
    }

    editor(tab = 0) {
        return this.page.locator('.editor-group-container .monaco-editor[role="code"]').nth(tab);
    }

    line(text, tab = 0) {
        return this.editor(tab).locator('.view-line', { hasText: text });
    }

    /** The text of the visible lines as displayed, including hints. */
    async text(tab = 0) {
        return this.editor(tab).evaluate(editor => [...editor.querySelectorAll('.view-line')]
            .map(line => [parseFloat(line.style.top), line.textContent.replace(/\u00a0/g, ' ')])
            .sort((a, b) => a[0] - b[0]).map(pair => pair[1]).join('\n'));
    }

    /** The texts of the lines that have a whole-line decoration. */
    async marked(tab) {
        return this.editor(tab).evaluate(editor => {
            const top = element => Math.round(element.getBoundingClientRect().top);
            const marks = [...editor.querySelectorAll('.view-overlays > div')].filter(row => row.querySelector('.cdr[class*="ced-"]')).map(top);
            return [...editor.querySelectorAll('.view-line')].filter(line => marks.includes(top(line)))
                .map(line => line.textContent.replace(/\u00a0/g, ' '));
        });
    }

    /** The texts that decorations add before and after the words of the first line that contains a given text. */
    async beside(text, tab = 0) {
        return this.line(text, tab).first().evaluate(line => [...line.querySelectorAll('span')]
            .flatMap(span => ['::before', '::after'].map(side => getComputedStyle(span, side).content))
            .filter(content => content !== 'none' && content !== 'normal')
            .map(content => content.replace(/^"|"$/g, '').replace(/\u00a0/g, ' ')));
    }

    /** Waits until a webview of the workbench shows a text. */
    async inside(text) {
        return until(`page with "${text}"`, async () => {
            for (const frame of this.page.frames()) {
                const content = await frame.evaluate(() => document.body?.innerText + (document.body?.querySelector('svg') ? document.body.textContent : '')).catch(() => '');
                // While a page loads, the previous page covers it.
                const element = await frame.frameElement().catch(() => undefined);
                if (content.includes(text) && (!element || await element.isVisible().catch(() => false))) return frame;
            }
            return undefined;
        });
    }

    /** The color of a word in the first line that contains a given text. */
    async color(text, word, tab = 0) {
        return this.line(text, tab).first().evaluate((line, word) => {
            const spans = [...line.querySelectorAll('span span')].filter(span => span.textContent.replace(/\u00a0/g, ' ').trim() === word);
            return spans.length ? getComputedStyle(spans[0]).color : undefined;
        }, word);
    }

    async opacity(tab) {
        return this.editor(tab).evaluate(editor => Math.min(...[...editor.querySelectorAll('.view-line span span')]
            .map(span => Number(getComputedStyle(span).opacity))));
    }

    notification(text) {
        return this.page.locator('.notification-list-item', { hasText: text });
    }

    /** The processes that run a program. */
    static processes(program) {
        return readdirSync('/proc').filter(name => /^\d+$/.test(name)).filter(pid => {
            try {
                return readlinkSync(`/proc/${pid}/exe`) === program;
            } catch {
                return false;
            }
        }).map(Number);
    }

    async picture(name) {
        if (process.env.PICTURES) {
            mkdirSync(process.env.PICTURES, { recursive: true });
            await this.page.screenshot({ path: `${process.env.PICTURES}/${name}.png` });
        }
    }
}
