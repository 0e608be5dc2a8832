// Looks at HTML reports in Chromium: html_page.mjs REPOSITORY BROWSER, with the pages in the working folder.
import { chromium } from 'playwright-core';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [top, home] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// The recorded page, which holds every kind of thing, stands in the repository without style and script.
const own = (name) => readFileSync(`${top}/src/report/html/page.${name}`, 'utf8');
const hash = (text) => `&#39;sha256-${createHash('sha256').update(text).digest('base64')}&#39;`;
const [style, script] = [own('css'), own('js')];
const recorded = readFileSync(`${top}/fixtures/reports/full.html`, 'utf8')
  .replace('style-src STYLE', () => `style-src ${hash(style)}`)
  .replace('script-src SCRIPT', () => `script-src ${hash(script)}`)
  .replace('<style>', () => `<style>${style}`)
  .replace('<script>', () => `<script>${script}`);
writeFileSync('full.html', recorded);

const env = { ...process.env, LD_LIBRARY_PATH: `${home}/lib` };
if (!existsSync('/usr/share/fonts')) env.FONTCONFIG_PATH = home;
const browser = await chromium.launch({
  executablePath: `${home}/chromium`,
  env,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--no-first-run'],
});

let looked = 0;
/** Opens a page and fails when it does anything by itself. */
async function open(name, options = {}, hash = '') {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on('console', (m) => trouble.push(`console ${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => trouble.push(`error: ${e.message}`));
  page.on('dialog', (d) => { trouble.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on('request', (r) => { if (!r.url().startsWith('data:') && !r.isNavigationRequest()) trouble.push(`request: ${r.url()}`); });
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(() => addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.sourceFile, e.lineNumber)));
  }
  const started = performance.now();
  await page.goto(`file://${process.cwd()}/${name}.html${hash}`);
  page.loaded = performance.now() - started;
  page.ends = async () => {
    await page.waitForTimeout(50);
    assert.deepEqual(trouble, [], name);
    await context.close();
    looked += 1;
  };
  return page;
}

/** Fails on serious trouble for people who use a keyboard, a reader or large type. */
async function accessible(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  const told = found.violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(told, [], `${name}: accessibility`);
}

const visible = (page, selector) => page.evaluate((s) => [...document.querySelectorAll(s)].filter((e) => e.checkVisibility()).length, selector);
const focused = (page) => page.evaluate(() => document.activeElement.id);
const settled = (page) => page.waitForTimeout(250);

// Light, dark, narrow, with everything that a page can hold.
for (const name of ['full', 'hostile', 'unsaved', 'recalled', 'empty']) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      const page = await open(name, { colorScheme, viewport: { width, height: 800 } });
      await accessible(page, `${name} ${colorScheme} ${width}`);
      const [wide, ground] = await page.evaluate(() => [document.documentElement.scrollWidth, getComputedStyle(document.documentElement).backgroundColor]);
      assert.ok(wide <= width, `${name}: ${wide} pixels wide at ${width}`);
      const lightness = Number(ground.match(/\d+/)[0]);
      assert.equal(lightness < 128, colorScheme === 'dark', ground);
      await page.ends();
    }
  }
}

// The change of somebody who wants the page to do something.
for (const name of ['hostile', 'unsaved', 'recalled']) {
  const page = await open(name);
  assert.equal(await page.locator('img, svg, iframe, object, embed, form, base, [onerror], [onload], [onmouseover]').count(), 0);
  assert.equal(await page.locator('script').count(), 1);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('a')].map((a) => a.getAttribute('href')).filter((h) => !/^(#|https?:)/.test(h))), []);
  const text = await page.evaluate(() => document.body.textContent);
  for (const shown of ['<script>alert(1)</script><img src=x onerror=alert(2)>', 'src/"><img src=x onerror=alert(3)>.py', 'caf\\xe9.py', '\\x1b[2J\\u{202e}gnp.py', '=cmd()|calc']) {
    assert.ok(text.includes(shown), `${name} does not show ${shown}`);
  }
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000b-\u001f]/.test(text), 'an active character');
  const row = page.locator('section.file', { hasText: 'src/load.py' }).locator('ins', { hasText: 'doc = yaml.load(text)' });
  assert.equal(await row.locator('b').first().textContent(), 'load');
  assert.equal((await row.getAttribute('data-n')).trim(), '4');
  assert.ok(await page.locator('summary', { hasText: 'src/new.txt' }).getByText('from src/old.txt (100% similar)').isVisible());
  await page.ends();
}

// Filters.
{
  const page = await open('full');
  const all = await page.locator('.f').count();
  assert.equal(await visible(page, '.f'), all);
  await page.click('.chip.suggestion');
  assert.equal(await visible(page, '.f.suggestion'), 0);
  assert.equal(await visible(page, '.f'), all - 6);
  assert.equal(await page.locator('#count').innerText(), `${all - 6} findings`);
  // Files in which nothing is left are out of the way, also in the list.
  assert.ok(!await page.locator('section.file', { hasText: 'src/notes.rs' }).isVisible());
  assert.ok(!await page.locator('nav li', { hasText: 'src/notes.rs' }).isVisible());
  await page.click('.chip.suggestion');
  assert.equal(await visible(page, '.f'), all);
  await page.click('.chip.aside');
  assert.equal(await visible(page, '.f.aside'), 0);
  await page.click('.chip.aside');
  await page.fill('#path', 'SRC pay');
  await settled(page);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('summary h3')].filter((e) => e.checkVisibility()).map((e) => e.textContent)), ['src/pay/client.py']);
  await page.fill('#path', '');
  await page.fill('#words', 'secret store');
  await settled(page);
  assert.equal(await visible(page, '.f'), 1);
  await page.fill('#words', 'nothing says this');
  await settled(page);
  assert.ok(await page.locator('.nothing').isVisible());
  await page.fill('#words', '');
  await settled(page);
  const files = await visible(page, '.file');
  await page.check('#only');
  assert.ok(await visible(page, '.file') < files);
  assert.equal(await visible(page, '.f'), all);
  await page.ends();
}

// Keys.
{
  const page = await open('full');
  const order = await page.evaluate(() => [...document.querySelectorAll('.f')].map((f) => f.id));
  assert.equal(await page.locator('#count').innerText(), `${order.length} findings`);
  await page.keyboard.press('j');
  assert.equal(await focused(page), order[0]);
  assert.equal(await page.locator('#count').innerText(), `1 of ${order.length}`);
  await page.keyboard.press('j');
  await page.keyboard.press('n');
  assert.equal(await focused(page), order[2]);
  assert.equal(await page.locator('#count').innerText(), `3 of ${order.length}`);
  assert.ok(await page.evaluate(() => { const r = document.activeElement.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }));
  await page.keyboard.press('k');
  assert.equal(await focused(page), order[1]);
  await page.keyboard.press('k');
  await page.keyboard.press('p');
  assert.equal(await focused(page), order.at(-1), 'before the first comes the last');
  await page.keyboard.press('o');
  assert.ok(!await page.locator(`#${order.at(-1)}`).isVisible());
  await page.keyboard.press('o');
  assert.ok(await page.locator(`#${order.at(-1)}`).isVisible());
  await page.keyboard.press('f');
  assert.equal(await visible(page, 'details > .d'), 0);
  await page.keyboard.press('j');
  assert.equal(await focused(page), order[0], 'a folded file opens');
  await page.keyboard.press('?');
  assert.ok(await page.locator('#keys').isVisible());
  await accessible(page, 'help');
  await page.keyboard.press('Escape');
  assert.ok(!await page.locator('#keys').isVisible());
  await page.keyboard.press('/');
  await page.keyboard.type('jk?t');
  assert.equal(await page.inputValue('#words'), 'jk?t', 'what is typed into a field is text');
  await page.fill('#words', '');
  await page.keyboard.press('Escape');
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.keyboard.press('t');
  assert.equal(await ground(), light);
  await page.keyboard.press('t');
  assert.notEqual(await ground(), light);
  await accessible(page, 'dark by key');
  await page.reload();
  assert.notEqual(await ground(), light, 'the choice is kept');
  await page.keyboard.press('?');
  await page.click('#single');
  await page.click('#close');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('j');
  assert.equal(await focused(page), '', 'keys are off');
  // By Tab alone: the first stop leads past everything, and every stop is seen.
  await page.reload();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'main');
  for (let i = 0; i < 25; i += 1) {
    await page.keyboard.press('Tab');
    const [tag, outline] = await page.evaluate(() => [document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]);
    assert.equal(outline, 'solid', `no mark on ${tag}`);
  }
  await page.ends();
}

// A link to a finding, also from what blocks.
{
  const page = await open('full', {}, '#F5');
  assert.equal(await focused(page), 'F5');
  await page.click('.chip.critical');
  await page.locator('.index a').first().click();
  await settled(page);
  const first = await page.evaluate(() => location.hash.slice(1));
  assert.equal(await focused(page), first, 'a filter does not hide what a link leads to');
  await page.ends();
}

// Without scripts all of it can be read; on paper too.
{
  const page = await open('full', { javaScriptEnabled: false });
  assert.equal(await page.locator('.f:visible').count(), await page.locator('.f').count());
  assert.ok(!await page.locator('.bar').isVisible());
  await page.ends();
  const printed = await open('full');
  await printed.emulateMedia({ media: 'print' });
  assert.equal(await visible(printed, 'nav, .bar, dialog'), 0);
  assert.equal(await visible(printed, '.f'), await printed.locator('.f').count());
  await printed.ends();
}

// Paper is white and whole, whatever the screen shows: the colours of the system or of a key, filters, folds.
let light;
for (const [how, options] of [['light', { colorScheme: 'light' }], ['system', { colorScheme: 'dark' }], ['key', { colorScheme: 'light' }]]) {
  const page = await open('full', options);
  const looks = () => page.evaluate(() => ['html', '.verdict', '.f', '.d ins', '.chip', 'summary'].map((s) => {
    const style = getComputedStyle(document.querySelector(s));
    return [style.backgroundColor, style.color, style.colorScheme];
  }));
  if (how === 'key') { await page.keyboard.press('t'); await page.keyboard.press('t'); }
  const [all, files] = [await page.locator('.f').count(), await page.locator('section.file').count()];
  assert.equal(await visible(page, '.f'), all);
  await page.fill('#path', 'nothing has this name');
  await settled(page);
  assert.equal(await visible(page, '.f'), 0);
  const screen = await looks();
  await page.emulateMedia({ media: 'print', colorScheme: options.colorScheme });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.equal(await visible(page, '.f'), all, 'a filter hides nothing on paper');
  assert.equal(await visible(page, 'section.file'), files);
  assert.equal(await visible(page, '.nothing'), 0);
  const paper = await looks();
  if (how === 'light') light = paper;
  else { assert.deepEqual(paper, light, how); assert.notDeepEqual(paper, screen); }
  assert.deepEqual(paper[0].slice(0, 2), ['rgb(255, 255, 255)', 'rgb(28, 33, 40)'], how);
  await page.screenshot({ path: `paper-${how}.png` });
  assert.ok((await page.pdf({ path: `paper-${how}.pdf` })).length > 10_000);
  await page.emulateMedia({ media: 'screen', colorScheme: options.colorScheme });
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.equal(await visible(page, '.f'), 0, 'the filter is back on the screen');
  await page.ends();
}

// Six thousand findings.
for (const name of ['flood', 'large']) {
  const page = await open(name);
  const [nodes, cards] = await page.evaluate(() => [document.querySelectorAll('*').length, document.querySelectorAll('.f').length]);
  const timed = async (what) => { const started = performance.now(); await what(); return Math.round(performance.now() - started); };
  const step = await timed(async () => { await page.keyboard.press('j'); await page.evaluate(() => new Promise(requestAnimationFrame)); });
  const filter = await timed(() => page.click('.chip.critical'));
  const search = await timed(async () => { await page.fill('#words', 'load7'); await settled(page); await page.evaluate(() => new Promise(requestAnimationFrame)); });
  console.log(`${name}: ${readFileSync(`${name}.html`).length} bytes, ${nodes} elements, ${cards} findings, loaded in ${Math.round(page.loaded)} ms, next ${step} ms, filter ${filter} ms, search ${search} ms`);
  assert.ok(nodes < 150_000 && page.loaded < 30_000, `${nodes} elements in ${page.loaded} ms`);
  assert.equal(cards, name === 'flood' ? 6000 : 1);
  await page.ends();
}

await browser.close();
console.log(`${looked} pages looked at`);
