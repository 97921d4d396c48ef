// What markdown_cases.py asks of the renderer. Runs inside an async function of the page.
const {MarkdownView, render_markdown} = await import('/markdown.js');

const allowed = new Set([
  'A',     'BLOCKQUOTE', 'BR', 'BUTTON', 'CODE',  'DEL', 'DIV', 'EM',   'H3',   'H4',
  'H5',    'H6',         'HR', 'INPUT',  'LI',    'OL',  'P',   'PRE',  'SPAN', 'STRONG',
  'TABLE', 'TBODY',      'TD', 'TH',     'THEAD', 'TR',  'UL',  'path', 'svg'
]);
const pieces = [
  '*',
  '**',
  '_',
  '`',
  '```',
  '~~',
  '[',
  ']',
  '(',
  ')',
  '](https://x.org)',
  '<',
  '>',
  '|',
  '|-|',
  '\n',
  '\n\n',
  '  ',
  '- ',
  '1. ',
  '# ',
  '---',
  '\\',
  '$$',
  'a',
  'b c',
  '\t',
  '> ',
  '\r\n',
  '2',
  '.',
  'https://y.org',
  '<br>',
  '![',
  ':',
  '🌷',
  '\u2028'
];

function html_of(text, open = false) {
  const root = document.createElement('div');
  new MarkdownView(root).update(text, open);
  return root.innerHTML;
}

function code_of(text) {
  const code = render_markdown(text).querySelector('.code');
  return [code?.querySelector('.code-language').textContent, code?.querySelector('pre code').textContent];
}

// Renders a text that grows by `step()` characters at a time. What is shown may depend on the text only, not on how it
// came; `check` sees each state and returns a fault or nothing.
function growing_fault(text, step, check) {
  const root = document.createElement('div');
  const view = new MarkdownView(root);
  for (let n = 0; n <= text.length; n += step()) {
    const part = text.slice(0, n);
    view.update(part, true);
    const whole = html_of(part, true);
    if (whole !== root.innerHTML) return `${JSON.stringify(part)} depends on how it came: ${whole} / ${root.innerHTML}`;
    const fault = check(root);
    if (fault) return `${JSON.stringify(part)}: ${fault}`;
  }
  view.update(text, false);
  return root.innerHTML === html_of(text) ? '' : `${JSON.stringify(text)} ends differently`;
}

// Every prefix renders; none shows one of `markers`.
function prefix_fault(text, markers) {
  for (let n = 0; n <= text.length; ++n) html_of(text.slice(0, n));
  return growing_fault(text, () => 1, (root) => {
    const shown = [...markers].find((marker) => root.textContent.includes(marker));
    return shown ? `shows ${shown}` : '';
  });
}

function random_fault(seed) {
  let state = seed;
  const next = (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * n);
  };
  const strange = (root) => [...root.querySelectorAll('*')].find((element) => !allowed.has(element.tagName))?.tagName;
  for (let round = 0; round < 400; ++round) {
    const text = Array.from({length: 1 + next(40)}, () => pieces[next(pieces.length)]).join('');
    const fault = growing_fault(text, () => 1 + next(3), strange);
    if (fault) return fault;
  }
  return '';
}

function milliseconds(text, open) {
  const start = performance.now();
  html_of(text, open);
  return performance.now() - start;
}
