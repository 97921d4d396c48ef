// The block part of Markdown: a string -> a list of plain objects. Nothing here touches the document.
//
// Blocks: {kind: 'paragraph', text}, {kind: 'heading', level, text}, {kind: 'code', language, text}, {kind: 'rule'},
// {kind: 'quote', blocks}, {kind: 'list', ordered, start, items: [blocks]} and {kind: 'table', align, head, rows}.
// Those of the outermost level also have `from` and `to`, offsets in the text. `open` marks the block that is still
// being written.

const max_depth = 12;  // of containers; what is nested deeper is shown as text

const fence_start = /^(\s*)(`{3,}|~{3,})([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?:\s+(.*))?$/;
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}\s*$/;
const quote = /^ {0,3}> ?/;
const item_start = /^(\s*)([-*+]|\d{1,9}[.)])(?:( +)(.*)|)$/;
const table_delimiter = /^\|?:?-+:?(?:\|:?-+:?)*\|?$/;  // of a line without its spaces

// A last line whose meaning the next character decides is not shown yet.
const undecided = /^(?:|[-+*_=~`#]+|\d{1,9}[.)]?|[-+*] \[[ xX]?\]?|[|:\- ]+)$/;
const is_undecided = (line) => undecided.test(line.replace(/^[\s>]+/, '').trimEnd());

const is_delimiter = (line) => table_delimiter.test(line.replace(/\s+/g, ''));
const is_blank = (line) => /^\s*$/.test(line);
const indent_of = (line) => line.length - line.trimStart().length;

export function parse_markdown(text, open = false) {
  let lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
  const offsets = [0];
  for (const line of text.split('\n')) offsets.push(offsets[offsets.length - 1] + line.length + 1);
  if (open && is_undecided(lines[lines.length - 1])) lines = lines.slice(0, -1);
  while (open && lines.length && is_blank(lines[lines.length - 1])) lines.pop();
  const blocks =
      parse_lines(lines.map((line) => line.replace(/^[ \t]+/, (space) => space.replace(/\t/g, '    '))), open, 0);
  for (const block of blocks) {
    block.from = offsets[block.first];
    block.to = Math.min(offsets[block.past], text.length);
  }
  return blocks;
}

function parse_lines(lines, open, depth) {
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (is_blank(lines[i])) {
      ++i;
      continue;
    }
    const block = read_block(lines, i, open, depth);
    block.first = i;
    i = block.past;
    blocks.push(block);
  }
  if (open && blocks.length) blocks[blocks.length - 1].open = true;
  return blocks;
}

function read_block(lines, i, open, depth) {
  const leaf = read_fence(lines, i) ?? read_heading(lines, i) ?? read_rule(lines, i);
  const nested =
      depth < max_depth ? () => read_quote(lines, i, open, depth) ?? read_list(lines, i, open, depth) : () => null;
  return leaf ?? nested() ?? read_table(lines, i, open) ?? read_paragraph(lines, i, open);
}

function read_fence(lines, i) {
  const start = fence_start.exec(lines[i]);
  if (!start) return null;
  const [, indent, fence, info] = start;
  const close = new RegExp(`^\\s*${fence[0]}{${fence.length},}\\s*$`);
  let past = i + 1;
  while (past < lines.length && !close.test(lines[past])) ++past;
  const strip = (line) => line.slice(Math.min(indent_of(line), indent.length));
  const text = lines.slice(i + 1, past).map(strip).join('\n');
  return {kind: 'code', language: info.trim().split(/\s+/)[0], text, past: Math.min(past + 1, lines.length)};
}

function read_heading(lines, i) {
  const match = heading.exec(lines[i]);
  if (!match) return null;
  return {
    kind: 'heading',
    level: match[1].length,
    text: (match[2] ?? '').replace(/(^|\s)#+\s*$/, '').trim(),
    past: i + 1
  };
}

function read_rule(lines, i) {
  return rule.test(lines[i]) ? {kind: 'rule', past: i + 1} : null;
}

function read_quote(lines, i, open, depth) {
  let past = i;
  while (past < lines.length && quote.test(lines[past])) ++past;
  if (past === i) return null;
  const inner = lines.slice(i, past).map((line) => line.replace(quote, ''));
  return {kind: 'quote', blocks: parse_lines(inner, open && past === lines.length, depth + 1), past};
}

// Lines of one item, without its marker and indentation. More is taken as nested than the standard takes: models indent
// by two where three are due.
function read_item(lines, i, base) {
  const [, space, marker, gap = ' ', rest = ''] = item_start.exec(lines[i]);
  const width = space.length + marker.length + (gap.length > 4 ? 1 : gap.length);
  const needed = Math.min(width, base + 2);
  const inner = [gap.length > 4 ? gap.slice(1) + rest : rest];
  let past = i + 1;
  for (let fence = null; past < lines.length; ++past) {
    const line = lines[past];
    const belongs = is_blank(line) || indent_of(line) >= needed;
    const continues = !is_blank(lines[past - 1]) && !fence && !interrupts(lines, past) && !item_start.test(line);
    if (!belongs && !continues) break;
    inner.push(line.slice(Math.min(indent_of(line), width)));
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1][0];
    if (mark) fence = fence === null ? mark : fence === mark ? null : fence;
  }
  return {inner, past};
}

function read_list(lines, i, open, depth) {
  const first = item_start.exec(lines[i]);
  if (!first) return null;
  const base = first[1].length;
  const kind = first[2].slice(-1);
  const list = {kind: 'list', ordered: /\d/.test(first[2]), start: parseInt(first[2], 10), items: [], past: i};
  while (list.past < lines.length) {
    const next = item_start.exec(lines[list.past]);
    if (!next || next[2].slice(-1) !== kind || (list.items.length && rule.test(lines[list.past]))) break;
    const {inner, past} = read_item(lines, list.past, base);
    list.items.push(parse_lines(inner, open && past === lines.length, depth + 1));
    list.past = past;
  }
  return list;
}

function cells_of(line) {
  const cells = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '').split(/(?<!\\)\|/);
  return cells.map((cell) => cell.trim().replace(/\\\|/g, '|'));
}

// While it is written, a line that starts with a bar is taken for a table's head before the line below it is there.
function read_table(lines, i, open) {
  if (!lines[i].includes('|')) return null;
  const head = cells_of(lines[i]);
  const below = lines[i + 1];
  const promised = open && below === undefined && lines[i].trimStart().startsWith('|');
  const is_table = below !== undefined && is_delimiter(below) && cells_of(below).length === head.length;
  if (!promised && !is_table) return null;
  const align = promised ?
      [] :
      cells_of(below).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : null));
  const rows = [];
  let past = Math.min(i + 2, lines.length);
  for (; past < lines.length && lines[past].includes('|') && !interrupts(lines, past); ++past) {
    const cells = cells_of(lines[past]);
    rows.push(head.map((_, column) => cells[column] ?? ''));
  }
  return {kind: 'table', align, head, rows, past};
}

// Whether a line ends the paragraph above it.
function interrupts(lines, i) {
  const line = lines[i];
  if (fence_start.test(line) || heading.test(line) || rule.test(line) || quote.test(line)) return true;
  const item = item_start.exec(line);
  if (item && item[4] && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1)) return true;
  const below = lines[i + 1];
  return line.includes('|') && below !== undefined && is_delimiter(below) &&
      cells_of(below).length === cells_of(line).length;
}

function read_paragraph(lines, i, open) {
  let past = i + 1;
  while (past < lines.length && !is_blank(lines[past]) && !interrupts(lines, past)) {
    const promised = open && past === lines.length - 1 && lines[past].startsWith('|');
    if (promised) break;
    ++past;
  }
  return {kind: 'paragraph', text: lines.slice(i, past).map((line) => line.trimStart()).join('\n').trimEnd(), past};
}
