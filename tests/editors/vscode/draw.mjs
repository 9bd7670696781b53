// Renders an SVG to PNG in a browser: draw.mjs FILE.svg FILE.png

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const require = createRequire(process.env.DRIVER + '/');
const { chromium } = require('playwright-core');
const [from, to] = process.argv.slice(2);
const text = readFileSync(from, 'utf8');
const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(text).map(Number);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width, height } });
await page.setContent(`<body style="margin:0;background:#14161b">${text}</body>`);
await page.screenshot({ path: to });
await browser.close();
