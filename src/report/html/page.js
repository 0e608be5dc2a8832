'use strict';
(() => {
  const root = document.documentElement;
  const kept = {
    get(key) { try { return localStorage.getItem('claude-reviewer.' + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem('claude-reviewer.' + key, value); } catch { /* a page may have no storage */ } },
  };
  const themes = ['auto', 'light', 'dark'];
  let theme = themes.includes(kept.get('theme')) ? kept.get('theme') : 'auto';
  const dress = () => { if (theme === 'auto') root.removeAttribute('data-theme'); else root.dataset.theme = theme; };
  dress();

  // Pages on a server without TLS have no clipboard interface.
  const write = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    if (!done) throw new Error('not copied');
  };
  addEventListener('DOMContentLoaded', () => {
    for (const button of document.querySelectorAll('.copy')) button.hidden = false;
    document.addEventListener('click', async (e) => {
      const button = e.target.closest('.copy');
      if (!button) return;
      try {
        await write(button.dataset.copy);
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Copy failed';
      }
      button.focus();
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    const $ = (id) => document.getElementById(id);
    const keys = $('keys');
    const bar = document.querySelector('.bar');
    if (!bar) return;
    bar.hidden = false;
    // On a narrow screen the list of files is in the way.
    const list = document.querySelector('nav details');
    if (list && matchMedia('(max-width: 60rem)').matches) list.open = false;
    const measure = () => root.style.setProperty('--bar', (getComputedStyle(bar).position === 'sticky' ? bar.offsetHeight : 0) + 'px');
    measure();
    new ResizeObserver(measure).observe(bar);

    // What there is: findings in the order of the page, and the files that they stand in.
    const links = new Map();
    for (const a of document.querySelectorAll('nav a')) links.set(a.getAttribute('href').slice(1), a.parentNode);
    const files = [...document.querySelectorAll('section.file')].map((node) => {
      const name = node.querySelector('summary h3');
      return { node, path: name ? name.textContent.toLowerCase() : '', link: links.get(node.id), findings: [], details: node.querySelector('details') };
    });
    const fileOf = new Map(files.map((f) => [f.node, f]));
    const findings = [...document.querySelectorAll('.f')].map((node) => {
      const file = fileOf.get(node.closest('section.file'));
      const c = node.classList;
      const kind = c.contains('aside') ? 'aside' : ['critical', 'major', 'minor', 'suggestion'].find((s) => c.contains(s));
      const f = { node, file, kind, by: node.dataset.o, shown: true, text: null };
      file.findings.push(f);
      return f;
    });

    // Filters.
    const chips = [...document.querySelectorAll('.chip')];
    const by = $('by'), path = $('path'), words = $('words'), only = $('only'), count = $('count');
    const nothing = document.querySelector('.nothing');
    let visible = findings;
    let current = null;
    const tell = () => {
      const at = visible.indexOf(current);
      const n = visible.length;
      count.textContent = at < 0 ? n + (n === 1 ? ' finding' : ' findings') : (at + 1) + ' of ' + n;
    };
    const wordsOf = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const filter = () => {
      const off = new Set(chips.filter((c) => c.getAttribute('aria-pressed') === 'false').map((c) => c.dataset.s));
      const who = by ? by.value : '';
      const inPath = wordsOf(path), inText = wordsOf(words);
      const asks = off.size > 0 || who !== '' || inText.length > 0 || only.checked;
      let any = false;
      visible = [];
      for (const file of files) {
        const fits = inPath.every((w) => file.path.includes(w)) && !(inPath.length > 0 && !file.details);
        let has = false;
        for (const f of file.findings) {
          let shown = fits && !off.has(f.kind) && (who === '' || f.by === who);
          if (shown && inText.length > 0) {
            f.text ??= f.node.textContent.toLowerCase();
            shown = inText.every((w) => f.text.includes(w));
          }
          if (shown !== f.shown) f.node.classList.toggle('out', !shown);
          f.shown = shown;
          if (shown) { has = true; visible.push(f); }
        }
        const shown = fits && (has || !asks);
        file.node.classList.toggle('out', !shown);
        if (file.link) file.link.classList.toggle('out', !shown);
        file.shown = shown;
        any ||= shown;
      }
      if (nothing) nothing.hidden = any;
      tell();
    };
    for (const c of chips) {
      c.addEventListener('click', () => {
        c.setAttribute('aria-pressed', String(c.getAttribute('aria-pressed') === 'false'));
        filter();
      });
    }
    if (by) by.addEventListener('change', filter);
    only.addEventListener('change', filter);
    let waiting = 0;
    const soon = () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); };
    path.addEventListener('input', soon);
    words.addEventListener('input', soon);

    // Moving. A finding is current when it, or something in it, has the focus.
    const show = (node) => {
      const details = node.closest('details');
      if (details) details.open = true;
      node.scrollIntoView({ block: 'center' });
      node.focus({ preventScroll: true });
      // What was laid out on the way may have moved it.
      requestAnimationFrame(() => node.scrollIntoView({ block: 'center' }));
    };
    // The first of some nodes that is below the top of the window, or follows the one in focus.
    const from = (nodes, step) => {
      const held = document.activeElement;
      const after = (n) => held && held !== document.body && held.closest('main') && held.id !== 'main'
        ? n.compareDocumentPosition(held) & Node.DOCUMENT_POSITION_PRECEDING
        : n.getBoundingClientRect().top > bar.offsetHeight + 4;
      let low = 0, high = nodes.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (after(nodes[middle])) high = middle; else low = middle + 1;
      }
      return step > 0 ? low : low - 1;
    };
    const move = (step) => {
      if (visible.length === 0) return;
      let at = visible.indexOf(current);
      at = at >= 0 ? at + step : from(visible.map((f) => f.node), step);
      current = visible[(at + visible.length) % visible.length];
      show(current.node);
      tell();
    };
    const moveFile = (step) => {
      const shown = files.filter((f) => f.shown !== false && f.details);
      if (shown.length === 0) return;
      const held = document.activeElement && document.activeElement.closest('section.file');
      const own = shown.findIndex((f) => f.node === held);
      const at = own >= 0 ? own + step : from(shown.map((f) => f.node), step);
      const file = shown[(at + shown.length) % shown.length];
      current = null;
      file.node.scrollIntoView({ block: 'start' });
      file.node.querySelector('summary').focus({ preventScroll: true });
    };
    document.addEventListener('focusin', (e) => {
      const card = e.target.closest('.f');
      const held = card ? findings.find((f) => f.node === card) : null;
      if (held) { current = held; tell(); }
    });
    $('next').addEventListener('click', () => move(1));
    $('prev').addEventListener('click', () => move(-1));

    // A link to a finding opens its file, also where a filter hides it.
    const arrive = () => {
      const node = /^#(F|file)\d+$/.test(location.hash) ? $(location.hash.slice(1)) : null;
      if (!node) return;
      if (node.closest('.out')) {
        for (const c of chips) c.setAttribute('aria-pressed', 'true');
        for (const input of [path, words]) input.value = '';
        if (by) by.value = '';
        only.checked = false;
        filter();
      }
      if (node.matches('.f')) show(node);
      else { const d = node.querySelector('details'); if (d) d.open = true; node.scrollIntoView({ block: 'start' }); }
    };
    addEventListener('hashchange', arrive);
    document.addEventListener('click', (e) => {
      const a = e.target.closest('a[href^="#"]');
      if (a && a.getAttribute('href') === location.hash) arrive();
    });

    const fold = $('fold');
    const foldAll = () => {
      const open = fold.textContent !== 'Fold all';
      for (const f of files) if (f.details) f.details.open = open;
      fold.textContent = open ? 'Fold all' : 'Unfold all';
    };
    fold.addEventListener('click', foldAll);
    const foldOne = () => {
      const held = document.activeElement && document.activeElement.closest('section.file details');
      if (!held) return;
      held.open = !held.open;
      held.querySelector('summary').focus();
    };

    const button = $('theme');
    const label = () => { button.textContent = 'Theme: ' + theme; };
    const turn = () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      kept.set('theme', theme);
      dress();
      label();
    };
    label();
    button.addEventListener('click', turn);

    const help = () => { if (keys.open) keys.close(); else keys.showModal(); };
    $('help').addEventListener('click', help);
    $('close').addEventListener('click', () => keys.close());
    const single = $('single');
    single.checked = kept.get('keys') !== 'off';
    single.addEventListener('change', () => kept.set('keys', single.checked ? 'on' : 'off'));
    document.addEventListener('keydown', (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
      const types = e.target.closest('input:not([type=checkbox]), select, textarea');
      if (types) {
        if (e.key === 'Escape') types.blur();
        return;
      }
      if (keys.open) {
        if (e.key === '?') { e.preventDefault(); help(); }
        return;
      }
      if (!single.checked) return;
      const does = {
        j: () => move(1), n: () => move(1), k: () => move(-1), p: () => move(-1),
        ']': () => moveFile(1), '[': () => moveFile(-1),
        o: foldOne, f: foldAll, t: turn, '?': help, '/': () => words.focus(),
      }[e.key];
      if (does) { e.preventDefault(); does(); }
    });

    // Paper has no folds.
    let folded = [];
    addEventListener('beforeprint', () => {
      folded = files.filter((f) => f.details && !f.details.open);
      for (const f of folded) f.details.open = true;
    });
    addEventListener('afterprint', () => { for (const f of folded) f.details.open = false; folded = []; });

    filter();
    arrive();
  });
})();
